package remote

import (
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// slack is by how many nanoseconds the kernel may lengthen a sleep of the relay's
// (PR_SET_TIMERSLACK(2const)). Go's runtime has a thread that wakes up every 20 µs while
// anything runs, which took a tenth of a connection's processor time. In return, a
// blocking call may keep the other goroutines from their processor this much longer.
const slack = 500_000

// startProcess starts the relay. Its runtime's thread is made before any code of ours runs, and
// so inherits the slack from the thread that starts it.
func startProcess(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_TIMERSLACK, slack, 0, 0, 0) == nil { // without it, a relay is slower
		defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }() // as the thread had it, which can't fail
	}
	return cmd.Start()
}
