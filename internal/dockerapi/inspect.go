package dockerapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/sandbox/maker"
)

// inspectContainer shows a container: its state from the engine, the rest as
// the guest asked for it. Paths of the host are left out.
func (b *Broker) inspectContainer(w http.ResponseWriter, r *http.Request, c *call) error {
	child, err := b.find(c.names[0])
	if err != nil {
		return err
	}
	var full map[string]any
	if err := b.engine.do(r.Context(), message{method: http.MethodGet, path: "/containers/" + child.id + "/json"}, &full); err != nil {
		return b.forgetIfGone(child, err)
	}
	out := only(full, "Id", "Created", "Path", "Args", "State", "Image", "RestartCount", "Driver", "Platform", "ExecIDs", "Config")
	if state, ok := out["State"].(map[string]any); ok {
		state["Pid"] = 0 // the host's numbers are not the guest's
	}
	config, _ := out["Config"].(map[string]any)
	if config == nil {
		config = map[string]any{}
	}
	config["Labels"] = guestLabels(texts(config["Labels"]))
	config["Image"] = child.wanted.request.Image
	if child.wanted.hostname != "" {
		config["Hostname"] = child.wanted.hostname
	}
	out["Config"], out["Name"] = config, "/"+b.nameOf(child)
	out["HostConfig"], out["NetworkSettings"] = child.hostConfig(b.budget.of(child)), b.networkSettings(child)
	out["Mounts"] = append([]shownMount{}, child.mounts...)
	writeJSON(w, http.StatusOK, out)
	return nil
}

func (b *Broker) nameOf(c *child) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.wanted.name
}

// hostConfig is what the guest asked for, with the limits that it got.
func (c *child) hostConfig(got share) hostRequest {
	h := c.wanted.request.HostConfig
	h.Memory, h.MemorySwap, h.NanoCpus, h.PidsLimit = got.memory, got.memory, got.nano, &got.pids
	h.CapDrop, h.SecurityOpt = c.wanted.body.HostConfig.CapDrop, c.wanted.body.HostConfig.SecurityOpt
	if h.NetworkMode == "" {
		h.NetworkMode = "default"
	}
	h.RestartPolicy.Name, h.LogConfig.Type = "no", c.wanted.body.HostConfig.LogConfig.Type
	return h
}

// A networkShown is how a container is in a network.
type networkShown struct {
	NetworkID, EndpointID, Gateway, IPAddress string
	IPPrefixLen                               int
	Aliases                                   []string
}

type networkSettings struct {
	Bridge, SandboxID, Gateway, IPAddress string
	Ports                                 portMap
	Networks                              map[string]networkShown
}

func (b *Broker) networkSettings(c *child) networkSettings {
	s := networkSettings{Ports: c.portMap(), Networks: b.shownNetworks(c)}
	if !c.wanted.isolated {
		s.IPAddress = "127.0.0.1"
	}
	return s
}

func (b *Broker) shownNetworks(c *child) map[string]networkShown {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]networkShown{}
	for id, aliases := range c.networks {
		n := b.networks[id]
		if n == nil {
			continue
		}
		v := networkShown{NetworkID: id, EndpointID: c.id, Aliases: append(slices.Clone(aliases), c.id[:12])}
		if n.name != "none" {
			v.IPAddress, v.IPPrefixLen = "127.0.0.1", 8
		}
		out[n.name] = v
	}
	return out
}

// listContainers lists the session's own.
func (b *Broker) listContainers(w http.ResponseWriter, r *http.Request, c *call) error {
	if err := c.knownFilters("label", "name", "status", "id", "ancestor", "network", "health", "exited"); err != nil {
		return err
	}
	query := url.Values{}
	if c.flag("all") || len(c.filters["status"]) > 0 || len(c.filters["exited"]) > 0 {
		query.Set("all", "1")
	}
	query.Set("filters", b.engineFilters(c))
	var all []map[string]any
	if err := b.engine.do(r.Context(), message{method: http.MethodGet, path: "/containers/json", query: query}, &all); err != nil {
		return err
	}
	list := []map[string]any{}
	for _, item := range all {
		id, _ := item["Id"].(string)
		child, err := b.find(id)
		if err != nil || child.id != id || !b.listed(child, c) {
			continue
		}
		list = append(list, b.item(child, item))
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// engineFilters are those that the engine applies, the session's label first.
func (b *Broker) engineFilters(c *call) string {
	filters := map[string][]string{"label": append([]string{maker.LabelSession + "=" + b.o.Session.ID}, c.filters["label"]...)}
	for _, name := range []string{"status", "health", "exited", "ancestor"} {
		if v := c.filters[name]; len(v) > 0 {
			filters[name] = v
		}
	}
	return filterText(filters)
}

// listed applies the filters that are about what only the broker knows.
func (b *Broker) listed(child *child, c *call) bool {
	name := b.nameOf(child)
	networks := b.shownNetworks(child)
	return c.wants("name", func(f string) bool { return strings.Contains("/"+name, strings.Trim(f, "^$")) }) &&
		c.wants("id", func(f string) bool { return strings.HasPrefix(child.id, f) }) &&
		c.wants("network", func(f string) bool {
			for n, shown := range networks {
				if n == f || shown.NetworkID == f {
					return true
				}
			}
			return false
		})
}

// item is one entry of the list.
func (b *Broker) item(child *child, full map[string]any) map[string]any {
	out := only(full, "Id", "Image", "ImageID", "Command", "Created", "State", "Status")
	out["Image"] = child.wanted.request.Image
	out["Names"], out["Ports"], out["Labels"] = []string{"/" + b.nameOf(child)}, child.listedPorts(), guestLabels(texts(full["Labels"]))
	out["HostConfig"] = map[string]string{"NetworkMode": child.hostConfig(share{}).NetworkMode}
	out["NetworkSettings"] = map[string]any{"Networks": b.shownNetworks(child)}
	out["Mounts"] = append([]shownMount{}, child.mounts...)
	return out
}
