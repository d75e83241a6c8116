package layout

import (
	"path"
	"slices"
)

// WhyGuarded is why a file of the agent's own is mounted read-only.
const WhyGuarded = "the agent obeys it"

// owned lists, by their real names, the files that may be written though their
// names are protected.
func (b *builder) owned() []string {
	var list []string
	for _, o := range b.req.Owned {
		dir, _ := b.settled(path.Dir(o))
		list = append(list, path.Join(dir.Real, path.Base(o)))
	}
	return list
}

// guarded keeps what the request guards unchanged. The supervisor refuses every
// name on the way to it, existing or not, and an existing file is mounted
// read-only a second time. The caller leaves out places for which something
// else was requested.
func (b *builder) guarded(byTarget map[string]Mount) []Mount {
	var list []Mount
	for _, g := range b.req.Guarded {
		dir, _ := b.settled(path.Dir(g))
		links, end := b.facts.Follow(g)
		for _, p := range slices.Concat([]string{path.Join(dir.Real, path.Base(g)), end}, links) {
			if b.writableAt(p) && !slices.Contains(b.kept, p) {
				b.kept = append(b.kept, p)
			}
		}
		if f, ok := b.facts.Lookup(g); ok {
			m := protecting(f)
			m.Why = WhyGuarded
			list = append(list, m)
		}
	}
	slices.Sort(b.kept)
	return b.needed(byTarget, list)
}
