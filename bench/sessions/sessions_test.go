package main

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestProcesses finds a tree, what it holds and works, and sees it go.
func TestProcesses(t *testing.T) {
	if available() == 0 {
		return // no /proc
	}
	cmd := exec.Command("sh", "-c", "sleep 60 & wait")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hosts := map[int]bool{cmd.Process.Pid: true}
	var trees map[int][]int
	testenv.Until(t, "a shell and its child", func() bool { trees = below(hosts); return len(trees[cmd.Process.Pid]) == 2 })
	pids := trees[cmd.Process.Pid]
	if alive(trees) != 2 || !slices.Contains(pids, cmd.Process.Pid) || slices.Contains(pids, os.Getpid()) {
		t.Errorf("%d of %v are alive", alive(trees), pids)
	}
	if n, err := pss(cmd.Process.Pid); err != nil || n < 10 {
		t.Errorf("a shell holds %v KiB (%v)", n, err)
	}
	if toll := tollOf(trees); toll.worked <= 0 || toll.woken < 1 {
		t.Errorf("they have done %+v; want something", toll)
	}
	for _, pid := range pids {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
	_ = cmd.Wait() // it was killed
	testenv.Until(t, "their end", func() bool { return alive(trees) == 0 })
	if _, err := pss(cmd.Process.Pid); err == nil {
		t.Error("the memory of a process that is gone: no error")
	}
}
