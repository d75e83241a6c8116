package dockerapi

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A network is one that the guest believes in. All of a session's containers
// share one network, which is that of the session; what the guest's networks
// are good for are the names that they give.
type network struct {
	id       string
	name     string
	labels   map[string]string
	internal bool
	created  time.Time
	builtin  bool
}

const defaultNetwork = "bridge"

// maxNetworks bounds networks that exist at a time.
const maxNetworks = 64

func predefined() map[string]*network {
	list := map[string]*network{}
	for _, name := range []string{defaultNetwork, "none"} {
		n := &network{id: newID(), name: name, builtin: true}
		list[n.id] = n
	}
	return list
}

func newID() string {
	var id [32]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// findNetwork needs b.mu.
func (b *Broker) findNetwork(ref string) *network {
	if n := b.networks[ref]; n != nil {
		return n
	}
	for id, n := range b.networks {
		if n.name == ref || len(ref) >= 12 && strings.HasPrefix(id, ref) {
			return n
		}
	}
	return nil
}

// join turns names of networks into IDs.
func (b *Broker) join(w *wanted) (map[string][]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.children {
		if w.name != "" && c.wanted.name == w.name {
			return nil, refuse(RuleConflict, "remove it, or use another name", "the name %q is that of another container of this session", w.name).status(http.StatusConflict)
		}
	}
	out := map[string][]string{}
	for ref, aliases := range w.networks {
		if of, ok := strings.CutPrefix(ref, "container:"); ok {
			c, err := b.lookup(of)
			if err != nil {
				return nil, err
			}
			if c.wanted.isolated {
				w.isolated = true
			}
			continue
		}
		n := b.findNetwork(ref)
		if n == nil {
			return nil, missing("network", ref)
		}
		w.isolated = w.isolated || n.name == "none"
		out[n.id] = append(out[n.id], aliases...)
	}
	return out, nil
}

type networkRequest struct {
	Name           string
	CheckDuplicate bool
	Driver         string
	Internal       bool
	Attachable     bool
	EnableIPv4     *bool
	EnableIPv6     *bool
	Scope          string
	IPAM           struct{ Driver string }
	Labels         map[string]string
	Options        map[string]string
}

func (b *Broker) createNetwork(w http.ResponseWriter, r *http.Request, _ *call) error {
	var req networkRequest
	if err := readBody(r, &req); err != nil {
		return err
	}
	switch {
	case !containerName().MatchString(req.Name):
		return bad("%.100q is no name of a network", req.Name)
	case !oneOf(req.Driver, "", "bridge") || !oneOf(req.IPAM.Driver, "", "default") || !oneOf(req.Scope, "", "local") || len(req.Options) > 0:
		return refuse(RuleNetwork, "leave driver and options out", "a network of a session is a name for the session's own network: it has no driver and no options")
	}
	if err := checkLabels(req.Labels); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.networks) >= maxNetworks {
		return refuse(RuleLimit, "remove some", "%d networks of this session exist", len(b.networks))
	}
	if b.findNetwork(req.Name) != nil {
		return refuse(RuleConflict, "", "network with name %s already exists", req.Name).status(http.StatusConflict)
	}
	n := &network{id: newID(), name: req.Name, labels: req.Labels, internal: req.Internal, created: b.o.Now()}
	b.networks[n.id] = n
	writeJSON(w, http.StatusCreated, struct {
		ID      string `json:"Id"`
		Warning string
	}{ID: n.id})
	return nil
}

// A networkView is a network as the guest is shown it.
type networkView struct {
	ID                                        string `json:"Id"`
	Name, Scope, Driver                       string
	Created                                   time.Time
	EnableIPv6, Internal, Attachable, Ingress bool
	IPAM                                      struct {
		Driver string
		Config []struct{}
	}
	Containers      map[string]map[string]string
	Options, Labels map[string]string
}

