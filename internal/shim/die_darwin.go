package shim

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// die ends the process by a signal, as the command was ended, where Go's
// runtime allows it, and with the code that stands for it elsewhere.
func die(sig syscall.Signal) {
	switch sig {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL:
		signal.Reset(sig)
		_ = unix.Kill(unix.Getpid(), sig)
		select {} // it comes
	}
	os.Exit(signalBase + int(sig))
}
