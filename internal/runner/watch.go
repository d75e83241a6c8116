//go:build linux || darwin

package runner

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/terminal"
)

// grace is how long a guest has to end after SIGTERM or SIGHUP to Bawn.
const grace = 5 * time.Second

// watch sees one command through.
type watch struct {
	session     *Session
	guest       sandbox.Guest
	proc        sandbox.Process
	tty         *terminal.Terminal
	signals     *signals
	asker       *asker
	shut        func() // the session socket
	ownPrompter *asking.Prompter
	leave       func() // the prompter
	ports       *publisher
	outputs     outputs
	log         *denials
	execution   *execution // or nil
	// containers are those that the guest makes, or nil.
	containers *containers
	// networkGone is closed when the relay has ended by itself.
	networkGone <-chan struct{}
	ending      syscall.Signal // the signal that told Bawn to end
	kill        <-chan time.Time
}

// wait returns when the command has ended, or had to.
func (w *watch) wait(ctx context.Context) (Result, error) {
	var limit <-chan time.Time
	if t := w.session.Isolation.Resources.Timeout; t > 0 {
		timer := time.NewTimer(t)
		defer timer.Stop()
		limit = timer.C
	}
	gone, executionGone := w.tty.Done(), w.execution.gone()
	for {
		select {
		case ch, ok := <-w.proc.Changes():
			if !ok {
				return Result{}, errors.New("the command ended without a status")
			}
			if !ch.Stopped {
				return w.ended(ch.Status), nil
			}
			w.stopped(ch.Status.StopSignal())
		case sig := <-w.signals.Signals():
			w.signal(sig.(syscall.Signal))
		case <-limit:
			return Result{Code: codeTimeout, TimedOut: true}, nil
		case <-w.kill:
			return Result{Code: signalBase + int(w.ending), Signal: w.ending}, nil
		case <-gone:
			gone = nil
			w.signal(syscall.SIGHUP) // the user's terminal has been closed
		case <-w.networkGone:
			w.networkGone = nil
			w.lost()
		case <-executionGone:
			executionGone = nil
			w.execution.lost()
		case <-w.guest.Done():
			return w.guestGone()
		case <-ctx.Done():
			return Result{}, ctx.Err()
		}
	}
}

// guestGone prefers a status that came just before the guest's end. A limit of
// memory may kill a guest as a whole (memory.oom.group); otherwise it was
// somebody outside.
func (w *watch) guestGone() (Result, error) {
	for more := true; more; {
		select {
		case ch, ok := <-w.proc.Changes():
			if ok && !ch.Stopped {
				return w.ended(ch.Status), nil
			}
			more = ok
		default:
			more = false
		}
	}
	killed := Result{Code: signalBase + int(syscall.SIGKILL), Signal: syscall.SIGKILL}
	if slices.ContainsFunc(w.guest.Hits(), func(h sandbox.Hit) bool { return h.Killed }) {
		return killed, nil
	}
	return killed, errors.New("the sandbox was killed from outside")
}

func (w *watch) ended(ws syscall.WaitStatus) Result {
	if ws.Signaled() {
		return Result{Code: signalBase + int(ws.Signal()), Signal: ws.Signal()}
	}
	return Result{Code: ws.ExitStatus()}
}

// stopped follows the command's stop: it gets the terminal if it wants that, or
// else Bawn stops too, so that the user's shell takes over.
func (w *watch) stopped(sig syscall.Signal) {
	if sig == syscall.SIGTTIN || sig == syscall.SIGTTOU {
		if err := w.tty.Foreground(); err == nil {
			w.proc.Foreground()
			w.proc.Signal(syscall.SIGCONT)
			return
		}
	}
	w.tty.Suspend()
	var meanwhile []syscall.Signal
	if stopSelf(sig) {
		meanwhile = w.awaitContinue()
	}
	w.resume()
	for _, sig := range meanwhile {
		w.signal(sig)
	}
}

// stopPatience is how long the kernel may take to stop a process on a busy
// machine.
const stopPatience = time.Second

// awaitContinue returns when Bawn was continued, with the signals that came
// before that. Kill returns before the other threads have stopped. What they do
// meanwhile, while the shell still has the terminal, would stop Bawn once more
// when it is in the foreground again.
func (w *watch) awaitContinue() (others []syscall.Signal) {
	for patience := time.After(stopPatience); ; {
		select {
		case sig := <-w.signals.Signals():
			if sig == syscall.SIGCONT {
				return others
			}
			others = append(others, sig.(syscall.Signal))
		case <-patience: // it may have been continued by then, or could not be stopped
			return others
		}
	}
}

// stopSelf stops Bawn's process group, as the terminal would have stopped the
// command's, unless nobody could continue it: then the session goes on.
// SIGTSTP becomes SIGSTOP, because Go's runtime keeps its handler for a signal
// that was ever caught. It reports whether Bawn is about to stop.
func stopSelf(sig syscall.Signal) bool {
	if sig == syscall.SIGTSTP {
		sig = syscall.SIGSTOP
	}
	return !orphaned() && syscall.Kill(0, sig) == nil
}

// orphaned reports whether no process outside of Bawn's process group, but of
// its session, is there to continue it (the shell).
func orphaned() bool {
	own := syscall.Getpgrp()
	pid := os.Getppid()
	for pid > 1 {
		group, err := syscall.Getpgid(pid)
		if err != nil {
			return true
		}
		if group != own {
			break
		}
		pid = parent(pid)
	}
	theirs, err1 := unix.Getsid(pid)
	ours, err2 := unix.Getsid(0)
	return err1 != nil || err2 != nil || theirs != ours
}

// resume continues the command after Bawn was continued.
func (w *watch) resume() {
	if mode, err := w.tty.Resume(); err == nil && mode == terminal.Foreground {
		w.proc.Foreground()
	}
	w.proc.Signal(syscall.SIGCONT)
}

// signal passes one of Bawn's signals on.
func (w *watch) signal(sig syscall.Signal) {
	switch sig {
	case syscall.SIGCONT:
		w.resume()
	case syscall.SIGTERM, syscall.SIGHUP:
		if w.ending != 0 {
			w.kill = time.After(0)
			return
		}
		w.ending = sig
		w.kill = time.After(grace)
		w.proc.Signal(sig)
		w.proc.Signal(syscall.SIGCONT)
	default:
		w.proc.Signal(sig)
	}
}
