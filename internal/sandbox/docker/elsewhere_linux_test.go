package docker

import (
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
	docker "github.com/bawn-dev/bawn/internal/testenv/engine"
)

// TestEngineElsewhere: an engine that listens at a socket of this machine and
// has this machine's kernel, but not its files, or not its processes. The control
// is an engine that another program has started, and has both.
func TestEngineElsewhere(t *testing.T) {
	testenv.Whole(t)
	req := request(t)
	around := filepath.Dir(req.Dir)
	other := "mount -t tmpfs none " + around + " && mkdir " + req.Dir + ` && exec "$@"`
	for name, c := range map[string]struct {
		within []string
		want   string
	}{
		"here":            {[]string{"unshare", "--mount"}, ""},
		"other files":     {[]string{"unshare", "--mount", "sh", "-c", other, "sh"}, "the engine has other files than this machine"},
		"other processes": {[]string{"unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"}, "the engine counts processes otherwise than this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			e := docker.StartWithin(t, c.within...)
			p := New(Options{Host: e.Host(), Image: e.Image(t, docker.Busybox)}, Setting{Program: program, Runtime: placeFor(t)})
			began := time.Now()
			err := attempt(p, req)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v; want %q", err, c.want)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if slices.Contains(c.within, "--pid") {
				e.Signal(t, syscall.SIGKILL) // unshare(1) passes nothing else on
			}
		})
	}
}

// TestRemoteEngineIsNotAsked: by the configuration or the environment, an engine
// behind a network is refused before anything is said to it. The control is a
// socket, which is asked.
func TestRemoteEngineIsNotAsked(t *testing.T) {
	dir := t.TempDir()
	for address, asked := range map[string]bool{"tcp 127.0.0.1:0": false, "unix " + dir + "/s": true} {
		network, at, _ := strings.Cut(address, " ")
		l, err := net.Listen(network, at)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		var calls atomic.Int32
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				calls.Add(1)
				c.Close()
			}
		}()
		host := network + "://" + l.Addr().String()
		for _, p := range []*Provider{
			New(Options{Host: host, Image: "sha256:" + strings.Repeat("0", 64)}, Setting{Program: program, Runtime: dir}),
			New(Options{Image: "sha256:" + strings.Repeat("0", 64)}, Setting{Program: program, Runtime: dir, Environ: []string{"DOCKER_HOST=" + host}}),
		} {
			_, err := p.Plan(request(t))
			if err == nil || !asked && !strings.Contains(err.Error(), "an engine on another machine has neither the workspace nor the session's network") {
				t.Errorf("%s: a plan: %v", host, err)
			}
			for _, c := range p.Capabilities() {
				if c.Strength != bawn.Unenforced || c.Why == "" || !asked && !strings.Contains(c.Remedy, "use an engine of this machine") {
					t.Errorf("%s: %+v", host, c)
				}
			}
		}
		if (calls.Load() > 0) != asked {
			t.Errorf("%s was asked %d times", host, calls.Load())
		}
	}
}

// attempt makes a session and ends it.
func attempt(p *Provider, req sandbox.Request) error {
	plan, err := p.Plan(req)
	if err != nil {
		return err
	}
	g, err := p.Start(plan, func(sandbox.Denial) {})
	if err != nil {
		return err
	}
	return g.Close()
}

// TestNobodyElseIsKilled: a process is ended for a container's only where it is
// known to be that; by an ID alone it may be anybody's.
func TestNobodyElseIsKilled(t *testing.T) {
	for _, known := range []bool{false, true} {
		bystander := exec.Command("sleep", "100")
		if err := bystander.Start(); err != nil {
			t.Fatal(err)
		}
		pidfd, err := unix.PidfdOpen(bystander.Process.Pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		pid := bystander.Process.Pid
		if groupNames(pid, strings.Repeat("a", 64)) || first(pid) {
			t.Error("a process of ours is taken for a container's")
		}
		g := &guest{session: &session{pid: pid, pidfd: pidfd, known: known}}
		if err := g.end(); err != nil {
			t.Error(err)
		}
		if known {
			testenv.Until(t, "its end", func() bool { return zombie(pid) })
		} else if time.Sleep(50 * time.Millisecond); zombie(pid) {
			t.Error("it was not known, and has ended")
		}
		if err := bystander.Process.Signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		var ee *exec.ExitError
		if err := bystander.Wait(); !errors.As(err, &ee) {
			t.Error(err)
		}
	}
}
