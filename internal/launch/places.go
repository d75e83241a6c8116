package cli

import (
	"path/filepath"

	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/verb"
)

// stateDir returns the directory of Bawn's state: $XDG_STATE_HOME/bawn, else
// ~/.local/state/bawn (XDG Base Directory Specification, which says that a
// relative value counts as none).
func stateDir(e *Env) (string, error) {
	dir, err := places.State(e.Getenv)
	if err != nil {
		return "", verb.Usage("set HOME or XDG_STATE_HOME", "%w", err)
	}
	return dir, nil
}

// auditDir returns the directory of the audit log.
func auditDir(e *Env) (string, error) {
	dir, err := stateDir(e)
	return filepath.Join(dir, "audit"), err
}
