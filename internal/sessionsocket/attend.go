//go:build linux || darwin

package sessionsocket

import (
	"context"
	"os"
	"syscall"

	"github.com/bawn-dev/bawn/internal/executor"
)

// A Program was started for a guest: a command of its execution zone
// (*executor.Process), or a session below its own.
type Program interface {
	// Changes delivers each stop and at last the end; then it is closed.
	Changes() <-chan executor.Change
	// Signal sends a signal to its process group.
	Signal(syscall.Signal) error
}

// A Resizer is a Program that its terminal does not control, and that must be
// told of a new size.
type Resizer interface{ Resized() }

// A Window is a guest's terminal, where it has one.
type Window struct {
	Terminal   bool // descriptor 0 is in the foreground of one
	Rows, Cols uint16
}

// Attend lets start make a program with descriptors joined to the guest's, but
// only to those that carry bytes alone. It serves the program's output, keys
// and signals until its end. open makes the program's terminal, if the guest
// has one. An error says that nothing was started, and has been told to the
// guest.
func Attend(ctx context.Context, c *Conn, files [3]*os.File, win Window, open Opener, start func(files [3]*os.File, terminal bool) (Program, error)) error {
	p := &plumbing{}
	var err error
	if p.stdio, err = sort(files); err == nil {
		err = p.connect(open, win.Rows, win.Cols)
	}
	if err != nil {
		c.Refuse(RuleDescriptor, err.Error(), "give the command files, pipes or a terminal")
		return err
	}
	defer p.linger(c.Ending())
	proc, err := start(p.files, p.master != nil && p.files[0] == p.slave)
	if err != nil {
		c.Refuse(RuleExecutor, err.Error(), "see the session's log")
		return err
	}
	p.started()
	w := &watch{conn: c, plumbing: p, proc: proc, takesKeys: win.Terminal}
	if w.begin(ctx) {
		w.wait(ctx)
	}
	c.Close() // or its running descendants would keep the guest waiting
	return nil
}
