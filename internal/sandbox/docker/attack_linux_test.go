package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/maker"
	"github.com/bawn-dev/bawn/internal/testenv"
	docker "github.com/bawn-dev/bawn/internal/testenv/engine"
)

// TestReplacedWorkspace puts another directory in the workspace's place between
// the plan and the start, as another session could that may write around it. The
// engine goes by names. The control starts from the plan as it was.
func TestReplacedWorkspace(t *testing.T) { replacedWorkspace(t, provide(t, Options{})) }

func replacedWorkspace(t *testing.T, p *Provider) {
	req := request(t)
	elsewhere := filepath.Join(filepath.Dir(req.Dir), "elsewhere")
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	control, err := p.Start(plan, func(sandbox.Denial) {})
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	if err := errors.Join(control.Close(), os.Rename(req.Dir, elsewhere), os.Mkdir(req.Dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if g, err := p.Start(plan, func(sandbox.Denial) {}); err == nil || !strings.Contains(err.Error(), "is not the") {
		if err == nil {
			g.Close()
		}
		t.Errorf("got %v; want a refusal", err)
	}
}

// TestOnlyTheFirstProcessIsHeard has somebody else of the same user connect to
// the control socket before the container does.
func TestOnlyTheFirstProcessIsHeard(t *testing.T) {
	m, err := maker.Self()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pid  int
		want bool
	}{"the one that was started": {os.Getpid(), true}, "another": {os.Getppid(), false}} {
		t.Run(name, func(t *testing.T) {
			pl, err := makePlace(placeFor(t), m)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := net.Dial("unix", filepath.Join(pl.at(controlEntry), controlName))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			pidfd, err := unix.PidfdOpen(c.pid, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(pidfd)
			limit := 300 * time.Millisecond
			if c.want {
				limit = 20 * time.Second
			}
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			f, err := pl.accept(ctx, c.pid, pidfd)
			if (err == nil) != c.want {
				t.Errorf("accepted: %v, %v", f != nil, err)
			}
			if f != nil {
				f.Close()
			}
			if err := pl.remove(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNoProcessOutlivesTheEnd leaves deaf and detached processes behind.
func TestNoProcessOutlivesTheEnd(t *testing.T) {
	g, _ := started(t, provide(t, Options{}), request(t))
	run(t, g, "(trap '' TERM HUP INT; setsid sleep 1000 & sleep 1000 &) >/dev/null 2>&1 </dev/null")
	var dir syscall.Stat_t
	ns := fmt.Sprintf("/proc/%d/ns/pid", g.pid)
	if err := syscall.Stat(ns, &dir); err != nil {
		t.Fatal(err)
	}
	if n := inNamespace(t, dir.Ino); n < 3 {
		t.Fatalf("control: %d processes; want the executor and two sleeps", n)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if n := inNamespace(t, dir.Ino); n > 0 {
		t.Errorf("%d processes are left", n)
	}
}

// inNamespace counts the processes of a PID namespace that still run: the
// engine may collect what has ended a little later.
func inNamespace(t *testing.T, ino uint64) (n int) {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		var st syscall.Stat_t
		if syscall.Stat(p, &st) == nil && st.Ino == ino && !ended(filepath.Dir(filepath.Dir(p))) {
			n++
		}
	}
	return n
}

// TestTagsAreRefused wants the line that pins what a tag means now.
func TestTagsAreRefused(t *testing.T) {
	e := docker.Shared(t)
	p := provide(t, Options{Image: docker.Busybox})
	want := fmt.Sprintf("what it means now is: image = %q", e.Image(t, docker.Busybox))
	_, err := p.Plan(request(t))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v; want %q", err, want)
	}
	none := "sha256:" + strings.Repeat("0", 64)
	if _, err := provide(t, Options{Image: none}).Plan(request(t)); err == nil || !strings.Contains(err.Error(), "by its ID alone none can be fetched") {
		t.Errorf("an image that is not there: %v", err)
	}
}

// TestHidden covers places in what is shown, and leaves nothing of the covers
// on the host.
func TestHidden(t *testing.T) { hidden(t, provide(t, Options{})) }

func hidden(t *testing.T, p *Provider) {
	req := request(t)
	dir, file := filepath.Join(req.Dir, "closed"), filepath.Join(req.Dir, "key")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "x"), []byte("hush"), 0o644), os.WriteFile(file, []byte("hush"), 0o644)); err != nil {
		t.Fatal(err)
	}
	const text = "cat key closed/x; ls closed; chmod 777 key closed; echo >key"
	control, _ := started(t, p, req)
	if out, _ := run(t, control, text); strings.Count(out, "hush") != 2 {
		t.Fatalf("control: %q", out)
	}
	if err := errors.Join(control.Close(), os.WriteFile(file, []byte("hush"), 0o644)); err != nil {
		t.Fatal(err)
	}
	req.Session.ID += "-hidden"
	for _, at := range []string{dir, file} {
		req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: at, Access: bawn.Hidden, Why: "--deny"})
	}
	g, _ := started(t, p, req)
	if out, _ := run(t, g, text); strings.Contains(out, "hush") || strings.Contains(out, "\nx\n") {
		t.Errorf("the guest reads %q", out)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "hush" {
		t.Errorf("the file has become %q, %v", got, err)
	}
}

// TestMemoryIsLimited ends a guest that takes too much, and says why; the
// control takes less.
func TestMemoryIsLimited(t *testing.T) {
	p := provide(t, Options{})
	req := request(t)
	req.Session.Isolation.Resources.MemoryMB, req.Session.Isolation.Resources.TmpMB = 32, 256
	g, _ := started(t, p, req)
	if out, status := run(t, g, "head -c 8000000 /dev/zero >/tmp/x && echo ok"); out != "ok\n" || len(g.Hits()) > 0 {
		t.Fatalf("control: %q, %v, %+v", out, status, g.Hits())
	}
	testenv.Until(t, "the kernel ends what takes too much", func() bool {
		out, status := run(t, g, "head -c 200000000 /dev/zero | tail -c 100000000 >/dev/null")
		if t.Logf("%q, %v, %+v", out, status, g.Hits()); status.ExitStatus() == 0 {
			t.Fatal("it has what it may not take")
		}
		return len(g.Hits()) > 0
	})
	if hits := g.Hits(); len(hits) != 1 || hits[0].Rule != "limits:memory" {
		t.Errorf("hits are %+v", hits)
	}
}

// TestProgramIsStatic refuses a program that no image could run; the control is
// ours.
func TestProgramIsStatic(t *testing.T) {
	if err := static(program); err != nil {
		t.Errorf("control: %v", err)
	}
	for _, other := range []string{"/bin/sh", "/etc/passwd", "/nothing"} {
		if err := static(other); err == nil {
			t.Errorf("%s is accepted", other)
		}
	}
}

// ended reports whether a process, by its directory below /proc, is dead and
// only waits to be collected. Source: proc_pid_stat(5), field 3.
func ended(dir string) bool {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) // it has ended since it was opened
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}
