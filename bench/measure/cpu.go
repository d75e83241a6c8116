package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processCPU sums what the threads of a process have worked. Source: the first
// number of schedstat, in nanoseconds (Documentation/scheduler/sched-stats).
func processCPU(pid int) time.Duration {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	var sum time.Duration
	for _, name := range threads {
		worked, _, _ := strings.Cut(firstLine(name), " ")
		n, _ := strconv.ParseInt(worked, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

// TreeCPU returns what a process and all that descend from it have worked so
// far, without those that are called except (comm, proc_pid_stat(5)).
func TreeCPU(root int, except string) time.Duration {
	type process struct {
		parent int
		comm   string
	}
	all := map[int]process{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if comm, parent, ok := status(pid); ok {
			all[pid] = process{parent, comm}
		}
	}
	var sum time.Duration
	for pid, p := range all {
		up := pid
		for up != root && up > 1 {
			up = all[up].parent
		}
		if up == root && p.comm != except {
			sum += processCPU(pid)
		}
	}
	return sum
}

// status reads "PID (COMM) S PARENT"; the name may hold anything.
func status(pid int) (comm string, parent int, ok bool) {
	line := firstLine(fmt.Sprintf("/proc/%d/stat", pid))
	open, shut := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || shut < open {
		return "", 0, false
	}
	rest := strings.Fields(line[shut+1:])
	if len(rest) < 2 {
		return "", 0, false
	}
	parent, err := strconv.Atoi(rest[1])
	return line[open+1 : shut], parent, err == nil
}
