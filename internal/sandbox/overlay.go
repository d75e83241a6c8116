package sandbox

import (
	"errors"
	"os"
	"sync"
)

// A SharedCopy is the one mount of a session's copy, for sandboxes that share it: what two
// overlays over one layer do is undefined (the kernel's overlayfs.rst). The sandbox that is
// started first gives it, and the second one takes it. Its methods may be called from
// several goroutines.
type SharedCopy struct {
	mu    sync.Mutex
	mount *os.File // detached
	given bool
}

// ErrTaken says that the mount of a copy is no longer there to be taken.
var ErrTaken = errors.New("the mount of the session's copy has been taken")

// Give keeps the mount until Close.
func (s *SharedCopy) Give(mount *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mount, s.given = mount, true
}

// Mount is what was given, or nil where nothing was yet. It errs with ErrTaken after Close.
func (s *SharedCopy) Mount() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given && s.mount == nil {
		return nil, ErrTaken
	}
	return s.mount, nil
}

// Close lets go of the mount. It may be called more than once, and for nil.
func (s *SharedCopy) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = true
	if s.mount == nil {
		return nil
	}
	err := s.mount.Close()
	if s.mount = nil; errors.Is(err, os.ErrClosed) { // with the sandbox that gave it
		return nil
	}
	return err
}
