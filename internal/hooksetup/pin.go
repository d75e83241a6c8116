package hooksetup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// pinned sets a pin, and reports whether it was not set. The opposite in its
// place is an error: who wrote it meant it.
func (d *document) pinned(p pin) (changed bool, err error) {
	at := &d.root
	for i, name := range p.path[:len(p.path)-1] {
		next := member(at, name)
		if next == nil {
			next = d.addMember(at, i+1, name, &hujson.Object{})
		}
		if next.Value.Kind() != '{' {
			return false, fmt.Errorf("%q is not what agents read there; want {…}", strings.Join(p.path[:i+1], "."))
		}
		at = next
	}
	name := p.path[len(p.path)-1]
	want := hujson.Bool(p.on)
	was := member(at, name)
	if was == nil {
		d.addMember(at, len(p.path), name, want)
		return true, nil
	}
	if was.Value.Kind() != want.Kind() {
		return false, fmt.Errorf("it says %s = %s, so that no hook runs; take that out", strings.Join(p.path, "."), was.Value)
	}
	return false, nil
}

// unpin takes a pin out, with what holds nothing without it and was not there.
func (d *document) unpin(path []string, was *document) {
	for n := len(path); n > 0; n-- {
		at := &d.root
		for _, name := range path[:n-1] {
			if at = member(at, name); at == nil {
				return
			}
		}
		v := member(at, path[n-1])
		if v == nil || n < len(path) && (!empty(v) || was.has(path[:n]...)) {
			return
		}
		o := at.Value.(*hujson.Object)
		remove(at, slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(m) == path[n-1] }))
	}
}

// unpin is the same for what a document says.
func unpin(m map[string]any, path []string) {
	if len(path) == 1 {
		delete(m, path[0])
		return
	}
	inner, ok := m[path[0]].(map[string]any)
	if !ok {
		return
	}
	unpin(inner, path[1:])
	if len(inner) == 0 {
		delete(m, path[0])
	}
}
