package rawproc

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// endAllStage names, for this program when it is started again, what part it plays.
const endAllStage = "BAWN_TEST_END_ALL"

// A first process that nothing confines does not end others when its parent is gone,
// though it was told to: its kill(-1) would reach every process of the user.
func TestEndAllWantsADomain(t *testing.T) {
	testenv.Need(t, "userns")
	for how, want := range map[string]string{"told": "terminated", "control": "killed"} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), endAllStage+"=room "+how)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWPID, // in which kill(-1) stays
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: a bystander is ended by %q, %v; want %q", how, got, err, want)
		}
	}
}

// endAllPart plays a part: "room HOW" is the first process of the namespace and prints
// what ends a bystander after "session HOW" has started a first process and ended: the
// signal of the room's own, unless another came first.
func endAllPart(stage string) int {
	part, how, _ := strings.Cut(stage, " ")
	if part == "session" {
		return endAllSession(how)
	}
	bystander := exec.Command("/bin/sleep", "100")
	session := exec.Command("/proc/self/exe")
	session.Env = append(os.Environ(), endAllStage+"=session "+how)
	if bystander.Start() != nil || session.Run() != nil {
		return 1
	}
	var status unix.WaitStatus
	if how == "told" { // the session's first process is an orphan now
		if pid, err := unix.Wait4(-1, &status, 0, nil); err != nil || pid == bystander.Process.Pid {
			fmt.Println(status.Signal(), err)
			return 0
		}
	}
	_ = bystander.Process.Signal(unix.SIGTERM)
	_, _ = unix.Wait4(bystander.Process.Pid, &status, 0, nil)
	fmt.Println(status.Signal())
	return 0
}

func endAllSession(how string) int {
	if how == "control" {
		_ = unix.Kill(-1, unix.SIGKILL)
		return 0
	}
	in, err := Start(Config{Program: noop()})
	if err != nil || in.EndAll() != nil {
		return 1
	}
	return 0 // its socket closes
}
