package main

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
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
	for limit := time.Now().Add(10 * time.Second); len(trees[cmd.Process.Pid]) != 2; time.Sleep(5 * time.Millisecond) {
		if trees = below(hosts); time.Now().After(limit) {
			t.Fatalf("the processes of %v are %v; want a shell and its child", hosts, trees)
		}
	}
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
	for limit := time.Now().Add(10 * time.Second); alive(trees) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%d of %v are alive after their end", alive(trees), pids)
		}
	}
	if _, err := pss(cmd.Process.Pid); err == nil {
		t.Error("the memory of a process that is gone: no error")
	}
}
