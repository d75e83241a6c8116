package protect

import (
	"slices"
	"strings"
	"sync"
)

// A Set finds the names of the table, and further ones, along a path. Names and
// paths are compared folded.
type Set struct {
	root  node
	parts []string // every name and glob, folded
	nodes []node   // from which new ones are taken
}

// A node is a possible continuation of a path.
type node struct {
	rule  string // of the name that ends here, as it is written, or ""
	whole bool   // with all below it
	login bool   // that name is one of class login
	deep  bool   // a name that counts at any depth ends here or below
	next  map[string]*node
	globs []glob
}

// A glob is a name with one "*".
type glob struct {
	prefix, suffix string
	to             *node
}

// ways are the directories of the table in which only some names are protected.
var ways = sync.OnceValue(func() map[string][]string {
	var names []string
	for _, e := range inProject() {
		names = append(names, e.Path())
	}
	return Ways(names)
})

// A Match says how a path meets a name of a Set. The zero Match, None, says that
// the path meets no name.
type Match uint8

const (
	None    Match = iota
	Way           // the path ends on the way to the name: a directory that holds it
	Pointer       // the path is the name, below which only some names are protected
	Inside        // the path is the name, or lies below it
)

// NewSet holds the names of a project that the host, an agent or Bawn obeys,
// without those that opened names, and extra ones, which nothing opens.
func NewSet(extra, opened []string) *Set {
	entries := inProject()
	s := &Set{root: node{next: make(map[string]*node, len(entries))}, parts: make([]string, 0, 2*len(entries))}
	open := make([]string, len(opened))
	for i, o := range opened {
		open[i] = Fold(strings.TrimSuffix(o, "/"))
	}
	for i := range entries {
		e := &entries[i]
		if e.Class == Credential || e.Opens() && len(open) > 0 && slices.Contains(open, Fold(e.Path())) {
			continue
		}
		s.add(e.Path(), e.Dir() || ways()[e.Path()] == nil, e.Class == Login)
	}
	for _, name := range extra {
		s.add(strings.TrimSuffix(name, "/"), true, false)
	}
	return s
}

func (s *Set) add(name string, whole, login bool) {
	at := &s.root
	at.deep = true
	for part := range strings.SplitSeq(Fold(name), "/") {
		s.parts = append(s.parts, part)
		at = s.child(at, part)
		at.deep = at.deep || !login
	}
	at.login = login && (at.rule == "" || at.login)
	at.rule, at.whole = name, at.whole || whole
}

// fresh is a new node; one at a time costs more.
func (s *Set) fresh() *node {
	if len(s.nodes) == 0 {
		s.nodes = make([]node, 64)
	}
	n := &s.nodes[0]
	s.nodes = s.nodes[1:]
	return n
}

// child is the node behind a part; it creates the node if it does not exist.
func (s *Set) child(n *node, part string) *node {
	if prefix, suffix, ok := strings.Cut(part, "*"); ok {
		for _, g := range n.globs {
			if g.prefix == prefix && g.suffix == suffix {
				return g.to
			}
		}
		n.globs = append(n.globs, glob{prefix, suffix, s.fresh()})
		return n.globs[len(n.globs)-1].to
	}
	if n.next == nil {
		n.next = map[string]*node{}
	}
	if n.next[part] == nil {
		n.next[part] = s.fresh()
	}
	return n.next[part]
}

// At says how the folded parts of a path meet a name that begins at the first of
// them, and which. logins says whether names of class login count there.
func (s *Set) At(parts []string, logins bool) (Match, string) {
	m, rule := s.root.at(parts, logins)
	if m == Way {
		rule = parts[0]
	}
	return m, rule
}

func (n *node) at(parts []string, logins bool) (Match, string) {
	counts := n.rule != "" && (logins || !n.login)
	switch {
	case !logins && !n.deep:
		return None, ""
	case n.whole && counts:
		return Inside, n.rule
	case counts && len(parts) == 0:
		return Pointer, n.rule
	case len(parts) == 0:
		return Way, ""
	}
	best, rule := None, ""
	take := func(to *node) {
		if m, r := to.at(parts[1:], logins); m > best {
			best, rule = m, r
		}
	}
	if to := n.next[parts[0]]; to != nil {
		take(to)
	}
	for _, g := range n.globs {
		if g.match(parts[0]) {
			take(g.to)
		}
	}
	return best, rule
}

func (g *glob) match(name string) bool {
	if len(name) >= len(g.prefix)+len(g.suffix) && strings.HasPrefix(name, g.prefix) && strings.HasSuffix(name, g.suffix) {
		return true
	}
	stem, ext, ok := short(name)
	if !ok || !strings.Contains(g.suffix, ".") {
		return false
	}
	last := g.suffix[strings.LastIndexByte(g.suffix, '.')+1:]
	return last[:min(3, len(last))] == ext && strings.HasPrefix(stem, g.prefix[:min(len(stem), len(g.prefix))])
}

// Long returns the name of the set that a folded one may be the short form of on
// NTFS and FAT ("vscode~1" for ".vscode"), or else the name itself.
func (s *Set) Long(name string) string {
	stem, ext, ok := short(name)
	if !ok {
		return name
	}
	for _, long := range s.parts {
		if !strings.Contains(long, "*") && isShort(long, stem, ext) {
			return long
		}
	}
	return name
}

// Ways are the directories in which some names are protected, each with the names
// there, as the table and extra write them. Neither has a wildcard.
func Ways(names []string) map[string][]string {
	ways := map[string][]string{}
	for _, n := range names {
		if strings.Contains(n, "*") {
			continue
		}
		for i, c := range n {
			if c == '/' {
				ways[n[:i]] = append(ways[n[:i]], n[i+1:])
			}
		}
	}
	return ways
}
