package settings

import (
	"path/filepath"

	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/verb"
)

// StateDir returns the directory of Bawn's state: $XDG_STATE_HOME/bawn, else
// ~/.local/state/bawn (XDG Base Directory Specification, which says that a
// relative value counts as none).
func StateDir(w *verb.World) (string, error) {
	dir, err := places.State(w.Getenv)
	if err != nil {
		return "", verb.Usage("set HOME or XDG_STATE_HOME", "%w", err)
	}
	return dir, nil
}

// AuditDir returns the directory of the audit log.
func AuditDir(w *verb.World) (string, error) {
	dir, err := StateDir(w)
	return filepath.Join(dir, "audit"), err
}

// RuntimeDir is where what lives as long as a session is kept.
func RuntimeDir(w *verb.World, state string) string { return places.Runtime(w.Getenv, state) }

// BaseDir is a directory of the XDG base directory specification.
func BaseDir(w *verb.World, variable, below string) string {
	if d := w.Getenv(variable); filepath.IsAbs(d) {
		return d
	}
	return filepath.Join(w.Getenv("HOME"), below)
}
