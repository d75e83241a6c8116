package session

import (
	"maps"
	"path"
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
)

// A power is a session's abilities at a path, as a set, so that the meet of two
// is their intersection. Access alone is not a chain: read-only shows the
// host's files and keeps nothing, private keeps something and shows nothing of
// the host's. Neither is above the other, so their meet hides the path.
type power uint8

const (
	shown   power = 1 << iota // the content of a path that no mount covers
	read                      // the host's files there, also if not shown by themselves
	scratch                   // a place of the session's own
	cache                     // the copy of a package cache that Bawn keeps between sessions
	write                     // to the host
)

// The powers that can be said. A session that may write the host's cache may use
// the copy too: the copy is made for less trusted sessions.
const (
	hidden       power = 0
	byDefault          = shown
	readOnly           = shown | read
	private            = scratch
	privateCache       = scratch | cache
	readWrite          = shown | read | scratch | cache | write
)

var accessOf = map[power]bawn.Access{hidden: bawn.Hidden, readOnly: bawn.ReadOnly, private: bawn.Private, readWrite: bawn.ReadWrite}

var powerOf = map[bawn.Access]power{bawn.Hidden: hidden, bawn.ReadOnly: readOnly, bawn.Private: private, bawn.ReadWrite: readWrite}

var powerNames = map[power]string{hidden: "hidden", byDefault: "as without a mount", readOnly: "read-only", private: "private", privateCache: "private cache", readWrite: "read-write"}

// A table lists the abilities below paths; the longest path that covers one
// counts.
type table map[string]power

// tableOf holds the caches and, where both name a path, the mounts: as it is
// when a sandbox is built.
func tableOf(iso bawn.Isolation) table {
	t := table{}
	for _, dir := range iso.CacheDirs {
		switch iso.Caches {
		case bawn.CachePrivate:
			t[dir] = privateCache
		case bawn.CacheShared:
			t[dir] = readWrite
		}
	}
	for _, m := range iso.Mounts {
		t[m.Path] = powerOf[m.Access]
	}
	return t
}

// at returns the power at a path, and whether an entry says so.
func (t table) at(p string) (power, bool) {
	for {
		if v, ok := t[p]; ok {
			return v, true
		}
		if p == "/" {
			return byDefault, false
		}
		p = path.Dir(p)
	}
}

// above is at without the path's own entry.
func (t table) above(p string) (power, bool) {
	if p == "/" {
		return byDefault, false
	}
	return t.at(path.Dir(p))
}

// paths lists those of several tables, outer ones before inner ones.
func paths(tables ...table) []string {
	all := map[string]bool{}
	for _, t := range tables {
		for p := range t {
			all[p] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// meetTables returns the most that is below both at every path. An uncovered
// place can't be expressed below a mount, so such a path is hidden. An entry
// that says nothing new is kept only if both tables have it.
func meetTables(a, b table) table {
	out := table{}
	for _, p := range paths(a, b) {
		va, _ := a.at(p)
		vb, _ := b.at(p)
		_, inA := a[p]
		_, inB := b[p]
		v := va & vb
		above, covered := out.above(p)
		switch {
		case v == byDefault && !covered:
			continue
		case v == byDefault:
			v = hidden
		}
		if v != above || !covered || inA && inB {
			out[p] = v
		}
	}
	return out
}

// meetPlaces returns an isolation with the mounts and caches that both have.
func meetPlaces(a, b bawn.Isolation) bawn.Isolation {
	var out bawn.Isolation
	t := meetTables(tableOf(a), tableOf(b))
	for _, p := range paths(t) {
		switch v := t[p]; {
		case v == privateCache:
			out.Caches, out.CacheDirs = bawn.CachePrivate, append(out.CacheDirs, p)
		case v == readWrite && sharesCache(a, p) && sharesCache(b, p):
			out.Caches, out.CacheDirs = bawn.CacheShared, append(out.CacheDirs, p)
		default:
			out.Mounts = append(out.Mounts, bawn.Mount{Path: p, Access: accessOf[v], Why: why(p, b, a)})
		}
	}
	return out
}

// sharesCache reports whether the path is one of the host's caches, and no mount
// of its own: it needn't exist.
func sharesCache(iso bawn.Isolation, p string) bool {
	return iso.Caches == bawn.CacheShared && slices.Contains(iso.CacheDirs, p) && mountAt(iso, p) < 0
}

func mountAt(iso bawn.Isolation, p string) int {
	return slices.IndexFunc(iso.Mounts, func(m bawn.Mount) bool { return m.Path == p })
}

// why says where a mount comes from: the first of those that name its path.
func why(p string, isos ...bawn.Isolation) string {
	for _, iso := range isos {
		if i := mountAt(iso, p); i >= 0 {
			return iso.Mounts[i].Why
		}
	}
	return "what both sessions have of it"
}

// Exceeds returns the places at which a child would see or write more of the
// host than its parent. Both lists are a plan's: the longest path that covers a
// place counts, an uncovered place is hidden, and a private one shows nothing
// of the host's.
func Exceeds(parent, child []bawn.Mount) []string {
	tables := [2]table{{}, {}}
	for i, list := range [2][]bawn.Mount{parent, child} {
		for _, m := range list {
			tables[i][m.Path] = powerOf[m.Access] & (read | write)
		}
		if _, ok := tables[i]["/"]; !ok {
			tables[i]["/"] = hidden
		}
	}
	return slices.DeleteFunc(paths(tables[:]...), func(p string) bool {
		has, _ := tables[0].at(p)
		wants, _ := tables[1].at(p)
		return wants&^has == 0
	})
}

// meetPath returns the path that lies in the other, or "".
func meetPath(a, b string) string {
	switch {
	case fspath.Below(b, a):
		return b
	case fspath.Below(a, b):
		return a
	}
	return ""
}

// Open returns the credentials that both sessions may read: names of groups,
// and paths below paths.
func Open(parent, asked []string) []string {
	var out []string
	for _, a := range parent {
		for _, b := range asked {
			if m := meetPath(a, b); m != "" {
				out = append(out, m)
			} else if a == b {
				out = append(out, a)
			}
		}
	}
	return sortedSet(out)
}

// Protected returns the names that either session protects.
func Protected(parent, asked []string) []string { return sortedSet(slices.Concat(parent, asked)) }

func sortedSet(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// both returns the entries in both lists.
func both(a, b []string) []string {
	var out []string
	for _, s := range a {
		if slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return sortedSet(out)
}
