package layout

import (
	"cmp"
	"path"
	"runtime"
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/protect"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// A Hiding is a rule that keeps a guest from a place of the host's.
type Hiding struct {
	Place string // that is hidden, with all that it holds
	Why   string // the kind of file there, by the rule
	Open  string // what "--open" takes to open it, or ""
	Mount bool   // the isolation says so, which a more exact entry of it can change
}

// HidingOf finds the rule of a request that hides a path, which is absolute and clean.
// It does not look at the host, so its answer is the same whether the path exists or
// not. Links are not followed: the guest names the place that they lead to.
func HidingOf(req sandbox.Request, p string) (h Hiding, ok bool) {
	home := cmp.Or(req.Home, LookupEnv(req.Environ, "HOME"))
	b := &builder{req: req}
	at := -1
	take := func(place string, hidden bool, found Hiding) {
		if fspath.Below(p, place) && len(place) >= at {
			at, h, ok = len(place), found, hidden
			h.Place = place
		}
	}
	if home != "" {
		for _, e := range protect.Hidden(runtime.GOOS) {
			if place := path.Join(home, e.Path()); !b.opened(e.Name, place) {
				take(place, true, Hiding{Why: e.Why, Open: e.Name})
			}
		}
	}
	for _, dir := range slices.Concat(systemHidden, rootSecrets) {
		take(dir, true, Hiding{Why: "the system's own"})
	}
	for _, m := range req.Session.Isolation.Mounts {
		take(hiddenAt(m, p), m.Access == bawn.Hidden, Hiding{Why: m.Why, Mount: true})
	}
	for _, dir := range req.Hidden { // nothing opens them
		if fspath.Below(p, dir) {
			return Hiding{Place: dir, Why: "Bawn's own"}, true
		}
	}
	return h, ok
}

// hiddenAt is the place of a mount that may hold p: of a pattern the first of its
// matches on the way to p.
func hiddenAt(m bawn.Mount, p string) string {
	if !isPattern(m) {
		return path.Clean(m.Path)
	}
	pattern, err := fspath.ParsePattern(m.Path)
	if err != nil || !pattern.Below(p) {
		return m.Path // p does not lie below a "*"
	}
	at := p
	for dir := path.Dir(p); dir != "/" && pattern.Below(dir); dir = path.Dir(dir) {
		at = dir
	}
	return at
}
