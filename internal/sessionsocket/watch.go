//go:build linux || darwin

package sessionsocket

import (
	"context"
	"syscall"

	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/intent"
)

// A watch sees one command through, from its start to its end.
type watch struct {
	conn     *Conn
	plumbing *plumbing
	proc     Program
	// takesKeys says that the guest's shell is in the foreground of its
	// terminal: elsewhere the keys are another program's.
	takesKeys bool
}

// begin tells the guest that its command runs, and takes its keys.
func (w *watch) begin(ctx context.Context) bool {
	err := error(nil)
	if w.takesKeys {
		err = w.plumbing.resume()
	}
	if err == nil {
		err = w.conn.Send(intent.Reply{Started: true})
	}
	if err != nil || ctx.Err() != nil {
		w.kill()
		return false
	}
	return true
}

// wait passes signals on until the command ends and reports its exit. It
// returns what the command left to its shell, nil if unchanged, and whether the
// shell may go on. Where the guest has gone away the command is killed, as a
// shell that is killed takes its job with it.
func (w *watch) wait(ctx context.Context) (left *intent.State, more bool) {
	for {
		select {
		case c, ok := <-w.proc.Changes():
			switch {
			case !ok:
				return nil, false
			case c.Ended():
				return w.ended(ctx, c)
			default:
				w.changed(c)
			}
		case u := <-w.conn.Updates():
			w.update(&u)
		case <-ctx.Done():
			w.kill()
			return nil, false
		}
	}
}

// kill ends the command's process group and waits for that.
func (w *watch) kill() {
	_ = w.proc.Signal(syscall.SIGCONT)
	_ = w.proc.Signal(syscall.SIGKILL) // an executor that is gone has killed it
	for range w.proc.Changes() {
	}
}

// changed says that the command has stopped. Keys belong to another program
// from then on.
func (w *watch) changed(c executor.Change) {
	if !c.Status.Stopped() {
		return
	}
	w.plumbing.pause()
	_ = w.conn.Send(intent.Reply{Stopped: int(c.Status.StopSignal())}) // the context ends with the guest
}

func (w *watch) update(u *intent.Update) {
	switch sig := syscall.Signal(u.Signal); {
	case u.Exec != nil: // one at a time
	case sig == 0:
		w.plumbing.resize(u.Rows, u.Cols)
		if r, ok := w.proc.(Resizer); ok {
			r.Resized()
		}
	case sig == syscall.SIGCONT:
		_ = w.plumbing.resume() // without keys it goes on all the same
		_ = w.proc.Signal(sig)
	case forwarded(sig):
		_ = w.proc.Signal(sig)
	}
}

// forwarded are the signals that a guest's shell passes on.
func forwarded(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGKILL:
		return true
	}
	return false
}

// ended sends the command's output, and then how it ended. Its remaining
// processes keep its output, as under any shell.
func (w *watch) ended(ctx context.Context, c executor.Change) (left *intent.State, more bool) {
	w.plumbing.ended(ctx.Done())
	reply, left := intent.Reply{Exit: &intent.Exit{Code: c.Status.ExitStatus()}, State: c.State}, c.State
	if sig := c.Status; sig.Signaled() {
		reply.Exit = &intent.Exit{Code: 128 + int(sig.Signal()), Signal: int(sig.Signal())}
		left = nil // an interrupt ends a statement, whose effect is unknown
	}
	err := w.conn.Send(reply)
	return left, err == nil && (left == nil || !left.Ended)
}
