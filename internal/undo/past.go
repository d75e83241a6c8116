package undo

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/bawn-dev/bawn/internal/checkpoint"
)

// A Past lists the changes of this user's sessions, in all workspaces.
type Past struct {
	State string
	Own   []string // Bawn's own directories, which no checkpoint has
	Path  string   // where git is looked for (PATH)
	// Writing returns the sessions that run and write in one of these directories.
	Writing func(roots []string) ([]string, error)
	// Publish brings a killed session's work into a workspace's repository.
	Publish func(workspace string) error
}

// A Session is one of the past, which has left checkpoints.
type Session struct {
	Target
	Agent, Workspace string
	Began            time.Time
	Writing          []string // sessions that run there, this one perhaps
	dir              string   // of its checkpoints
}

// ErrNoSession says that a session has left no checkpoints.
var ErrNoSession = errors.New("no checkpoint of such a session is kept")

// A RunningError says that nothing can be undone yet.
type RunningError struct{ Session, Workspace string }

func (e *RunningError) Error() string {
	return fmt.Sprintf("session %s still runs in %q", e.Session[:min(len(e.Session), 8)], e.Workspace)
}

// Sessions returns at most so many sessions, the newest first.
func (p *Past) Sessions(most int) ([]Session, error) {
	var all []Session
	err := p.each(func(dir string, list []checkpoint.Checkpoint) {
		for i := range list {
			if c := &list[i]; c.Why == checkpoint.AtStart && c.Session != "" {
				all = append(all, Session{Target: *ofSession(list, c.Session), Agent: c.Agent, Workspace: c.Workspace, Began: c.When, dir: dir})
			}
		}
	})
	slices.SortStableFunc(all, func(a, b Session) int { return b.Began.Compare(a.Began) })
	all = all[:min(len(all), most)]
	for i := range all {
		var failed error
		all[i].Writing, failed = p.Writing(all[i].roots())
		err = cmp.Or(err, failed)
	}
	return all, err
}

// each calls f for the store of each workspace, with all its checkpoints. A record that
// names another workspace than its store is of does not count.
func (p *Past) each(f func(dir string, list []checkpoint.Checkpoint)) error {
	stores, err := os.ReadDir(checkpoint.Places(p.State))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range stores {
		dir := filepath.Join(checkpoint.Places(p.State), e.Name())
		list, err := checkpoint.List(dir)
		if err != nil {
			return err
		}
		f(dir, slices.DeleteFunc(list, func(c checkpoint.Checkpoint) bool { return checkpoint.Place(p.State, c.Workspace) != dir }))
	}
	return nil
}

// Session returns the session with this ID.
func (p *Past) Session(id string) (*Session, error) {
	all, err := p.Sessions(1 << 30)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(s Session) bool { return s.Target.Session == id })
	if i < 0 {
		return nil, ErrNoSession
	}
	return &all[i], nil
}

func (s *Session) roots() (list []string) {
	for _, r := range s.To.Roots {
		list = append(list, r.Top())
	}
	return list
}

// Compare returns a session's changes.
func (p *Past) Compare(s *Session) (*Diff, error) { return Compare(s.dir, &s.Target, nil, p.Own) }

// Prepare plans to take back a session. It fails with a RunningError while one writes
// there.
func (p *Past) Prepare(s *Session) (*Plan, error) {
	if len(s.Writing) > 0 {
		return nil, &RunningError{s.Writing[0], s.Workspace}
	}
	if err := p.Publish(s.Workspace); err != nil {
		return nil, fmt.Errorf("publish what an earlier session did in git: %w", err)
	}
	return Prepare(Request{State: p.State, Workspace: s.Workspace, Target: s.Target, Own: p.Own, Path: p.Path})
}
