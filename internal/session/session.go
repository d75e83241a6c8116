// Package session computes the rights of a session that another one starts: the
// meet of its parent's rights and its request. A child is never above its
// parent, whatever its definition says, and never above its request either.
//
// The zero value of what grants something grants nothing, and of two lists only
// what both hold is kept: an empty list is never "everything". For limits (a
// maximum, Protect) the stricter of both counts. A child that asks for all of
// its parent's rights gets them.
//
// The package compares words. Paths must be those that links lead to, as the
// host sees them: a guest can make a link in its workspace that leads elsewhere.
// Limits are each session's own; that a parent and its children together stay
// below the parent's is up to control groups.
package session

import (
	"fmt"

	"github.com/bawn-dev/bawn"
)

// A Narrowed is something that was asked for and not given.
type Narrowed struct {
	Attribute string // for example "mode", "mounts", "egress.hosts"
	Path      string // of "mounts", with which Asked begins
	Asked     string
	Given     string // "" for nothing
	Why       string
}

// A MeetError says that no session is below both, so that none can be started.
type MeetError struct{ Attribute, Parent, Asked, Remedy string }

// Error names both sides and what to ask for.
func (e *MeetError) Error() string {
	return fmt.Sprintf("%s %q can't be started from %q: neither is stricter in all; %s", e.Attribute, e.Asked, e.Parent, e.Remedy)
}

// Providers lists, by name, what each provider enforces.
type Providers map[string][]bawn.Capability

// Meet returns the most that is neither above the parent nor above the request,
// with the parts of the request that are not given. ID, agent, profile and
// start are those of asked, and the parent is the parent. It errs where one of
// both can't be read, or where nothing is below both.
func Meet(parent, asked bawn.Session) (bawn.Session, []Narrowed, error) {
	return Providers(nil).Meet(parent, asked)
}

// Meet is Meet with knowledge of providers: of two the stronger counts, if one
// of them is.
func (known Providers) Meet(parent, asked bawn.Session) (bawn.Session, []Narrowed, error) {
	if parent.ID == "" || parent.ID == asked.ID {
		return bawn.Session{}, nil, fmt.Errorf("session %q starts session %q: want a parent with a name, and another for the child", parent.ID, asked.ID)
	}
	for _, s := range []bawn.Session{parent, asked} {
		if err := check(s); err != nil {
			return bawn.Session{}, nil, fmt.Errorf("session %q: %w", s.ID, err)
		}
	}
	given := asked
	given.Parent = parent.ID
	var err error
	if given.Mode, given.Autonomy, err = meetTrust(parent, asked); err != nil {
		return bawn.Session{}, nil, err
	}
	if given.Provider, err = known.meet(parent.Provider, asked.Provider); err != nil {
		return bawn.Session{}, nil, err
	}
	given.Isolation = meetIsolation(parent.Isolation, asked.Isolation)
	return given, narrowed(parent, asked, given), nil
}

func meetIsolation(a, b bawn.Isolation) bawn.Isolation {
	out := meetPlaces(a, b)
	out.Profile = b.Profile
	out.Workspace = meetPath(a.Workspace, b.Workspace)
	out.Network, out.Egress = meetNetwork(a, b)
	out.Env, out.SetEnv = meetEnv(a, b)
	out.Resources = meetResources(a.Resources, b.Resources)
	out.Devices = both(a.Devices, b.Devices)
	out.Protect, out.Unprotected = a.Protect || b.Protect, both(a.Unprotected, b.Unprotected)
	out.MaskEnv, out.LogPrograms = a.MaskEnv || b.MaskEnv, a.LogPrograms || b.LogPrograms
	out.DockerAPI = a.DockerAPI && b.DockerAPI
	return out
}
