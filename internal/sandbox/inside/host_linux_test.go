package inside

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// host starts a sandbox and a command in it, says so, and waits to be killed.
func host() error {
	ours, theirs, err := ipc.Pair()
	if err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe", roleEngine)
	attr := namespaces()
	attr.Pdeathsig = 0 // the control socket alone must do
	cmd.Stdin, cmd.Stderr, cmd.SysProcAttr = theirs, os.Stderr, attr
	if err := cmd.Start(); err != nil {
		return err
	}
	theirs.Close()
	g, err := Start(context.Background(), ours, bare("/"))
	if err != nil {
		return err
	}
	_, err = g.Exec(sandbox.Command{Argv: []string{"/bin/sh", "-c", "setsid sleep 1000 & setsid sh -c 'trap \"\" TERM HUP; sleep 1000' & echo started; sleep 1000"}, Stdio: [3]*os.File{nil, os.Stdout, nil}})
	if err != nil {
		return err
	}
	fmt.Println(cmd.Process.Pid)
	select {}
}

// TestHostKilled: kill -9 of the host ends everything in the sandbox.
func TestHostKilled(t *testing.T) {
	testenv.Need(t, "userns")
	cmd := exec.Command("/proc/self/exe", roleHost)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	pid := 0
	for range 2 {
		if !lines.Scan() {
			t.Fatal("the host said nothing")
		}
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			pid = n
		}
	}
	all := func() []int { return append(below(pid), pid) }
	testenv.Until(t, "the commands run", func() bool { return len(below(pid)) >= 5 })
	before := all()
	time.Sleep(50 * time.Millisecond)
	for _, p := range before { // the control: nothing ends by itself
		if unix.Kill(p, 0) != nil {
			t.Fatalf("process %d has ended early", p)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "all processes of the sandbox are gone", func() bool {
		for _, p := range before {
			if !gone(p) {
				return false
			}
		}
		return true
	})
}

// gone reports whether a process has ended; its parent may not have noticed yet.
func gone(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || strings.HasPrefix(statusOf(string(text), "State"), "Z")
}

// below lists the processes below pid.
func below(pid int) []int {
	var all []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), below(child)...)
			}
		}
	}
	return all
}
