package undo

import (
	"errors"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/gitstore"
)

// Base keeps the files of a workspace before a session on a copy begins. The checkpoint
// stays until it is forgotten. finish, which the caller calls, has it on the disk.
func Base(o Options) (c *checkpoint.Checkpoint, finish func() error, err error) {
	s, err := checkpoint.Open(checkpoint.Place(o.State, o.Workspace), patience)
	if err != nil {
		return nil, nil, err
	}
	options := checkpoint.Options{
		Copy: o.Session, Agent: o.Agent, Workspace: o.Workspace, Why: checkpoint.AtCopy, Roots: []string{o.Workspace}, Without: o.Own,
		Running: o.Others != nil && o.Others(), Progress: o.Progress,
	}
	if git := gitDirOf(o.Workspace); git != "" {
		options.Tracked = gitstore.Tracked(git, o.Workspace)
	}
	t, err := s.Scan(options)
	if err == nil {
		c, err = t.Keep(nil)
	}
	finish = func() error {
		err := t.Finish()
		t.Close()
		return errors.Join(err, s.Close())
	}
	if err != nil {
		t.Close()
		return nil, nil, errors.Join(err, s.Close())
	}
	return c, finish, nil
}

// A Source makes the checkpoint to which a plan leads, in the store that is open. The
// checkpoint lasts until the store is closed.
type Source func(*checkpoint.Store) (*checkpoint.Checkpoint, error)
