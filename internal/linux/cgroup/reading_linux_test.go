package cgroup

import (
	"os/exec"
	"strconv"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestOf reads the groups that a process was put into, and of no process none.
func TestOf(t *testing.T) {
	testenv.Need(t, "cgroup")
	want := Limits{MemoryMB: 64, PIDs: 61}
	g := newGroup(t, want)
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	for _, f := range g.ProcFiles() {
		if _, err := f.WriteString(strconv.Itoa(cmd.Process.Pid)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Limits(); got.MemoryMB != want.MemoryMB || got.PIDs != want.PIDs {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if used, err := r.Stats(); err != nil || used.PIDsMaxHits != 0 {
		t.Errorf("%+v, %v", used, err)
	}
	if _, err := Of(1 << 30); err == nil {
		t.Error("a process that can't be has groups")
	}
}
