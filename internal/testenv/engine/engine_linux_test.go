package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// makerVariable makes the test binary a maker of an engine that is killed.
const makerVariable = "BAWN_TEST_ENGINE_MAKER"

func TestMain(m *testing.M) {
	if os.Getenv(makerVariable) != "" {
		os.Exit(m.Run())
	}
	code := m.Run()
	if err := Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run runs a command in a new container and returns its exit code.
func run(t *testing.T, e *Engine, image, runtime string, argv ...string) int {
	t.Helper()
	id := create(t, e, image, runtime, argv...)
	e.post(t, "/containers/"+id+"/start", nil)
	var end struct{ StatusCode int }
	if err := json.Unmarshal(e.post(t, "/containers/"+id+"/wait", nil), &end); err != nil {
		t.Fatal(err)
	}
	e.call(t, http.MethodDelete, "/containers/"+id+"?v=1&force=1", nil)
	return end.StatusCode
}

func create(t *testing.T, e *Engine, image, runtime string, argv ...string) string {
	t.Helper()
	var made struct{ ID string }
	body := map[string]any{"Image": image, "Cmd": argv, "HostConfig": map[string]any{"Runtime": runtime}}
	if err := json.Unmarshal(e.post(t, "/containers/create", body), &made); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

func (e *Engine) post(t testing.TB, path string, body any) []byte {
	t.Helper()
	return e.call(t, http.MethodPost, path, body)
}

func (e *Engine) call(t testing.TB, method, path string, body any) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	text, err := e.Call(ctx, method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, e.Log())
	}
	return text
}

func TestEngineRunsContainers(t *testing.T) {
	e := Shared(t)
	before := e.Inventory(t)
	if code := run(t, e, e.Image(t, Busybox), "", "sh", "-c", "test -e /bin/ls && exit 7"); code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
	if len(before) > 0 {
		t.Errorf("a new engine holds %q", before)
	}
	if left := e.Left(t); len(left) > 0 {
		t.Errorf("the container left %q", left)
	}
	if links, err := net.Interfaces(); err != nil || strings.Contains(fmt.Sprint(links), "docker0") {
		t.Errorf("interfaces of the host: %v, %v; want none of the engine's", links, err)
	}
}

// TestInventorySees is the control of every test that finds nothing left.
func TestInventorySees(t *testing.T) {
	e := Shared(t)
	id := create(t, e, e.Image(t, Busybox), "", "sleep", "60")
	e.post(t, "/containers/"+id+"/start", nil)
	e.post(t, "/networks/create", map[string]any{"Name": "left-net"})
	e.post(t, "/volumes/create", map[string]any{"Name": "left-volume"})
	list := strings.Join(e.Inventory(t), "\n")
	for _, want := range []string{"container " + id, "network left-net", "volume left-volume", "mount " + e.Dir, "process sleep", "cgroup /sys/fs/cgroup"} {
		if !strings.Contains(list, want) {
			t.Errorf("%q not seen in:\n%s", want, list)
		}
	}
	e.call(t, http.MethodDelete, "/containers/"+id+"?force=1", nil)
	e.call(t, http.MethodDelete, "/networks/left-net", nil)
	e.call(t, http.MethodDelete, "/volumes/left-volume", nil)
	if left := e.Left(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestImageForWork(t *testing.T) {
	e := Shared(t)
	const script = `set -e; cd /tmp; git init -q x; python3 -c 'import json, sqlite3, ssl'; bash -c 'ps >/dev/null'
make --version >/dev/null; awk 'BEGIN { exit 0 }'; tar cf - x | gzip >x.tgz; curl --version >/dev/null; find . | sort | sed p | grep -q x; id; exit 9`
	if code := run(t, e, e.Image(t, Work), "", "sh", "-c", script); code != 9 {
		t.Errorf("exit code %d, want 9", code)
	}
}

// TestKilledMaker kills who made an engine, once alone and once with the
// engine, while a container runs; the next engine's start removes what is left.
func TestKilledMaker(t *testing.T) {
	testenv.Need(t, "docker")
	for _, alone := range []bool{true, false} {
		t.Run(fmt.Sprintf("alone=%v", alone), func(t *testing.T) {
			parent, err := os.MkdirTemp("", "e") // short: sockets lie below
			if err != nil {
				t.Fatal(err)
			}
			defer os.Remove(parent)
			cmd, dir, pid := startMaker(t, parent)
			name := filepath.Base(dir)
			sockets := shimSockets(t, name)
			if pids, err := membersOf(name); err != nil || len(pids) < 4 {
				t.Fatalf("processes of the engine: %v, %v; want dockerd, containerd, shim and container", pids, err)
			}
			if err := sweep(parent); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(dir); err != nil {
				t.Errorf("what belongs to somebody who lives was swept: %v", err)
			}
			if !alone {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if err := sweep(parent); err != nil {
				t.Error(err)
			}
			gone(t, dir, name)
			for _, s := range sockets {
				if _, err := os.Lstat(s); err == nil {
					t.Errorf("the socket of a shim is left: %q", s)
				}
			}
		})
	}
}

// startMaker starts this binary as the maker of an engine below parent.
func startMaker(t *testing.T, parent string) (cmd *exec.Cmd, dir string, pid int) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "-test.run=^TestMaker$", "-test.v")
	cmd.Env = append(os.Environ(), makerVariable+"=1", "TMPDIR="+parent)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if n, _ := fmt.Sscanf(lines.Text(), "engine %s %d", &dir, &pid); n == 2 {
			return cmd, dir, pid
		}
	}
	t.Fatal("the maker made no engine")
	return nil, "", 0
}

