// Package web holds the page that the relay serves: approvals, sessions, the
// log, for a browser. Its source is beside this file; what is embedded is
// dist, which "make web" writes.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files returns the page's files, index.html at the root. Those below assets
// have a hash in their names; the others keep their names and change.
func Files() fs.FS {
	sub, err := fs.Sub(dist, "dist")
	if err != nil {
		panic("BUG(bawn): " + err.Error()) // the name is a constant
	}
	return sub
}
