package config

import (
	"fmt"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// splitAccess are the values of isolation.split_workspace.
var splitAccess = []string{bawn.ReadOnly.String(), bawn.ReadWrite.String()}

// A Split says how a session keeps its agent and what that executes apart. Its
// zero value does not.
type Split struct {
	On bool
	// Workspace is what the agent itself may do with it, bawn.ReadOnly or
	// bawn.ReadWrite; it only takes away from what the isolation gives.
	Workspace bawn.Access
	// Hosts and HostPorts are what the agent reaches, in the forms of
	// bawn.Egress.
	Hosts, HostPorts []string
}

// Split returns how the session is split. Where it has no network, the agent
// reaches the model hosts that somebody has named, and none of the built-in
// ones.
func (c *Config) Split() Split {
	s := Split{On: c.st.scalars["isolation.split"].value == true, Workspace: bawn.ReadOnly}
	if c.st.text("isolation.split_workspace") == bawn.ReadWrite.String() {
		s.Workspace = bawn.ReadWrite
	}
	none := c.st.text("isolation.network") == bawn.NetworkNone.String()
	for _, e := range c.st.lists["isolation.model_hosts"] {
		switch {
		case none && e.at.Layer == Builtin:
		case isHostPort(e.text):
			s.HostPorts = append(s.HostPorts, e.text)
		default:
			s.Hosts = append(s.Hosts, e.text)
		}
	}
	return s
}

func isHostPort(text string) bool {
	_, err := netrule.ParseHostPort(text)
	return err == nil
}

// modelEntry accepts a host, or a port of the host's loopback: models run there
// too.
func modelEntry(s string, _ paths) (string, error) {
	if p, err := netrule.ParseHostPort(s); err == nil {
		return p.String(), nil
	}
	h, err := netrule.ParseHost(s)
	if err != nil {
		return "", fmt.Errorf("%w; a model on this machine is named by its port, such as 11434", err)
	}
	return h.String(), nil
}

// unsplit reports flags about a split session if the session is not split. The user
// who typed them believes that they take effect.
func (st *state) unsplit(f Flags) error {
	if st.scalars["isolation.split"].value == true {
		return nil
	}
	var errs Errors
	for flag, given := range map[string]bool{"--split-workspace": f.SplitWorkspace != nil, "--model-host": len(f.ModelHosts) > 0} {
		if given {
			errs.add(&Error{Place: flagPlace(flag), Problem: "it would not count, since the session is not split; want --split",
				Hint: "leave " + flag + " out, or say --split"})
		}
	}
	return errs.err()
}

// closedNetwork finds model hosts that somebody names in a session to which who
// manages the machine gives no network.
func (st *state) closedNetwork() error {
	at, pinned := st.pinned("isolation.network")
	if !pinned || st.text("isolation.network") != bawn.NetworkNone.String() {
		return nil
	}
	var errs Errors
	for _, e := range st.lists["isolation.model_hosts"] {
		if e.at.Layer > Managed {
			errs.take(e.at, pinnedError(e.at, "isolation.network", at))
		}
	}
	return errs.err()
}