// TestMaker is the maker.
func TestMaker(t *testing.T) {
	if os.Getenv(makerVariable) == "" {
		return // the binary is the test
	}
	e := Start(t)
	e.post(t, "/containers/"+create(t, e, e.Image(t, Busybox), "", "sleep", "600")+"/start", nil)
	fmt.Printf("engine %s %d\n", e.Dir, e.PID())
	time.Sleep(time.Minute)
}

// shimSockets lists the sockets of the shims of one engine, of which there is one at
// least. Other tests have engines of their own.
func shimSockets(t *testing.T, name string) (list []string) {
	t.Helper()
	pids, err := membersOf(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		open := map[string]bool{}
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // the pattern is sound
		for _, l := range links {
			to, _ := os.Readlink(l) // it may be closed
			open[to] = true
		}
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", pid)) // it may have ended
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) == 8 && open["socket:["+f[6]+"]"] && strings.HasPrefix(f[7], "/run/containerd/s/") {
				list = append(list, f[7])
			}
		}
	}
	if len(list) == 0 {
		t.Fatal("the engine has no socket of a shim")
	}
	return list
}

func gone(t *testing.T, dir, name string) {
	t.Helper()
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is still there", dir)
	}
	pids, err := membersOf(name)
	groups, err2 := groupsOf(name)
	mounts, err3 := mountsBelow(dir)
	if len(pids)+len(groups)+len(mounts) > 0 || err != nil || err2 != nil || err3 != nil {
		t.Errorf("left: processes %v, groups %q, mounts %q (%v, %v, %v)", pids, groups, mounts, err, err2, err3)
	}
}

func TestDead(t *testing.T) {
	own, err := ownPrefix()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		own + "1":                              false,
		"bawn-engine-1-999999999999999-1":      true, // process 1 was started at another time
		"bawn-engine-4194305-1-1":              true, // above every process ID
		"bawn-engine-4194305-1":                false,
		"bawn-engine-4194305-1-1x":             false,
		"bawn-engine-99999999999999999999-1-1": false,
		"x-bawn-engine-4194305-1-1":            false,
		"":                                     false,
	} {
		if got := dead(name); got != want {
			t.Errorf("dead(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestRemovesOnlyItsOwn(t *testing.T) {
	parent := t.TempDir()
	for _, name := range []string{"other", "bawn-engine-1-1-1.txt"} {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := remove(dir); err == nil {
			t.Errorf("remove(%q) wants to remove it", name)
		}
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	link := filepath.Join(parent, "bawn-engine-4194305-1-1")
	if err := os.Symlink(filepath.Join(parent, "other"), link); err != nil {
		t.Fatal(err)
	}
	if err := remove(link); err == nil {
		t.Error("a link is followed")
	}
}
