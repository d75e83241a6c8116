package bwrap

import (
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// copyCapabilities are what mounting an overlay takes. What the overlay does to its layer
// for the guest it does with these, on files of the one user alone.
var copyCapabilities = []string{"CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_CHOWN", "CAP_FSETID"}

// copied shows the workspace, on which bwrap mounts what the guest sees in it, and the
// parts of the overlay that the first process puts in its place. Older versions of bwrap
// mount no overlay, and none takes its parts by descriptors.
func (t *translator) copied(m layout.Mount) {
	t.add("--ro-bind-fd", t.source(source{m.Source, m.ID}), m.Target)
	t.add("--bind-fd", t.source(source{m.Layer, m.LayerID()}), layout.CopyPlace)
	t.add("--ro-bind-fd", t.source(source{m.Source, m.ID}), layout.CopyPlace+"/"+layout.CopyLower)
}

// copyOf is what the first process mounts over the workspace, or nil.
func copyOf(p *layout.Plan) *inside.Copy {
	m, inner := layout.CopyIn(p.Mounts)
	if m == nil {
		return nil
	}
	return &inside.Copy{Target: m.Target, Mounts: inner}
}
