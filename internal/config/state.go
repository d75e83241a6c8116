package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
)

// scalar is a value in force; entry is one of a list.
type scalar struct {
	value any
	at    Place
}

type entry struct {
	text string
	at   Place
}

// reach is a path entry's access, and where it was stated.
type reach struct {
	access bawn.Access
	at     Place
}

// narrowing is a path that an untrusted project file closes. It is applied
// after all others and never gives more than they do.
type narrowing struct {
	path string
	reach
}

// state is the result of some of the layers.
type state struct {
	paths    paths
	scalars  map[string]scalar
	lists    map[string][]entry
	reaches  map[string]reach // of trusted layers, by path
	narrowed []narrowing
	requests []entry // HTTP entries of an untrusted project, which limit hosts
	autonomy *scalar // most that an untrusted project file leaves
	pins     map[string]Place
	profiles map[string]*profile
	guard    []string // what the agent obeys
	owned    []string // its output, whatever its name
	private  map[string]reach
	closed   []string // hosts that it does without
	closedBy Layer    // that closes the home
	shut     []string // what a closed home hides
	unasked  bool     // an untrusted project's file counts
	sealed   bool     // nothing but what flags give
}

// newState returns the program's own defaults.
func newState(m Machine, p paths) *state {
	st := &state{
		paths: p, scalars: map[string]scalar{}, lists: map[string][]entry{},
		reaches:  map[string]reach{p.workspace: {access: bawn.ReadWrite}},
		pins:     map[string]Place{},
		profiles: builtinProfiles(m, p),
	}
	for path, value := range map[string]any{
		"mode": "normal", "agent": "", "isolation.enabled": true, "isolation.provider": "",
		"isolation.policy_profile": "default", "isolation.upstream_proxy": "", "isolation.ssh_agent": false, "isolation.mask_env": "strict", "isolation.log_programs": false, "isolation.while_away": "commands",
		"isolation.allow_fallback_to_host": false, "isolation.runsc": "", "isolation.gvisor_accept_unprotected": false, "isolation.docker_api": false, "isolation.copy": false,
		"isolation.docker_options.image": "", "isolation.docker_options.workspace": "/workspace", "isolation.docker_options.memory_swap_mb": int64(0),
		"isolation.docker_options.runtime": "", "isolation.docker_options.host": "",
		"isolation.docker_options.accept_escapes": false,
		"isolation.split":                         false, agentProfileKey: true, "isolation.split_workspace": bawn.ReadWrite.String(),
	} {
		st.scalars[path] = scalar{value: value}
	}
	for _, s := range st.profiles["default"].settings {
		st.put(s)
	}
	return st
}

func (st *state) clone() *state {
	c := *st
	c.scalars, c.reaches = maps.Clone(st.scalars), maps.Clone(st.reaches)
	c.pins, c.profiles = maps.Clone(st.pins), maps.Clone(st.profiles)
	c.narrowed, c.requests = slices.Clip(st.narrowed), slices.Clip(st.requests)
	c.lists = make(map[string][]entry, len(st.lists))
	for k, v := range st.lists {
		c.lists[k] = slices.Clip(v)
	}
	return &c
}

// put states a value without asking whether it may.
func (st *state) put(s setting) {
	if s.key.kind != list {
		st.scalars[s.key.path] = scalar{s.value, s.at}
		return
	}
	for _, it := range s.items {
		if !st.has(s.key, it.text) {
			st.append(s.key, it)
		}
	}
}

// append adds an entry; where it is a path it counts from now on.
func (st *state) append(k *key, it item) {
	st.lists[k.path] = append(st.lists[k.path], entry(it))
	if access, ok := accessOf(k, it.text); ok {
		st.reach(it.text, reach{access, it.at})
	}
}

// reach notes a path's access: a later layer wins, and inside one layer the
// stricter entry.
func (st *state) reach(path string, r reach) {
	old, ok := st.reaches[path]
	if ok && old.at.Layer == r.at.Layer && old.access < r.access {
		return
	}
	st.reaches[path] = r
}

// accessOf returns the access of an entry of the key, if it is a path.
func accessOf(k *key, text string) (bawn.Access, bool) {
	switch k.path {
	case "isolation.rw":
		return bawn.ReadWrite, true
	case "isolation.ro":
		return bawn.ReadOnly, true
	case "isolation.open":
		return bawn.ReadOnly, strings.HasPrefix(text, "/")
	case "isolation.deny":
		return bawn.Hidden, !fspath.IsPattern(text)
	}
	return bawn.Hidden, false
}

// has reports whether the list holds exactly this entry.
func (st *state) has(k *key, text string) bool {
	return slices.ContainsFunc(st.lists[k.path], func(e entry) bool { return e.text == text })
}

// access is what the trusted layers give at path: the longest covering path
// counts, and an uncovered one is read-only. Where a file system may ignore
// case the stricter reading counts.
func (st *state) access(path string) bawn.Access {
	same := func(s string) string { return s }
	return min(st.longest(path, same), st.longest(path, strings.ToLower))
}

func (st *state) longest(path string, fold func(string) string) bawn.Access {
	access, length := bawn.ReadOnly, -1
	for p, r := range st.reaches {
		if !fspath.Below(fold(path), fold(p)) {
			continue
		}
		if len(p) > length || len(p) == length && r.access < access {
			access, length = r.access, len(p)
		}
	}
	return access
}

// cover returns the longest path that decides on path, or "".
func (st *state) cover(path string) string {
	longest := ""
	for p := range st.reaches {
		if fspath.Below(path, p) && len(p) > len(longest) {
			longest = p
		}
	}
	return longest
}

// pinned returns the place that pins the key, if one does.
func (st *state) pinned(path string) (Place, bool) {
	for {
		if at, ok := st.pins[path]; ok {
			return at, true
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return Place{}, false
		}
		path = path[:i]
	}
}

// chain returns the profile with those it extends, the base first.
func (st *state) chain(name string, at Place) ([]*profile, error) {
	var chain []*profile
	for name != "" {
		p, ok := st.profiles[name]
		if !ok {
			return nil, &Error{Place: at, Problem: fmt.Sprintf("unknown profile %q; want one of %q", name, st.profileNames()),
				Hint: didYouMean(name, st.profileNames())}
		}
		if slices.Contains(chain, p) {
			return nil, &Error{Place: at, Problem: fmt.Sprintf("profile %q extends itself", name)}
		}
		if chain = append(chain, p); len(chain) > maxChain {
			return nil, &Error{Place: at, Problem: fmt.Sprintf("more than %d profiles extend one another", maxChain)}
		}
		name, at = p.extends, p.extendsAt
	}
	slices.Reverse(chain)
	return chain, nil
}

func (st *state) profileNames() []string { return slices.Sorted(maps.Keys(st.profiles)) }
