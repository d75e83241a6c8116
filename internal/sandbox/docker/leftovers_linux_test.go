package docker

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/maker"
	"github.com/bawn-dev/bawn/internal/testenv"
	docker "github.com/bawn-dev/bawn/internal/testenv/engine"
)

// manyVariable says how many sessions are killed; a few where it is not set.
const manyVariable = "BAWN_TEST_MANY"

// TestKilledMakersLeaveNothing ends sessions by kill -9 of their maker, at any
// moment of their lives, and wants nothing of them to be left once somebody else
// has started a session.
func TestKilledMakersLeaveNothing(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(manyVariable))
	if err != nil {
		n = 4
	}
	killedMakers(t, provide(t, Options{}), n, bawn.NetworkNone, func(string) bool { return false })
}

// killedMakers wants nothing to be left but what keeps says the engine may keep.
func killedMakers(t *testing.T, p *Provider, n int, network bawn.NetworkMode, keeps func(thing string) bool) {
	e := docker.Shared(t)
	p.setting.Runtime = placeFor(t)
	before := e.Inventory(t)
	a := act{Options: p.options, Setting: Setting{Runtime: p.setting.Runtime, Cache: filepath.Join(t.TempDir(), "cache")}, Text: "sleep 1000 & sleep 1000", Hold: true}
	a.Request.Session.Isolation.Network, a.Request.Relay = network, network == bawn.NetworkAllowlist
	kill(t, a, 0) // makes the cache
	for k := range n {
		kill(t, a, time.Duration(1+k*700/n+rand.IntN(700/n+1))*time.Millisecond)
	}
	made := e.Inventory(t)
	more := func() []string { // than before, when earlier tests' may still have been there
		return slices.DeleteFunc(e.Inventory(t), func(thing string) bool { return slices.Contains(before, thing) || keeps(thing) })
	}
	var left []string
	for range 3 { // a slow engine goes on making what nobody waits for; the start after that removes it
		g, _ := started(t, p, request(t))
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		left = more()
		for end := time.Now().Add(20 * time.Second); len(left) > 0 && time.Now().Before(end); left = more() {
			time.Sleep(100 * time.Millisecond)
		}
		if len(left) == 0 {
			break
		}
	}
	if len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if list, err := os.ReadDir(filepath.Join(p.setting.Runtime, placesName)); err != nil || len(list) > 0 {
		t.Errorf("directories are left: %v, %v", list, err)
	}
	t.Logf("after %d kills the engine had %d things more", n, len(made)-len(before))
}

