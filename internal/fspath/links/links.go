// Package links resolves the symbolic links of many paths at one moment.
package links

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Resolved resolves the links of many paths, and looks at each directory on the way once.
// It answers later questions with what it has found then, so it is for one moment only.
type Resolved map[string]string

// Of returns where a path leads, as filepath.EvalSymlinks. It is empty where that errs.
func (r Resolved) Of(p string) string {
	to, known := r[p]
	if !known {
		to = r.look(p)
		r[p] = to
	}
	return to
}

// Or is Of, and the path itself where that is empty.
func (r Resolved) Or(p string) string {
	if to := r.Of(p); to != "" {
		return to
	}
	return p
}

func (r Resolved) look(p string) string {
	if !filepath.IsAbs(p) || filepath.Clean(p) != p || p == "/" {
		return resolved(p)
	}
	dir := r.Of(filepath.Dir(p))
	if dir == "" {
		return ""
	}
	at := filepath.Join(dir, filepath.Base(p))
	switch info, err := os.Lstat(at); {
	case err != nil:
		return ""
	case info.Mode()&fs.ModeSymlink != 0:
		return resolved(at)
	}
	return at
}

func resolved(p string) string {
	to, err := filepath.EvalSymlinks(p)
	if err != nil {
		return ""
	}
	return to
}
