//go:build linux || darwin

package runner

import (
	"os"
	"sync"
	"syscall"
)

// signals are those that Bawn passes on instead of dying of them. Until begin,
// they do to Bawn what they always do.
type signals struct {
	catcher
	once  sync.Once
	begun chan struct{}
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

// early obeys the signals that come before begin.
func (s *signals) early() {
	for {
		select {
		case <-s.begun:
			return
		case sig := <-s.Signals():
			select {
			case <-s.begun:
				s.Signals() <- sig // has room for more than a session gets at once
				return
			default:
				s.obey(sig.(syscall.Signal))
			}
		}
	}
}

// obey does what a signal does to a program that does not catch it.
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

// begin hands the signals to who reads the channel.
func (s *signals) begin() { s.once.Do(func() { close(s.begun) }) }

// end lets go of the signals.
func (s *signals) end() {
	s.begin()
	_ = s.Release() // nobody is left to pass them on to
}
