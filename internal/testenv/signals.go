package testenv

import (
	"os"
	"os/signal"
	"syscall"
)

// inherited are the signals that nohup(1), or the & of a shell without job
// control, has a program ignore.
var inherited = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT}

// DefaultSignals starts a test's children with the default action for signals
// that the test's own parent ignores. They would inherit that through exec, and
// the signals that tests send would have no effect. The test itself goes on
// ignoring them. TestMain calls it, where tests send signals.
func DefaultSignals() {
	for _, sig := range inherited {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}
