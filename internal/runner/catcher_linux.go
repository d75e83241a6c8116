package runner

import (
	"syscall"

	"github.com/bawn-dev/bawn/internal/linux/sigcatch"
)

// newCatcher catches the signals the quick way, or, where another session in
// this process has done that, as everybody does.
func newCatcher(wanted []syscall.Signal, size int) catcher {
	if c, err := sigcatch.Catch(wanted, size); err == nil {
		return c
	}
	return notify(wanted, size)
}
