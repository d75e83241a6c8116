package undo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/bawn-dev/bawn/internal/checkpoint"
)

// prunedName is the file whose time tells when a store was pruned.
const (
	prunedName = "pruned"
	pruneEvery = 6 * time.Hour
)

// Prune removes old and excess checkpoints, now and then: it reads every record.
// For other workspaces it does the same as pruneGone.
func Prune(s *checkpoint.Store, state, dir string, now time.Time) error {
	mark := filepath.Join(dir, prunedName)
	size, err := checkpoint.Size(dir)
	if err != nil {
		return err
	}
	if info, err := os.Stat(mark); err == nil && now.Sub(info.ModTime()) < pruneEvery && size <= checkpoint.DefaultLimits.Bytes {
		return nil
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	if err := os.Chtimes(mark, now, now); err != nil {
		return err
	}
	_, err = s.Prune(checkpoint.DefaultLimits, now)
	return errors.Join(err, pruneGone(state, now))
}

// goneAfter is how long the checkpoints of a workspace stay that is not there any more:
// it may be on a disk that is mounted now and then.
const goneAfter = 30 * 24 * time.Hour

// pruneGone removes the stores of workspaces that are gone, once their last checkpoint
// is old. A store that is in use stays.
func pruneGone(state string, now time.Time) error {
	var errs []error
	err := (&Past{State: state}).each(func(dir string, list []checkpoint.Checkpoint) {
		if len(list) == 0 || now.Sub(list[len(list)-1].When) < goneAfter {
			return
		}
		if _, err := os.Lstat(list[0].Workspace); !errors.Is(err, fs.ErrNotExist) {
			return
		}
		s, err := checkpoint.Open(dir, 0)
		if errors.Is(err, checkpoint.ErrBusy) {
			return
		}
		if err == nil {
			err = errors.Join(os.RemoveAll(dir), s.Close())
		}
		errs = append(errs, err)
	})
	return errors.Join(append(errs, err)...)
}