// placeFor is a runtime directory by a name that has no test's in it.
func placeFor(t testing.TB) string {
	dir, err := os.MkdirTemp("/var/tmp", "bawn-rt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// kill plays an act and kills it some time after it began, or once it holds for
// 0.
func kill(t *testing.T, a act, after time.Duration) {
	t.Helper()
	cmd := a.command(t, os.Geteuid())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(max(after, 10*time.Millisecond), func() {
		if after > 0 {
			_ = cmd.Process.Kill()
		}
	})
	defer timer.Stop()
	for s := bufio.NewScanner(out); s.Scan(); {
		if s.Text() == "running" && after == 0 {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // it was killed
}

// TestDeadMaker tells who is gone.
func TestDeadMaker(t *testing.T) {
	me, err := maker.Self()
	if err != nil || me.Gone() {
		t.Fatalf("this process: %v, %v", me, err)
	}
	back, err := maker.Parse(me.String())
	if err != nil || back.PID != me.PID || back.Start != me.Start {
		t.Errorf("got %v back as %v, %v", me, back, err)
	}
	for name, c := range map[string]struct {
		change func(map[string]string)
		left   bool
	}{
		"alive":                     {func(map[string]string) {}, false},
		"another with its ID":       {func(l map[string]string) { l["dev.bawn.maker"] = fmt.Sprintf("%d:%d", me.PID, me.Start+1) }, true},
		"nobody with its ID":        {func(l map[string]string) { l["dev.bawn.maker"] = "4194305:1" }, true},
		"in another PID namespace":  {func(l map[string]string) { l["dev.bawn.maker"], l[maker.LabelSpace] = "4194305:1", "1" }, false},
		"no PID namespace":          {func(l map[string]string) { delete(l, maker.LabelSpace); l["dev.bawn.maker"] = "4194305:1" }, false},
		"somebody else's container": {func(l map[string]string) { delete(l, "dev.bawn.session"); l["dev.bawn.maker"] = "4194305:1" }, false},
		"a guest's own container":   {func(l map[string]string) { l["dev.bawn.role"], l["dev.bawn.maker"] = "child", "4194305:1" }, false},
		"no maker":                  {func(l map[string]string) { l["dev.bawn.maker"] = "4194305" }, false},
		"a maker that is none":      {func(l map[string]string) { l["dev.bawn.maker"] = "-1:1" }, false},
	} {
		labels := me.Labels(nil, "s", roleSession)
		c.change(labels)
		if got := left(labels, me); got != c.left {
			t.Errorf("%s: left is %v, want %v", name, got, c.left)
		}
	}
}

// TestNames: labels of an image are also those of its containers, whose names are
// their makers'.
func TestNames(t *testing.T) {
	for name, want := range map[string]bool{"/bawn-abc": true, "/users-own-db": false, "/my-bawn-x": false} {
		if named([]string{name}) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
	if named(nil) {
		t.Error("a container without a name is ours")
	}
}

// TestSilentEngine has an engine that accepts connections and says nothing.
func TestSilentEngine(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := New(Options{Host: socket, Image: "sha256:" + strings.Repeat("0", 64)}, Setting{Program: program, Runtime: runtimePlace(t)})
	if p.engine, err = connect(p.host); err != nil {
		t.Fatal(err)
	}
	p.engine.life, p.engine.slow = 200*time.Millisecond, 200*time.Millisecond
	began := time.Now()
	_, err = p.Plan(request(t))
	var m *sandbox.MismatchError
	if !errors.As(err, &m) || !strings.Contains(err.Error(), "no answer within 200ms") {
		t.Errorf("got %v; want a mismatch with the reason", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestEngineStops has the engine hang, and then die, in the middle of a
// session. Commands go on; the end is bounded, and nothing of the guest lives.
func TestEngineStops(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			e := docker.Start(t)
			p := New(Options{Host: e.Host(), Image: e.Image(t, docker.Busybox)}, Setting{Program: program, Runtime: placeFor(t)})
			plan, err := p.Plan(request(t))
			if err != nil {
				t.Fatal(err)
			}
			started, err := p.Start(plan, func(sandbox.Denial) {})
			if err != nil {
				t.Fatal(err)
			}
			g := started.(*guest)
			e.Signal(t, signal)
			if out, _ := run(t, g, "echo still there"); out != "still there\n" {
				t.Errorf("a command without the engine: %q", out)
			}
			p.engine.life, p.engine.slow = 500*time.Millisecond, 500*time.Millisecond
			began := time.Now()
			if _, err := p.Start(plan, func(sandbox.Denial) {}); err == nil {
				t.Error("a session began without an engine")
			}
			var ee *EngineError
			if err := g.Close(); !errors.As(err, &ee) {
				t.Errorf("Close: got %v; want what the engine did not do", err)
			}
			if took := time.Since(began); took > 40*time.Second {
				t.Errorf("it took %v", took)
			}
			testenv.Until(t, "the end of the container's first process", func() bool {
				_, err := os.Stat(fmt.Sprintf("/proc/%d", g.pid))
				return err != nil || zombie(g.pid)
			})
		})
	}
}

// zombie reports whether a process has ended and waits to be reaped, by an
// engine that doesn't.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// What is said about an image that is not there can be done.
func TestFetch(t *testing.T) {
	for reference, want := range map[string]string{
		"alpine:3": "docker pull alpine:3, or", "sha256:" + strings.Repeat("a", 64): "by its ID alone", "0123456789ab": "by its ID alone",
		"alpine@sha256:" + strings.Repeat("a", 64): "docker pull alpine@",
	} {
		if got := fetch(reference); !strings.Contains(got, want) {
			t.Errorf("%s: %q; want %q", reference, got, want)
		}
	}
}
