package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// How many sessions lose their host: some while their agent works, some before
// it has been started.
const (
	atWork  = 16
	atStart = 6
)

// TestHostsKilled kills the hosts of sessions. Everything in their sandboxes is
// gone with them; what was executed is in the log; nothing of theirs is left
// once another session has started.
func TestHostsKilled(t *testing.T) {
	r := newAccount(t)
	r.allow()
	dead := map[string]bool{}
	for i := range atWork {
		name := "h" + strconv.Itoa(i)
		id, pid := r.detach(name)
		r.until("a first effect of "+name, func() bool {
			info, err := os.Stat(filepath.Join(r.Work, effectsName, name))
			return err == nil && info.Size() > 0
		})
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		r.killHost(name, pid)
		dead[id] = true
	}
	for i := range atStart {
		r.killStart("s"+strconv.Itoa(i), time.Duration(rand.IntN(80))*time.Millisecond)
	}
	var listed map[string]attach.State
	r.until("the end of all sessions", func() bool { // of a dead one the last thread may still hold its lock
		listed = r.listed()
		return !slices.Contains(slices.Collect(maps.Values(listed)), attach.Running)
	})
	for id, state := range listed {
		if dead[id] && state != attach.Dead {
			t.Errorf("session %s is %q", id, state)
		}
		delete(dead, id)
	}
	if len(dead) > 0 {
		t.Errorf("bawn ps does not list %v", dead)
	}
	r.nothingLeft()
	effects, decisions := r.effects(), r.decisions()
	for id, e := range effects {
		r.recorded(id, e, decisions[id])
	}
	t.Logf("%d hosts killed: %d commands executed, %d decided", atWork+atStart, len(effects), len(decisions))
	if len(effects) < atWork {
		t.Errorf("%d commands were executed: too few to prove anything", len(effects))
	}
}

// allow has the owner allow the guest's commands, so that they come one after
// the other.
func (r *account) allow() {
	r.t.Helper()
	r.Rule(r.t, "allow", "command", strings.Join(r.Guest("*"), " "))
}

func (r *account) words(flags []string, name string) []string {
	words := append([]string{"bawn", "run", "--split", "--net", "none", "--quiet"}, flags...)
	return append(append(words, "--"), r.Guest("agent", name)...)
}

// detach starts a split session in the background.
func (r *account) detach(name string) (id string, pid int) {
	r.t.Helper()
	id = strings.TrimSpace(r.run(r.words([]string{"--detach"}, name)...))
	list, err := attach.List(r.runtime())
	check(r.t, err)
	e, err := attach.Find(list, id)
	check(r.t, err)
	r.t.Cleanup(func() { _ = attach.Signal(r.runtime(), e, "KILL") }) // where the test has failed
	return id, e.PID
}

// killHost kills a host, and waits for the end of everything in its sandboxes.
func (r *account) killHost(name string, pid int) {
	r.t.Helper()
	tree := below(pid)
	if len(tree) < 4 { // the firsts of two zones, the agent, the executor
		r.t.Errorf("the host of %s has only %v below it", name, tree)
	}
	check(r.t, syscall.Kill(pid, syscall.SIGKILL))
	r.until("the end of the processes of "+name, func() bool {
		for p, started := range tree {
			if at, ok := startOf(p); ok && at == started {
				return false
			}
		}
		return len(called(name)) == 0
	})
}

// killStart kills a host that starts a session at its owner's terminal.
func (r *account) killStart(name string, after time.Duration) {
	r.t.Helper()
	cmd := r.Command(context.Background(), r.words(nil, name)...)
	in, err := cmd.StdinPipe() // open, so that the agent works
	check(r.t, err)
	defer in.Close()
	check(r.t, cmd.Start())
	time.Sleep(after)
	check(r.t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	r.until("the end of the processes of "+name, func() bool { return len(called(name)) == 0 })
}

// listed is what bawn ps says.
func (r *account) listed() map[string]attach.State {
	r.t.Helper()
	var list []attach.Entry
	check(r.t, json.Unmarshal([]byte(r.run("bawn", "ps", "--json", "--all")), &list))
	states := map[string]attach.State{}
	for _, e := range list {
		states[e.ID] = e.State
	}
	return states
}

// nothingLeft starts another session, which sweeps, and looks what the dead
// ones have left. The last thread of a dead one may still hold its lock: then the
// next session sweeps.
func (r *account) nothingLeft() {
	r.t.Helper()
	var left []string
	defer func() {
		if r.t.Failed() {
			r.t.Logf("left: %q", left)
		}
	}()
	r.until("the removal of all that the sessions had", func() bool {
		r.run("bawn", "run", "--split", "--net", "none", "--quiet", "--", "/bin/true")
		left = nil
		for _, pattern := range []string{
			filepath.Join(r.cache, "split", "*"), filepath.Join(r.runtime(), "sessions", "*", "*.sock"), filepath.Join(r.runtime(), "*.sock"),
		} {
			found, err := filepath.Glob(pattern)
			check(r.t, err)
			left = append(left, found...)
		}
		return len(left) == 0
	})
}

// below returns the processes below one, with when they started: numbers are
// used again.
func below(root int) map[int]string {
	parents := map[int]int{}
	for _, pid := range processes() {
		if fields, ok := stat(pid); ok {
			parents[pid], _ = strconv.Atoi(fields[1])
		}
	}
	tree := map[int]string{}
	for pid := range parents {
		for up := parents[pid]; up > 1; up = parents[up] {
			if at, ok := startOf(pid); ok && up == root {
				tree[pid] = at
			}
		}
	}
	return tree
}

func processes() (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, n := range names {
		if pid, err := strconv.Atoi(filepath.Base(n)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stat is what follows the name in proc_pid_stat(5), of a process that has not
// ended: its state, its parent, and so on.
func stat(pid int) ([]string, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, false
	}
	fields := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+1:])
	return fields, len(fields) > 20 && fields[0] != "Z" && fields[0] != "X"
}

func startOf(pid int) (string, bool) {
	fields, ok := stat(pid)
	if !ok {
		return "", false
	}
	return fields[19], true
}

// called returns the processes that are an agent of that name, or its host, or
// that copy's first one.
func called(name string) (pids []int) {
	for _, pid := range processes() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if _, alive := startOf(pid); err == nil && alive && strings.HasSuffix(string(text), "\x00"+testhome.GuestWord+"\x00agent\x00"+name+"\x00") && strings.Contains(string(text), testhome.Bin()) {
			pids = append(pids, pid)
		}
	}
	return pids
}