// view needs b.mu.
func (b *Broker) view(n *network) networkView {
	v := networkView{
		Name: n.name, ID: n.id, Scope: "local", Driver: "bridge", Created: n.created, Internal: n.internal,
		Containers: map[string]map[string]string{}, Options: map[string]string{}, Labels: maps.Clone(n.labels),
	}
	v.IPAM.Driver, v.IPAM.Config = "default", []struct{}{}
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	if n.name == "none" {
		v.Driver = "null"
	}
	for id, c := range b.children {
		if _, in := c.networks[n.id]; in {
			v.Containers[id] = map[string]string{"Name": c.wanted.name, "EndpointID": id, "IPv4Address": "127.0.0.1/8", "MacAddress": "", "IPv6Address": ""}
		}
	}
	return v
}

func (b *Broker) listNetworks(w http.ResponseWriter, _ *http.Request, c *call) error {
	if err := c.knownFilters("name", "id", "label", "driver", "type", "scope", "dangling"); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	list := []networkView{}
	for _, id := range slices.Sorted(maps.Keys(b.networks)) {
		n := b.networks[id]
		if c.wants("name", func(f string) bool { return strings.Contains(n.name, strings.Trim(f, "^$")) }) &&
			c.wants("id", func(f string) bool { return strings.HasPrefix(id, f) }) && c.labelled(n.labels) &&
			c.wants("type", func(f string) bool { return (f == "builtin") == n.builtin }) {
			list = append(list, b.view(n))
		}
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func (b *Broker) inspectNetwork(w http.ResponseWriter, _ *http.Request, c *call) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.findNetwork(c.names[0])
	if n == nil {
		return missing("network", c.names[0])
	}
	writeJSON(w, http.StatusOK, b.view(n))
	return nil
}

func (b *Broker) removeNetwork(w http.ResponseWriter, _ *http.Request, c *call) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.findNetwork(c.names[0])
	switch {
	case n == nil:
		return missing("network", c.names[0])
	case n.builtin:
		return refuse(RuleNetwork, "", "%q is always there", n.name)
	case len(b.view(n).Containers) > 0:
		return refuse(RuleConflict, "remove its containers first", "network %s has active endpoints", n.name).status(http.StatusConflict)
	}
	delete(b.networks, n.id)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (b *Broker) pruneNetworks(w http.ResponseWriter, _ *http.Request, c *call) error {
	if err := c.knownFilters("label", "until"); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	deleted := []string{}
	for id, n := range b.networks {
		if !n.builtin && len(b.view(n).Containers) == 0 && c.labelled(n.labels) {
			delete(b.networks, id)
			deleted = append(deleted, n.name)
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"NetworksDeleted": deleted})
	return nil
}

type connectRequest struct {
	Container      string
	Force          bool
	EndpointConfig *endpointRequest
}

// connectNetwork gives a container more names.
func (b *Broker) connectNetwork(w http.ResponseWriter, r *http.Request, c *call) error {
	n, child, req, err := b.endpoint(r, c)
	if err != nil {
		return err
	}
	if child.wanted.isolated || n.name == "none" {
		return refuse(RuleNetwork, "make it in that network", "a container without a network can't be given one")
	}
	var aliases []string
	if req.EndpointConfig != nil {
		aliases = req.EndpointConfig.Aliases
	}
	if err := checkAliases(n.name, aliases); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	child.networks[n.id] = slices.Clone(aliases)
	b.writeNamesLocked()
	w.WriteHeader(http.StatusOK)
	return nil
}

func (b *Broker) disconnectNetwork(w http.ResponseWriter, r *http.Request, c *call) error {
	n, child, _, err := b.endpoint(r, c)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(child.networks, n.id)
	b.writeNamesLocked()
	w.WriteHeader(http.StatusOK)
	return nil
}

func (b *Broker) endpoint(r *http.Request, c *call) (*network, *child, *connectRequest, error) {
	var req connectRequest
	if err := readBody(r, &req); err != nil {
		return nil, nil, nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.findNetwork(c.names[0])
	if n == nil {
		return nil, nil, nil, missing("network", c.names[0])
	}
	child, err := b.lookup(req.Container)
	return n, child, &req, err
}
