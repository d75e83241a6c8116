package launch

import (
	"path/filepath"

	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/verb"
)

// StateDir returns the directory of Bawn's state: $XDG_STATE_HOME/bawn, else
// ~/.local/state/bawn (XDG Base Directory Specification, which says that a
// relative value counts as none).
func StateDir(e *Env) (string, error) {
	dir, err := places.State(e.Getenv)
	if err != nil {
		return "", verb.Usage("set HOME or XDG_STATE_HOME", "%w", err)
	}
	return dir, nil
}

// AuditDir returns the directory of the audit log.
func AuditDir(e *Env) (string, error) {
	dir, err := StateDir(e)
	return filepath.Join(dir, "audit"), err
}
