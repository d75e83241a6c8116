package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// below returns every process of each host's tree, itself among them.
func below(hosts map[int]bool) map[int][]int {
	parents := map[int]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if ppid, err := strconv.Atoi(field(pid, "status", "PPid:")); err == nil {
				parents[pid] = ppid
			}
		}
	}
	trees := map[int][]int{}
	for pid := range parents {
		for up := pid; up > 1; up = parents[up] {
			if _, ok := hosts[up]; ok {
				trees[up] = append(trees[up], pid)
				break
			}
		}
	}
	return trees
}

// alive counts the processes that are there still.
func alive(trees map[int][]int) (n int) {
	for _, pids := range trees {
		for _, pid := range pids {
			if state := field(pid, "status", "State:"); state != "" && state[0] != 'Z' {
				n++
			}
		}
	}
	return n
}

// field returns what follows a name at the beginning of a line of a process's
// file in /proc, or "".
func field(pid int, file, name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// pss is what a process holds of the memory, in KiB: what it shares is divided
// by how many share it (proc_pid_smaps_rollup(5)).
func pss(pid int) (float64, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(field(pid, "smaps_rollup", "Pss:"), " kB"))
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return float64(n), nil
}

// available is MemAvailable of proc_meminfo(5), in bytes.
func available() int64 {
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

// gone is how many MiB each of n sessions took.
func gone(before, after int64, n int) float64 { return float64(before-after) / (1 << 20) / float64(n) }

// A share is what one kind of session holds.
type share struct {
	host, network, guest []float64 // KiB of each session
	threads              int       // of all
}

// memory writes what the sessions hold.
func (c *crowd) memory(r *measure.Report) error {
	hosts, err := c.hosts()
	if err != nil {
		return err
	}
	kinds := map[bool]*share{false: {}, true: {}}
	var failed error
	for host, pids := range below(hosts) {
		k, network, guest := kinds[hosts[host]], 0.0, 0.0
		for _, pid := range pids {
			n, err := pss(pid)
			failed = errors.Join(failed, err)
			tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
			k.threads += len(tasks)
			switch {
			case pid == host:
				k.host = append(k.host, n)
			case field(pid, "status", "Name:") == "bawn-egress":
				network += n
			default:
				guest += n
			}
		}
		k.network, k.guest = append(k.network, network), append(k.guest, guest)
	}
	var rows [][]string
	for _, split := range []bool{false, true} {
		k := kinds[split]
		rows = append(rows, []string{
			map[bool]string{false: "session", true: "split session"}[split], strconv.Itoa(len(k.host)),
			mib(mean(k.host)), mib(slices.Max(append(k.host, 0))), mib(mean(k.network)), mib(mean(k.guest)), mib(mean(k.host) + mean(k.network) + mean(k.guest)),
			fmt.Sprintf("%.1f", float64(k.threads)/float64(max(len(k.host), 1))),
		})
	}
	r.Table([]string{"PSS in MiB", "number", "bawn", "largest", "network", "guest", "all", "threads"}, rows)
	return failed
}

func mean(all []float64) (m float64) {
	for _, v := range all {
		m += v / float64(len(all))
	}
	return m
}

func mib(kib float64) string { return fmt.Sprintf("%.2f", kib/1024) }

// A toll is what processes have done so far.
type toll struct {
	worked time.Duration
	woken  int // how often they have waited for something
}

func tollOf(trees map[int][]int) (t toll) {
	for _, pids := range trees {
		for _, pid := range pids {
			tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
			for _, task := range tasks {
				worked, _, _ := strings.Cut(field(pid, "task/"+task.Name()+"/schedstat", ""), " ")
				n, _ := strconv.ParseInt(worked, 10, 64)
				woken, _ := strconv.Atoi(field(pid, "task/"+task.Name()+"/status", "voluntary_ctxt_switches:"))
				t.worked, t.woken = t.worked+time.Duration(n), t.woken+woken
			}
		}
	}
	return t
}

// settled is how long sessions may have to do after their start.
const settled = 3 * time.Second

// idle writes what all sessions do while nobody wants anything of them.
func (c *crowd) idle(ctx context.Context, r *measure.Report, d time.Duration) error {
	hosts, err := c.hosts()
	if err != nil {
		return err
	}
	pause(ctx, settled)
	trees := below(hosts)
	before, began := tollOf(trees), time.Now()
	pause(ctx, d)
	after, took := tollOf(trees), time.Since(began)
	worked := after.worked - before.worked
	r.Line("idle for %.1f s: all %d sessions together used %.2f %% of one core, and woke up %.3f times a second each", took.Seconds(), len(hosts),
		100*worked.Seconds()/took.Seconds(), float64(after.woken-before.woken)/took.Seconds()/float64(len(hosts)))
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
