package attach

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"
)

// ErrNotRunning says that a session has ended already.
var ErrNotRunning = errors.New("the session does not run any more")

// Signal sends a signal to the session's host. TERM, INT, HUP, QUIT, USR1,
// USR2, TSTP and CONT are passed on to the guest's command; KILL ends
// everything without grace. TERM and HUP end everything after a grace of five
// seconds. It reaches no other process, also where the host has ended and its
// pid was given away anew; then the error is ErrNotRunning.
func Signal(dir string, e Entry, name string) error {
	sig, ok := signals[name]
	if !ok {
		return fmt.Errorf("signal %q can't be sent to a session", name)
	}
	p, err := e.process(dir)
	if err != nil {
		return err
	}
	defer p.close()
	if sig == syscall.SIGKILL {
		return p.end()
	}
	return p.signal(sig)
}

// endPatience is how long a host may take to record the end of its session, publish
// what git has and remove what it made, on a busy machine.
const endPatience = 15 * time.Second

// end is the end without grace. A host that does not obey in time is killed,
// and its guest with it: that end is not in the log.
func (p *process) end() error {
	if err := twice(p.signal); err != nil {
		return notRunning(err)
	}
	if p.wait(endPatience) {
		return nil
	}
	return notRunning(p.signal(syscall.SIGKILL))
}

func notRunning(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return ErrNotRunning
	}
	return err
}

// process returns the session's host. It opens the pidfd before it checks the lock:
// while the host holds the lock, the PID can't have been recycled.
func (e Entry) process(dir string) (*process, error) {
	p, err := openProcess(e.PID)
	if err != nil {
		return nil, notRunning(err)
	}
	held, err := locked(filepath.Join(dir, sessionsName, e.ID))
	if err == nil && held {
		return p, nil
	}
	p.close()
	return nil, ErrNotRunning
}

// WaitEnd waits until the session's host is gone.
func WaitEnd(ctx context.Context, dir, id string) error {
	for {
		if held, err := locked(filepath.Join(dir, sessionsName, id)); err != nil || !held {
			return nil // removed, or let go
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
