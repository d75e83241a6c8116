package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/symlink"
	"github.com/bawn-dev/bawn/internal/verb"
)

// writtenName is the directory, of Bawn's own state, with a mark for each
// directory in which a session's guest could make names. A link in one of them
// may be a guest's, also long after that session.
const writtenName = "written"

// markOf names the mark of a directory.
func markOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:16])
}

// guestWrote returns whether an earlier session could write in a directory; nil
// where there is no state.
func guestWrote(e *Env) func(dir string) bool {
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return nil
	}
	return func(dir string) bool {
		_, err := os.Lstat(filepath.Join(state, writtenName, markOf(dir)))
		return err == nil
	}
}

// markWritten notes the places of the host that a session's guest writes.
func markWritten(e *Env, s *runner.Session) error {
	state, err := settings.StateDir(&e.World)
	if err != nil || s.Uncontained != "" {
		return err
	}
	places := s.Plan.Places()
	if s.Split != nil {
		places = append(places, s.Split.Plan.Places()...)
	}
	for _, m := range places {
		mark := filepath.Join(state, writtenName, markOf(m.Path))
		if _, err := os.Lstat(mark); err == nil || m.Access != bawn.ReadWrite {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(mark), 0o700), os.WriteFile(mark, []byte(m.Path+"\n"), 0o600)); err != nil {
			return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("note that a guest writes %q: %w", m.Path, err), Hint: "mend the directory or set XDG_STATE_HOME"}
		}
	}
	return nil
}

// unplanted errs if a working directory is reached by a link that a guest may
// have made: a link in a place of an earlier session, in a git repository, which
// usually is a session's workspace, or in the project around the current
// directory.
func unplanted(e *Env, what, dir string) error {
	links, end := symlink.Walk(dir)
	if len(links) == 0 {
		return nil
	}
	home := e.Getenv("HOME")
	var places []string
	if e.Dir != end {
		places = append(places, settings.WorkspaceOf(e.Dir, home))
	}
	for _, l := range links {
		ws := settings.WorkspaceOf(filepath.Dir(l), home)
		if _, err := os.Lstat(filepath.Join(ws, ".git")); err == nil {
			places = append(places, ws)
		}
	}
	err := symlink.Planted(what, dir, links, end, places, guestWrote(e))
	var planted *symlink.PlantedError
	if errors.As(err, &planted) {
		return &verb.Error{Code: verb.ExitUsage, Err: err, Hint: planted.Remedy()}
	}
	return err
}

// namedDir is the working directory as the shell calls it: by the links through
// which the user went there.
func namedDir(e *Env) string {
	named := e.Getenv("PWD")
	if real, err := filepath.EvalSymlinks(named); err != nil || !filepath.IsAbs(named) || real != e.Dir {
		return e.Dir
	}
	return named
}
