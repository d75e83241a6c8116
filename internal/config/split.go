package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// splitAccess are the values of isolation.split_workspace.
var splitAccess = []string{bawn.ReadOnly.String(), bawn.ReadWrite.String()}

// A Split says how a session keeps its agent and what that executes apart. Its
// zero value does not.
type Split struct {
	On bool
	// Workspace is the agent's own access to it, bawn.ReadOnly or
	// bawn.ReadWrite, at most that of the isolation.
	Workspace bawn.Access
	// Hosts and HostPorts are the agent's destinations, in the forms of
	// bawn.Egress.
	Hosts, HostPorts []string
}

// Split returns how the session is split. If it has no network, the agent
// reaches only model hosts that a file or flag names, and none of the built-in
// ones.
func (c *Config) Split() Split {
	s := Split{On: c.st.scalars["isolation.split"].value == true, Workspace: bawn.ReadOnly}
	if c.st.text("isolation.split_workspace") == bawn.ReadWrite.String() {
		s.Workspace = bawn.ReadWrite
	}
	none := c.st.text("isolation.network") == bawn.NetworkNone.String()
	s.Hosts, s.HostPorts = c.st.models(func(l Layer) bool { return !none || l != Builtin })
	return s
}

// models are the hosts and the ports of the host's loopback that entries of some layers
// name.
func (st *state) models(of func(Layer) bool) (hosts, ports []string) {
	for _, e := range st.lists["isolation.models"] {
		switch {
		case !of(e.at.Layer):
		case isHostPort(e.text):
			ports = append(ports, e.text)
		default:
			hosts = append(hosts, e.text)
		}
	}
	return hosts, ports
}

// wholeModels are the models that a session which is not split reaches besides its
// hosts and ports: those that its user has named. The built-in ones are among the
// hosts of the built-in profile, and a project names none.
func (st *state) wholeModels() (hosts, ports []string) {
	if st.scalars["isolation.split"].value == true {
		return nil, nil
	}
	hosts, ports = st.models(func(l Layer) bool { return l != Builtin && l != Project })
	if st.isPinned("isolation.hosts") {
		hosts = nil
	}
	if st.isPinned("isolation.host_ports") {
		ports = nil
	}
	return hosts, ports
}

func isHostPort(text string) bool {
	_, err := netrule.ParseHostPort(text)
	return err == nil
}

// modelEntry accepts the address of a model: a URL, a host, or a port of the host's
// loopback.
func modelEntry(s string, _ paths) (string, error) {
	at := s
	if strings.Contains(s, "://") {
		var err error
		if at, err = addressOf(s); err != nil {
			return "", err
		}
	}
	if p, err := netrule.ParseHostPort(at); err == nil {
		return p.String(), nil
	}
	h, err := netrule.ParseHost(at)
	if err != nil {
		return "", fmt.Errorf("%w; a model on this machine is http://127.0.0.1:11434, or its port", err)
	}
	return h.String(), nil
}

// addressOf is the destination of a model's URL: a port of the host's loopback, or
// HOST:PORT. Its path does not count.
func addressOf(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Hostname() == "" {
		return "", fmt.Errorf("%q: want the address of a model, such as http://127.0.0.1:11434", s)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if port == "" {
		return "", fmt.Errorf("%q: want http or https, such as http://127.0.0.1:11434", s)
	}
	if a, err := netip.ParseAddr(u.Hostname()); u.Hostname() == "localhost" || err == nil && a.IsLoopback() {
		return port, nil
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

// unsplit reports flags about a split session if the session is not split. The user
// who typed them believes that they take effect.
func (st *state) unsplit(f Flags) error {
	if st.scalars["isolation.split"].value == true {
		return nil
	}
	var errs Errors
	if f.SplitWorkspace != nil {
		const flag = "--split-workspace"
		errs.add(&Error{Place: flagPlace(flag), Problem: "it would not count, since the session is not split; want --split",
			Hint: "leave " + flag + " out, or say --split"})
	}
	network := st.text("isolation.network")
	for _, text := range f.Models {
		text, err := modelEntry(text, st.paths)
		if err != nil {
			continue // it has been reported
		}
		k := find("isolation.hosts")
		if isHostPort(text) {
			k = find("isolation.host_ports")
		}
		at, pinned := st.pinned(k.path)
		switch {
		case network == bawn.NetworkNone.String():
			errs.add(&Error{Place: flagPlace("--model"), Problem: "it would not count, since the session has no network; want --net allowlist, or --split",
				Hint: "with --split the agent reaches its model, and its commands have no network"})
		case network == bawn.NetworkFull.String() && !isHostPort(text): // it is reached
		case network == bawn.NetworkFull.String():
			errs.add(&Error{Place: flagPlace("--model"), Problem: fmt.Sprintf("it would not count, since the network is %q; want --net allowlist", network),
				Hint: "leave --net full out"})
		case pinned:
			errs.take(flagPlace("--model"), pinnedError(flagPlace("--model"), k.path, at))
		}
	}
	return errs.err()
}

// closedNetwork finds model hosts in a session to which who manages the machine
// gives no network.
func (st *state) closedNetwork() error {
	at, pinned := st.pinned("isolation.network")
	if !pinned || st.text("isolation.network") != bawn.NetworkNone.String() {
		return nil
	}
	var errs Errors
	for _, e := range st.lists["isolation.models"] {
		if e.at.Layer > Managed {
			errs.take(e.at, pinnedError(e.at, "isolation.network", at))
		}
	}
	return errs.err()
}
