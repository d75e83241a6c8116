package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/bawn-dev/bawn"
)

// An Untrusted runs git on a guest's files. It never has more than the guest
// has: a configuration that names a program, or objects of another repository,
// gets the guest nothing.
type Untrusted interface {
	// Git runs git in a private git directory, dir below View.Private, which it
	// can't change. The guest chooses what it writes to out.
	Git(ctx context.Context, dir string, in io.Reader, out io.Writer, args ...string) error
	Close() error
}

// A View is the part of the file system that an Untrusted shows to git.
type View struct {
	Session string
	Private string // the private git directory, which may be sealed
	Objects []bawn.GitObjects
	Program string // git
}

// View is what of the host a git needs that reads the private git directory.
func (s *Store) View() View {
	v := View{Session: s.Session, Private: s.guest.real(privateName), Program: s.Git}
	for _, u := range s.Units {
		v.Objects = append(v.Objects, u.Objects...)
	}
	return v
}

// readArgs are the first arguments of every git that reads a private git directory.
func readArgs(dir string) []string {
	return append([]string{"--git-dir=" + dir, "--work-tree=/"}, append(pins, "-c", "pack.threads=1", "-c", "pack.windowMemory=256m", "-c", "core.bigFileThreshold=32m")...)
}

// read runs git on the private git directory of a unit.
func (s *Store) read(ctx context.Context, u *unit, in io.Reader, out io.Writer, args ...string) error {
	if s.confined == nil {
		var err error
		if s.confined, err = s.untrusted(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &lively{Writer: out, idle: s.idle}
	l.timer = time.AfterFunc(s.idle, func() { cancel(errIdle) })
	defer l.timer.Stop()
	err := s.confined.Git(ctx, path.Join(u.Private, u.Rel), in, l, args...)
	if err != nil && errors.Is(context.Cause(ctx), errIdle) {
		return fmt.Errorf("git %s of the guest's git directory: %w", args[0], errIdle)
	}
	return err
}

// idleTime is how long a git that reads a private git directory may write nothing: it
// may wait for a FIFO of the guest's.
const idleTime = 30 * time.Second

var errIdle = errors.New("it hangs")

// A lively is a Writer that puts off a timer.
type lively struct {
	io.Writer
	timer *time.Timer
	idle  time.Duration
}

func (l *lively) Write(p []byte) (int, error) {
	l.timer.Reset(l.idle)
	if l.Writer == nil {
		return len(p), nil
	}
	return l.Writer.Write(p)
}
