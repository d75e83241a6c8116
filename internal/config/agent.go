package config

import (
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// agentProfileKey turns profiles of agents off.
const agentProfileKey = "isolation.agent_profile"

// An AgentProfile describes the agent that a session starts: its needs, and the
// files that it must not change. Files and flags count as much as before: what
// they close stays closed, and where a key is pinned the profile adds nothing.
type AgentProfile struct {
	Name string
	RW   []string // absolute: where it keeps its state
	Open []string // absolute: other files that it reads, hidden from others
	// Guard are absolute paths, existing or not, that stay unchanged below
	// writable places, unless a file or flag names exactly one of them as
	// writable.
	Guard []string
	// Private are absolute directories in RW that are empty in a session and gone at
	// its end, unless a file or flag names exactly one of them.
	Private []string
	// Owned are files that it writes though their names are protected.
	Owned  []string
	Env    []string // as in isolation.env
	Caches []string // absolute directories, as in isolation.cache_dirs
	// Models are hosts, as in isolation.hosts. Where there are any, they are
	// the built-in ones that the agent of a split session reaches.
	Models []string
	// Closed are hosts, as in isolation.hosts, that are refused without a question
	// unless an entry names them.
	Closed []string
}

// at is the place of the profile's settings.
func (a *AgentProfile) at() Place { return Place{Via: "agent " + a.Name} }

// agent lays the profile over the settings of the program itself, the managed and
// the user's file.
func (st *state) agent(a *AgentProfile) error {
	if a == nil || st.scalars[agentProfileKey].value != true {
		return nil
	}
	if len(a.Models) > 0 && !st.isPinned("isolation.models") {
		st.lists["isolation.models"] = slices.DeleteFunc(st.lists["isolation.models"], func(e entry) bool { return e.at == Place{} })
	}
	var errs Errors
	for _, l := range []struct {
		path    string
		entries []string
	}{
		{"isolation.rw", a.RW}, {"isolation.open", a.Open}, {"isolation.env", a.Env}, {"isolation.cache_dirs", a.Caches},
		{"isolation.hosts", a.Models}, {"isolation.models", a.Models},
	} {
		if st.isPinned(l.path) {
			continue
		}
		k := find(l.path)
		for _, e := range l.entries {
			text, err := k.entry(e, st.paths)
			errs.take(a.at(), err)
			if err == nil && !st.has(k, text) && !st.said(k, text) {
				st.append(k, item{text, a.at()})
			}
		}
	}
	st.guard, st.private, st.owned, st.closed = slices.Clone(a.Guard), privateOf(a), slices.Clone(a.Owned), slices.Clone(a.Closed)
	return errs.err()
}

// said reports whether somebody has said something else of the same place, or set
// the same variable.
func (st *state) said(k *key, text string) bool {
	if _, place := accessOf(k, text); place {
		_, said := st.reaches[text]
		return said
	}
	name, _, set := strings.Cut(text, "=")
	return set && k.path == "isolation.env" && slices.ContainsFunc(st.lists[k.path], func(e entry) bool {
		return !e.at.ofAgent() && (e.text == name || strings.HasPrefix(e.text, name+"="))
	})
}

func (st *state) isPinned(path string) bool {
	_, pinned := st.pinned(path)
	return pinned
}

// yield closes again what the profile opens and another file or a flag has
// closed.
func (st *state) yield() {
	for _, key := range []string{"isolation.rw", "isolation.open"} {
		st.lists[key] = slices.DeleteFunc(slices.Clone(st.lists[key]), func(e entry) bool {
			access, place := accessOf(find(key), e.text)
			if !place || !e.at.ofAgent() || !st.closedAround(e.text, access) {
				return false
			}
			if st.reaches[e.text].at.ofAgent() {
				delete(st.reaches, e.text)
			}
			return true
		})
	}
}

// ofAgent reports whether an agent's profile says so.
func (p Place) ofAgent() bool {
	return p.Layer == Builtin && strings.HasPrefix(p.Via, "agent ")
}

// closedAround reports whether somebody gives less of a place that path lies in,
// or is.
func (st *state) closedAround(path string, access bawn.Access) bool {
	around := func(p string, r reach) bool {
		return !r.at.ofAgent() && p != st.paths.workspace && r.access < access && fspath.Below(path, p)
	}
	for p, r := range st.reaches {
		if around(p, r) {
			return true
		}
	}
	return slices.ContainsFunc(st.narrowed, func(n narrowing) bool { return around(n.path, n.reach) })
}

// closedHosts are those that the profile closes and no entry speaks of.
func (st *state) closedHosts() []string {
	return slices.DeleteFunc(slices.Clone(st.closed), func(host string) bool {
		about := func(key string, in func(string) (netrule.Host, error)) bool {
			return slices.ContainsFunc(st.lists[key], func(e entry) bool {
				h, err := in(e.text)
				c, wrong := netrule.ParseHost(host)
				return err != nil || wrong != nil || h.Overlaps(c)
			})
		}
		return about("isolation.hosts", netrule.ParseHost) || about("isolation.http", hostOf(netrule.ParseHTTP)) || about("isolation.git", hostOf(netrule.ParseGit))
	})
}

// hostOf returns the host that an entry speaks of.
func hostOf[T interface{ Host() netrule.Host }](parse func(string) (T, error)) func(string) (netrule.Host, error) {
	return func(text string) (h netrule.Host, err error) {
		e, err := parse(text)
		if err == nil {
			h = e.Host()
		}
		return h, err
	}
}

// Guarded lists the places, there or not, that the agent obeys and the session
// must not change.
func (c *Config) Guarded() []string {
	return slices.DeleteFunc(slices.Clone(c.st.guard), func(p string) bool {
		r, said := c.st.reaches[p]
		return said && r.access == bawn.ReadWrite && !r.at.ofAgent()
	})
}

// Owned lists the files that the agent writes though their names are protected.
func (c *Config) Owned() []string { return slices.Clone(c.st.owned) }

// AgentProfile reports whether the profile of a known agent counts.
func (c *Config) AgentProfile() bool { return c.st.scalars[agentProfileKey].value == true }

// keepPrivate adds the agent's directories that a session has for itself, where
// they would be writable and nobody says anything of exactly them.
func (st *state) keepPrivate(all map[string]reach) {
	for p, r := range st.private {
		longest := ""
		for around := range all {
			if fspath.Below(p, around) && len(around) > len(longest) {
				longest = around
			}
		}
		if longest != p && all[longest].access == bawn.ReadWrite {
			all[p] = r
		}
	}
}

// privateOf are the places that a profile keeps to a session.
func privateOf(a *AgentProfile) map[string]reach {
	all := map[string]reach{}
	for _, p := range a.Private {
		all[p] = reach{bawn.Private, a.at()}
	}
	return all
}

// AgentWrites lists the places that the agent's profile has opened for writing.
func (c *Config) AgentWrites() []string {
	var list []string
	for path, r := range c.st.reaches {
		if r.at.ofAgent() && r.access == bawn.ReadWrite {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}
