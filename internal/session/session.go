// Package session says what a session may have that another one starts: the
// meet of what its parent has and of what is asked for (SPEC K7). A child is
// never above its parent, whatever its definition says, and never above what
// was asked for either.
//
// The zero value of what grants something grants nothing, and of two lists only
// what both hold is kept: an empty list is never "everything". What limits (a
// maximum, Protect) is the stricter of both. Who wants all that the parent has
// says so with Inherit.
//
// The package compares words. Paths must be those that links lead to, as the
// host sees them: a guest can make a link in its workspace that leads elsewhere.
// Limits are each session's own; that a parent and its children together stay
// below the parent's is up to control groups.
package session

import (
	"fmt"
	"slices"
	"time"

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

// Providers are what is known of providers: by name, what each enforces.
type Providers map[string][]bawn.Capability

// Inherit returns a request for all that the parent has. A definition that
// narrows starts from it; one that starts from the zero Session gets nothing.
// The lists are copies: changing them doesn't change the parent.
func Inherit(parent bawn.Session) bawn.Session {
	parent.Parent, parent.ID, parent.Started = parent.ID, "", time.Time{}
	iso := &parent.Isolation
	e := &iso.Egress
	iso.Mounts = slices.Clone(iso.Mounts)
	for _, list := range []*[]string{&iso.Env, &iso.SetEnv, &iso.CacheDirs, &iso.Devices, &e.Hosts, &e.HTTP, &e.Git, &e.Closed, &e.HostPorts, &e.Ports, &e.Secrets} {
		*list = slices.Clone(*list)
	}
	return parent
}

// Meet returns the most that is neither above the parent nor above what is
// asked for, with what was asked for and is not given. ID, agent, profile and
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
	out.DockerAPI = a.DockerAPI && b.DockerAPI
	return out
}

// Below reports whether a has nothing that b has not, and no limit of b less.
// It never says so wrongly; it may say no where patterns overlap in a way that
// can't be followed, and does for a session that can't be read.
func Below(a, b bawn.Session) bool { return Providers(nil).Below(a, b) }

// Below is Below with knowledge of providers.
func (known Providers) Below(a, b bawn.Session) bool {
	if check(a) != nil || check(b) != nil || !trustBelow(a, b) || !known.below(a.Provider, b.Provider) {
		return false
	}
	x, y := a.Isolation, b.Isolation
	return placesBelow(x, y) && meetPath(x.Workspace, y.Workspace) == x.Workspace && networkBelow(x, y) && envBelow(x, y) &&
		meetResources(x.Resources, y.Resources) == meetResources(x.Resources, x.Resources) && subset(x.Devices, y.Devices) && (x.Protect || !y.Protect) && subset(x.Unprotected, y.Unprotected) && (!x.DockerAPI || y.DockerAPI)
}
