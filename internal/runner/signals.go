//go:build linux || darwin

package runner

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// signals are passed on to the guest instead of ending Bawn. Until hold, they
// have their usual effect on Bawn. From then on the sandbox is made, and the
// first that would end Bawn waits for begin, so that nothing is left half made;
// a second one does not.
type signals struct {
	catcher
	once  sync.Once
	begun chan struct{}
	held  atomic.Bool
}

// A catcher has made signals arrive at a channel.
type catcher interface {
	Signals() chan os.Signal
	Reset(syscall.Signal) error // to what it did before
	Release() error
}

var caught = []syscall.Signal{
	syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGCONT,
}

func catch() *signals {
	s := &signals{catcher: newCatcher(caught, 32), begun: make(chan struct{})}
	go s.early()
	return s
}

// early obeys the signals that come before begin, or keeps them.
func (s *signals) early() {
	var kept os.Signal
	for {
		select {
		case <-s.begun:
			s.pass(kept)
			return
		case sig := <-s.Signals():
			select {
			case <-s.begun:
				s.pass(kept)
				s.pass(sig)
				return
			default:
			}
			if kept == nil && s.held.Load() && sig != syscall.SIGCONT && sig != syscall.SIGTSTP {
				kept = sig
				continue
			}
			s.obey(sig.(syscall.Signal))
		}
	}
}

// pass gives a signal back to the channel, which has room for more than a
// session gets at once.
func (s *signals) pass(sig os.Signal) {
	if sig != nil {
		s.Signals() <- sig
	}
}

// hold says that the sandbox is being made.
func (s *signals) hold() { s.held.Store(true) }

// obey has the default effect of a signal.
func (s *signals) obey(sig syscall.Signal) {
	switch sig {
	case syscall.SIGCONT:
	case syscall.SIGTSTP:
		stopSelf(sig)
	default:
		_ = s.Reset(sig) // then Bawn lives a little longer than it should
		_ = syscall.Kill(os.Getpid(), sig)
	}
}

// begin sends the signals to the channel's reader.
func (s *signals) begin() { s.once.Do(func() { close(s.begun) }) }

// end releases the signals.
func (s *signals) end() {
	s.begin()
	_ = s.Release() // there is no guest left to pass them to
}
