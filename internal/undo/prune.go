package undo

import (
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

// Prune removes what is too old or too much, now and then: it reads every record.
func Prune(s *checkpoint.Store, dir string, now time.Time) ([]checkpoint.Checkpoint, error) {
	mark := filepath.Join(dir, prunedName)
	size, err := checkpoint.Size(dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(mark); err == nil && now.Sub(info.ModTime()) < pruneEvery && size <= checkpoint.DefaultLimits.Bytes {
		return nil, nil
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return nil, err
	}
	if err := os.Chtimes(mark, now, now); err != nil {
		return nil, err
	}
	return s.Prune(checkpoint.DefaultLimits, now)
}
