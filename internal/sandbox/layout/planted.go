package layout

import (
	"fmt"
	"path"
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/symlink"
)

// resolve finds a place that a flag or a configuration names. It follows no link
// that a guest may have made: a *symlink.PlantedError says which one. A found
// directory is pinned by its Identity, so that the same one is mounted.
func (b *builder) resolve(why, p string) (f File, ok bool, err error) {
	f, ok = b.facts.Lookup(p)
	links, end := b.facts.Follow(p)
	if err := symlink.Planted(why, p, links, end, b.guestPlaces(), b.req.GuestWrote); err != nil {
		return File{}, false, err
	}
	// Looked at twice, without a lock: a guest that runs now may have put a link
	// there for the first look and taken it away for the second.
	if ok && f.Real != end {
		return File{}, false, fmt.Errorf("%s: %q leads to %q, and a moment later to %q; somebody changes it, start the session again", why, p, f.Real, end)
	}
	return f, ok, nil
}

// guestPlaces are the places in which this session's guest, or another one of
// the same isolation, makes names: links resolved.
func (b *builder) guestPlaces() []string {
	if b.guests != nil {
		return b.guests
	}
	named := []string{b.root}
	for _, m := range b.iso.Mounts {
		if m.Access == bawn.ReadWrite {
			named = append(named, m.Path)
		}
	}
	if b.iso.Caches == bawn.CacheShared {
		named = append(named, b.iso.CacheDirs...)
	}
	for _, p := range named {
		if f, ok := b.facts.Lookup(p); ok && !slices.Contains(b.guests, f.Real) {
			b.guests = append(b.guests, path.Clean(f.Real))
		}
	}
	return b.guests
}

// Named finds a place as a plan of the request does: for what another engine
// mounts by its name.
func Named(req sandbox.Request, facts Facts, why, p string) (f File, there bool, err error) {
	b := &builder{req: req, iso: req.Session.Isolation, facts: facts}
	if ws, ok := facts.Lookup(b.iso.Workspace); ok {
		b.root = ws.Real
	}
	return b.resolve(why, p)
}
