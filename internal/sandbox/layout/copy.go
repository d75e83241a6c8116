package layout

import (
	"fmt"
	"slices"

	"github.com/bawn-dev/bawn"
)

// WhyCopy marks the mount of a workspace whose changes go into a layer of the
// session's own.
const WhyCopy = "copy of the workspace: its changes wait for \"bawn apply\""

// Where the parts of the overlay are in a guest while it is mounted: the layer, and on a
// name in it the workspace.
const (
	CopyPlace = "/dev/shm"
	CopyLower = "lower"
)

// isCopied reports whether a place is the workspace of a session on a copy, or in it.
func (b *builder) isCopied(f File) bool {
	return b.req.Copy != "" && (f.Real == b.root || Below(f.Real, b.root))
}

// looksOn reports whether this sandbox may only read the copy, which another one writes.
func (b *builder) looksOn() bool {
	return b.req.SharedCopy != nil && !slices.ContainsFunc(b.iso.Mounts, func(m bawn.Mount) bool { return m.Path == b.iso.Workspace && m.Access == bawn.ReadWrite })
}

// copied mounts the workspace with the request's layer over it. Names in it are not
// protected: no program of the host's comes to the layer, and what leaves it is looked
// at then. A place in the workspace is part of the copy.
func (b *builder) copied(f File, readOnly bool) error {
	if f.Real != b.root {
		return nil
	}
	layer, ok := b.facts.Own(b.req.Copy)
	switch {
	case !ok || !layer.Dir:
		return fmt.Errorf("a layer over the workspace at %q: want a directory that exists", b.req.Copy)
	case layer.ID == f.ID || Below(layer.Real, f.Real) || Below(f.Real, layer.Real):
		return fmt.Errorf("the layer %q and the workspace %q lie in each other; move Bawn's state directory (XDG_STATE_HOME)", layer.Real, f.Real)
	}
	b.mounts = append(b.mounts, Mount{Kind: KindCopy, Source: f.Real, Target: f.Real, Layer: layer.Real, Why: WhyCopy, ReadOnly: readOnly, ID: f.ID, layerID: layer.ID})
	return nil
}

// LayerID is the identity of the layer of a copy.
func (m Mount) LayerID() Identity { return m.layerID }

// CopyIn is the copy among mounts, or nil, and the targets below it, without those in
// others.
func CopyIn(mounts []Mount) (found *Mount, inner []string) {
	i := slices.IndexFunc(mounts, func(m Mount) bool { return m.Kind == KindCopy })
	if i < 0 {
		return nil, nil
	}
	found = &mounts[i]
	for _, m := range mounts {
		within := func(o string) bool { return m.Target == o || Below(m.Target, o) }
		if Below(m.Target, found.Target) && !slices.ContainsFunc(inner, within) {
			inner = append(inner, m.Target)
		}
	}
	return found, inner
}
