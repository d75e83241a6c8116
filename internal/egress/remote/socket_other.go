//go:build !linux

package remote

import (
	"os/exec"

	"golang.org/x/sys/unix"
)

const socketFlags = 0

// closeOnExec is two steps where socketpair(2) has no flag for it.
func closeOnExec(fds [2]int) error {
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return nil
}

func awaitExit(int) {}

func startProcess(cmd *exec.Cmd) error { return cmd.Start() }
