//go:build linux

package sandboxtest_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/engine"
)

// endTime is how long a session may take to notice that it has lost what made
// it, and to say so.
const endTime = 45 * time.Second

// crashes kills what carries a session, each time with SIGKILL: bawn, the
// guest's first process, whatever the engine runs for it. The session ends with
// words, and after the next session nothing is left, counted from outside.
func (c contender) crashes(t *testing.T) {
	for name, pick := range map[string]func(s *running) []int{
		"bawn": func(s *running) []int { return []int{s.cmd.Process.Pid} },
		"first process": func(s *running) []int {
			return slices.DeleteFunc(s.members(), func(pid int) bool { return !isFirst(pid) })
		},
		"everything but bawn": func(s *running) []int {
			return slices.DeleteFunc(s.members(), func(pid int) bool { return pid == s.cmd.Process.Pid })
		},
	} {
		t.Run(name, func(t *testing.T) { c.crash(t, pick) })
	}
}

func (c contender) crash(t *testing.T, pick func(*running) []int) {
	f := c.fixtures(t)
	if r := c.run()(t, f, f.Victim, "list"); r.Code != 0 { // makes what stays: caches, logs
		t.Fatalf("exit code %d: %s", r.Code, r.Stderr)
	}
	before := c.traces(t, f)
	s := c.begin(t, f)
	if during := c.traces(t, f); len(missing(during, before)) == 0 {
		t.Error("control: a session that runs leaves no trace that could be counted")
	}
	victims := pick(s)
	if len(victims) == 0 {
		t.Fatalf("nothing to kill among %v", s.members())
	}
	for _, pid := range victims {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	code := s.end(t)
	if !slices.Contains(victims, s.cmd.Process.Pid) && (code == 0 || s.errs.Len() == 0) {
		t.Errorf("bawn ended with %d and said %q; want an error", code, &s.errs)
	}
	// What was killed is looked for once a minute: this minute is over.
	if err := os.Remove(filepath.Join(f.Home, ".cache", "bawn", "swept")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if r := c.run()(t, f, "true"); r.Code != 0 {
		t.Errorf("the next session: exit code %d: %s", r.Code, r.Stderr)
	}
	var left []string
	defer func() {
		if t.Failed() {
			t.Logf("left: %q", left)
		}
	}()
	testenv.Until(t, "the end of all that it made", func() bool {
		left = append(missing(c.traces(t, f), before), groupsOf(t, s.cmd.Process.Pid)...)
		return len(left) == 0
	})
}

// missing are those of list that are not in other.
func missing(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

// A running session, and how to tell what belongs to it.
type running struct {
	contender contender
	base      string
	group     string // of the engine's
	cmd       *exec.Cmd
	errs      bytes.Buffer
	old       []int // processes that were there before
}

// begin starts a session that lingers.
func (c contender) begin(t *testing.T, f *sandboxtest.Fixtures) *running {
	t.Helper()
	s := &running{contender: c, base: f.Base, old: processes()}
	if c.name == "docker" {
		s.group = filepath.Base(engine.Shared(t).Dir)
	}
	argv := append(c.words(t, f, "--net", "none"), "--", f.Victim, "linger", "mark-"+f.Token)
	s.cmd = f.Command(argv...)
	s.cmd.Stderr = &s.errs
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the guest says %q, %v: %s", line, err, &s.errs)
	}
	return s
}

// end waits for bawn and returns its exit code.
func (s *running) end(t *testing.T) int {
	t.Helper()
	timer := time.AfterFunc(endTime, func() { _ = s.cmd.Process.Kill() })
	begin := time.Now()
	_ = s.cmd.Wait()
	if !timer.Stop() {
		t.Errorf("bawn has not ended after %v", time.Since(begin))
	}
	return s.cmd.ProcessState.ExitCode()
}

func processes() (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range found {
		pids = append(pids, number(filepath.Base(p)))
	}
	return pids
}

// members are the session's processes: new since it began, and below bawn, or
// in the engine's control groups, or with the fixtures in their words.
func (s *running) members() []int {
	parents := map[int]int{}
	for _, pid := range processes() {
		if !slices.Contains(s.old, pid) {
			parents[pid] = parent(pid)
		}
	}
	var list []int
	for pid := range parents {
		up := pid
		for up != s.cmd.Process.Pid && up > 1 {
			up = parents[up]
		}
		words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if up == s.cmd.Process.Pid || strings.Contains(string(words), s.base) || s.group != "" && strings.Contains(string(groups), s.group) {
			list = append(list, pid)
		}
	}
	slices.Sort(list)
	return list
}

func parent(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	return number(fields[1])
}

// isFirst reports whether a process is the first of a PID namespace.
func isFirst(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			list := strings.Fields(numbers)
			return len(list) > 1 && list[len(list)-1] == "1"
		}
	}
	return false
}

// traces are what a session may leave on the machine, seen from outside:
// processes, mounts and namespaces kept by one, what the engine holds, and
// files.
func (c contender) traces(t *testing.T, f *sandboxtest.Fixtures) []string {
	t.Helper()
	list := f.Changed(t, c.options)
	for _, pid := range processes() {
		words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(words), f.Base) {
			list = append(list, fmt.Sprintf("process %d", pid))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && (strings.Contains(line, f.Base) || strings.HasPrefix(fields[4], "/run/bawn")) {
			list = append(list, "mount "+fields[4])
		}
	}
	if c.name == "docker" {
		list = append(list, engine.Shared(t).Inventory(t)...)
	}
	return list
}
