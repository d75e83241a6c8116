//go:build linux || darwin

package runner

import (
	"os"
	"os/signal"
	"syscall"
)

// A notifier is a catcher made of os/signal.
type notifier chan os.Signal

func notify(wanted []syscall.Signal, size int) catcher {
	n := make(notifier, size)
	for _, s := range wanted {
		if !signal.Ignored(s) { // nohup bawn … stays deaf to SIGHUP
			signal.Notify(n, s)
		}
	}
	return n
}

func (n notifier) Signals() chan os.Signal { return n }

func (n notifier) Reset(s syscall.Signal) error {
	signal.Reset(s)
	return nil
}

func (n notifier) Release() error {
	signal.Stop(n)
	return nil
}
