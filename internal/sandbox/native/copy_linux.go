package native

import (
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// copied mounts an overlay of the workspace and a layer of the session's. Both are
// pinned before.
func (c *program) copied(m layout.Mount) {
	layer := layout.Mount{Kind: layout.KindPool, Source: m.Layer, Target: layout.CopyPlace, ID: m.LayerID()}
	c.bind(layer)
	c.Call("enter the layer", unix.SYS_CHDIR, at(layout.CopyPlace))
	lower := m
	lower.Kind, lower.Target = layout.KindBindRO, layout.CopyPlace+"/"+layout.CopyLower
	c.bind(lower)
	c.Overlay(m.Target, at(m.Target))
	c.Call("leave the layer", unix.SYS_CHDIR, "/")
	c.Call("let go of the layer", unix.SYS_UMOUNT2, at(layout.CopyPlace), unix.MNT_DETACH)
}
