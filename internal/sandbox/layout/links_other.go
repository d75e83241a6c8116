//go:build !linux

package layout

import "github.com/bawn-dev/bawn/internal/symlink"

// Follow walks a path as the kernel does, but goes on where nothing is. It
// returns where the links on the way lie, and where it ends.
func Follow(p string) (links []string, end string) { return symlink.Walk(p) }
