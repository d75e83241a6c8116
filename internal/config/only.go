package config

import (
	"maps"
	"slices"

	"github.com/bawn-dev/bawn"
)

// only takes away what files and profiles give and no flag does. Closed places
// stay closed, limits stay, and so do the variables without which hardly a
// program runs.
func (st *state) only() {
	for _, k := range keys {
		switch {
		case k.kind == list && (k.rule == covered || k.rule == inHosts):
			st.lists[k.path] = slices.DeleteFunc(slices.Clone(st.lists[k.path]), func(e entry) bool { return !ofFlags(k, e.at) })
		case k.opens || k.path == "isolation.split": // the user is no agent
			if s := st.scalars[k.path]; s.at.Layer != Command && k.path != "isolation.allow_fallback_to_host" {
				st.scalars[k.path] = scalar{value: false}
			}
		}
	}
	st.requests = nil
	maps.DeleteFunc(st.reaches, func(path string, r reach) bool {
		return r.access > bawn.Hidden && r.at.Layer != Command && path != st.paths.workspace && !st.closes(path, r)
	})
}

// ofFlags reports whether an entry is kept.
func ofFlags(k *key, at Place) bool {
	return at.Layer == Command || k.path == "isolation.env" && at == (Place{})
}

// closes reports whether a path that is read-only was closed so by a file.
func (st *state) closes(path string, r reach) bool {
	return r.access == bawn.ReadOnly && st.has(find("isolation.ro"), path)
}
