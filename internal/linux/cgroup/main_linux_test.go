package cgroup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The test program is its own victim: with this variable set it does one deed
// and exits.
const deedVariable = "BAWN_CGROUP_TEST_DEED"

func TestMain(m *testing.M) {
	if deed := os.Getenv(deedVariable); deed != "" {
		os.Exit(do(strings.Fields(deed)))
	}
	os.Exit(m.Run())
}

func do(deed []string) int {
	n := 0
	if len(deed) > 1 {
		n, _ = strconv.Atoi(deed[1])
	}
	switch deed[0] {
	case "eat": // n MiB
		return eat(n)
	case "fork": // n children, all of them at once
		fmt.Println(forkMany(n))
		return 0
	case "burn": // n ms of wall clock
		for end := time.Now().Add(time.Duration(n) * time.Millisecond); time.Now().Before(end); {
		}
		return 0
	case "join": // n groups, whose files are descriptors 3 and on, with threads around
		return join(n)
	case "leave": // a group, and be gone
		return report(New("leave", Limits{MemoryMB: 64, PIDs: 8, CPUs: 1}))
	case "new":
		return report(New("user", Limits{MemoryMB: 64}))
	}
	return 3
}

// join writes to the files and prints how many threads are in a group of ours,
// and how many there are.
func join(n int) int {
	stay := make(chan struct{})
	for range 5 {
		started := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(started)
			<-stay
		}()
		<-started
	}
	for i := range n {
		if _, err := os.NewFile(uintptr(3+i), "procs").WriteString("0"); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	tasks, _ := filepath.Glob("/proc/self/task/*/cgroup")
	in := 0
	for _, f := range tasks {
		if text, _ := os.ReadFile(f); strings.Contains(string(text), "/bawn-") {
			in++
		}
	}
	fmt.Println(in, len(tasks))
	return 0
}

func report(g *Group, err error) int {
	if err != nil {
		var u *Unavailable
		fmt.Println(errors.As(err, &u), err)
		return 1
	}
	for _, d := range g.dirs {
		fmt.Println(d.path)
	}
	return 0
}

func eat(mb int) int {
	b := make([]byte, mb*bytesPerMB)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	return int(b[0]) - 1
}

// forkMany starts children that wait for their end and returns how many came
// into being before one did not.
func forkMany(n int) int {
	r, w, err := os.Pipe()
	if err != nil {
		return -1
	}
	var children []*exec.Cmd
	for range n {
		c := exec.Command("/bin/cat")
		c.Stdin = r
		if c.Start() != nil {
			break
		}
		children = append(children, c)
	}
	w.Close()
	for _, c := range children {
		c.Wait()
	}
	return len(children)
}

// victim returns a command that joins g (unless it is nil) as a launcher's
// child does, single-threaded and before anything else, and then does deed.
func victim(t testing.TB, g *Group, deed string) *exec.Cmd {
	t.Helper()
	script := ""
	var files []*os.File
	if g != nil {
		files = g.ProcFiles()
		for i := range files {
			script += fmt.Sprintf("echo 0 >&%d || exit 99; ", 3+i)
		}
	}
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", script+`exec "$0"`, "/proc/self/exe")
	c.Args[3] = executable(t)
	c.ExtraFiles = files
	c.Env = append(os.Environ(), deedVariable+"="+deed, "GOMAXPROCS=2")
	c.Stderr = io.Discard // "fork failed" and the like is what we want
	return c
}

func executable(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// publicExecutable copies the test program to where an ordinary user may run it.
func publicExecutable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bawn-cgroup")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b, err := os.ReadFile(executable(t))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "victim")
	if err := errors.Join(os.WriteFile(name, b, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return name
}

var groups atomic.Int64 // made so far, for their names

// newGroup makes a group that is gone at the end of the test, whatever happens.
func newGroup(t testing.TB, l Limits) *Group {
	t.Helper()
	g, err := New(fmt.Sprintf("test%d", groups.Add(1)), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(g.Kill(), g.Remove()); err != nil {
			t.Error(err)
		}
	})
	return g
}

// signalOf returns the signal that ended a command, or 0.
func signalOf(err error) syscall.Signal {
	var e *exec.ExitError
	if errors.As(err, &e) {
		if s := e.Sys().(syscall.WaitStatus); s.Signaled() {
			return s.Signal()
		}
	}
	return 0
}

// leftovers lists every directory of our names where New makes groups.
func leftovers(t testing.TB) []string {
	t.Helper()
	trees, err := here()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, h := range trees {
		for _, dir := range h.places() {
			found, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, found...)
		}
	}
	return list
}
