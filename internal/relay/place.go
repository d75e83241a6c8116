package relay

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/places"
)

// A RunningError says that this user has a relay already.
type RunningError struct {
	PID  string // "" if it is not known
	Lock string
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("a relay of yours runs already (process %s, lock %q); there is one a user: use it, or end it first", e.PID, e.Lock)
}

// lock makes this the only relay, as long as the process lives.
func (r *Relay) lock() (unlock func() error, err error) {
	if err := own(r.State); err != nil {
		return nil, err
	}
	path := filepath.Join(r.State, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		return nil, held(f, err)
	}
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.WriteString(strconv.Itoa(os.Getpid()) + "\n"); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// wanted refuses to serve where the user has stopped the relay and nobody but a
// session asks for one. Who asks for one himself takes the mark away.
func (r *Relay) wanted() error {
	mark := filepath.Join(r.State, places.RelayStopped)
	if r.OnDemand {
		stopped, err := link.ReadMark(mark)
		if stopped {
			return link.ErrStopped
		}
		return err
	}
	if err := os.Remove(mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Running returns a *RunningError while a relay with that state directory runs,
// and nil where none does.
func Running(state string) error {
	path := filepath.Join(state, lockName)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		return held(f, err)
	}
	return nil
}

// held is the error of a lock that could not be had.
func held(f *os.File, err error) error {
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("lock %q: %w", f.Name(), err)
	}
	pid := make([]byte, 20)
	n, _ := f.Read(pid) // it may not be written yet
	return &RunningError{strings.TrimSpace(string(pid[:n])), f.Name()}
}

// own makes a directory that is the user's alone, or refuses one that is not.
func own(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%q: want an absolute path", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || sys.Uid != uint32(os.Geteuid()) || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%q (%v) is not yours alone; want a directory of your own: chmod 700 it, or remove it", dir, info.Mode())
	}
	return nil
}

// Listen returns the socket of that name in the runtime directory, of mode
// 0600: the one that systemd has made, or a new one. The caller closes it. One
// that a relay before has left behind is replaced; there is no other, since we
// have the lock.
func (r *Relay) Listen(name string) (net.Listener, error) {
	if l := r.socks[name]; l != nil {
		return l, nil
	}
	if err := own(r.Runtime); err != nil {
		return nil, err
	}
	path := filepath.Join(r.Runtime, name)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%q is in the way (%v); move it away", path, info.Mode())
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
