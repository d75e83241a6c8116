package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
)

// privateInside is where a confined git finds the private git directory.
const privateInside = "/run/bawn/private"

// confinedLimits are those of all that a confined git does at once.
var confinedLimits = bawn.Resources{MemoryMB: 3072, PIDs: 64, TmpMB: 64}

// Confined returns what starts an Untrusted in a sandbox of the kernel's own:
// without a network, without the home, and with nothing that it could write.
func Confined(p *native.Provider) func(View) (Untrusted, error) {
	return func(v View) (Untrusted, error) {
		plan, err := confinedPlan(v, p.Facts())
		if err != nil {
			return nil, err
		}
		return &confined{view: v, provider: p, plan: plan}, nil
	}
}

// visible are the directories of the system that git needs, as far as they are
// there. Everything else at the top is covered.
var visible = []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "proc", "dev", "sys", "nix", "gnu"}

// confinedPlan shows the system's programs, the private git directory and the
// object directories, all read-only.
func confinedPlan(v View, f layout.Facts) (*layout.Plan, error) {
	p := &layout.Plan{
		Rung: layout.RungNamespaces, Namespaces: []string{"user", "mount", "pid", "ipc", "uts", "cgroup", "net"},
		UID: layout.Mapping{Inside: f.UID, Outside: f.UID}, GID: layout.Mapping{Inside: f.GID, Outside: f.GID},
		Limits: confinedLimits, Dir: "/", Env: environ(), Session: "git-" + v.Session,
		Seccomp: "guest, supervised", Supervised: true,
	}
	if f.UID == 0 {
		p.UID.Inside, p.GID.Inside = f.NobodyUID, f.NobodyGID
	}
	p.Mounts = []layout.Mount{{Kind: layout.KindRoot, Source: "/", Target: "/"}, {Kind: layout.KindProc, Target: "/proc"}, {Kind: layout.KindDev, Target: "/dev", SizeMB: 1, Devices: []string{"null", "zero", "random", "urandom"}}}
	top, err := os.ReadDir("/")
	if err != nil {
		return nil, err
	}
	hidden := []string{"/etc/shadow", "/etc/gshadow", "/etc/ssl/private", "/etc/sudoers", "/etc/ssh", "/etc/bawn"}
	for _, e := range top {
		if !e.IsDir() || slices.Contains(visible, e.Name()) || e.Name() == "run" {
			continue
		}
		p.Mounts = append(p.Mounts, layout.Mount{Kind: layout.KindTmpfs, Target: "/" + e.Name(), SizeMB: 1, Mode: 0o755})
	}
	for _, h := range hidden {
		if fi, err := os.Lstat(h); err == nil && fi.IsDir() {
			p.Mounts = append(p.Mounts, layout.Mount{Kind: layout.KindHideDir, Target: h})
		} else if err == nil && fi.Mode().IsRegular() {
			p.Mounts = append(p.Mounts, layout.Mount{Kind: layout.KindHide, Target: h})
		}
	}
	shown := append([]bawn.GitObjects{{Source: v.Private, Target: privateInside}}, v.Objects...)
	made := []string{"/run/bawn"}
	for _, o := range shown {
		if !strings.HasPrefix(o.Target, "/run/bawn/") || filepath.Clean(o.Target) != o.Target {
			return nil, fmt.Errorf("BUG(bawn): objects can't be shown at %q", o.Target)
		}
		for i, r := range o.Target[len("/run/bawn/"):] {
			if r == '/' {
				made = append(made, o.Target[:len("/run/bawn/")+i])
			}
		}
		made = append(made, o.Target)
	}
	p.Mounts = append(p.Mounts, layout.Mount{Kind: layout.KindTmpfs, Target: "/run", SizeMB: 1, Mode: 0o755, Make: made})
	for _, o := range shown {
		at, ok := f.Own(o.Source)
		if !ok || !at.Dir {
			return nil, fmt.Errorf("%q is no directory any more", o.Source)
		}
		p.Mounts = append(p.Mounts, layout.Mount{Kind: layout.KindBindRO, Source: at.Real, Target: o.Target, ID: at.ID})
	}
	p.Landlock = layout.Landlock{ABI: f.LandlockABI, Writable: []string{"/dev", "/run", "/tmp"}}
	return p, nil
}

// confined runs git in a sandbox that is made for the first one.
type confined struct {
	view     View
	provider *native.Provider
	plan     *layout.Plan
	mu       sync.Mutex
	guest    sandbox.Guest
}

// sandbox returns the running sandbox.
func (c *confined) sandbox() (sandbox.Guest, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.guest != nil {
		select {
		case <-c.guest.Done():
			c.guest.Close()
		default:
			return c.guest, nil
		}
	}
	g, err := c.provider.Start(c.plan, func(sandbox.Denial) {})
	if err != nil {
		return nil, fmt.Errorf("make the sandbox in which the guest's git directory is read: %w", err)
	}
	c.guest = g
	return g, nil
}

// Git runs one git. When ctx ends everything in the sandbox does, before Git returns:
// the next one is for another sandbox.
func (c *confined) Git(ctx context.Context, dir string, in io.Reader, out io.Writer, args ...string) error {
	g, err := c.sandbox()
	if err != nil {
		return err
	}
	p, err := newPipes(in)
	if err != nil {
		return err
	}
	defer p.close()
	argv := append([]string{c.view.Program}, append(readArgs(filepath.Join(privateInside, dir)), args...)...)
	proc, err := g.Exec(sandbox.Command{Argv: argv, Env: environ(), Dir: "/", Stdio: p.theirs})
	p.started()
	if err != nil {
		return fmt.Errorf("run git in its sandbox: %w", err)
	}
	dropped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = c.drop(g); close(dropped) })
	defer func() {
		if !stop() {
			<-dropped
		}
	}()
	said, err := p.carry(in, out)
	if err != nil {
		_ = c.drop(g) // it may write on and on
		return errors.Join(err, ctx.Err())
	}
	status, err := ended(g, proc)
	if err == nil && status != 0 {
		err = &gitError{args[0] + " of the guest's git directory", message(said), fmt.Errorf("status %d", status)}
	}
	return errors.Join(err, ctx.Err())
}

// ended waits for the end of a process.
func ended(g sandbox.Guest, proc sandbox.Process) (syscall.WaitStatus, error) {
	for {
		select {
		case ch, ok := <-proc.Changes():
			if !ok {
				return 0, errSandboxGone
			}
			if !ch.Stopped {
				return ch.Status, nil
			}
		case <-g.Done():
			select {
			case ch, ok := <-proc.Changes(): // it came just before
				if ok && !ch.Stopped {
					return ch.Status, nil
				}
			default:
			}
			return 0, errSandboxGone
		}
	}
}

var errSandboxGone = errors.New("the sandbox in which the guest's git directory is read has ended")

// Close ends the sandbox. A later Git makes another.
func (c *confined) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end(c.guest)
}

// drop ends one sandbox, unless there is another by now.
func (c *confined) drop(g sandbox.Guest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end(g)
}

func (c *confined) end(g sandbox.Guest) error {
	if g == nil || c.guest != g {
		return nil
	}
	c.guest = nil
	return g.Close()
}

// pipes are the standard streams of one git.
type pipes struct {
	theirs [3]*os.File
	ours   [3]*os.File
}

func newPipes(in io.Reader) (p *pipes, err error) {
	p = &pipes{}
	if in == nil {
		p.theirs[0], err = os.Open(os.DevNull)
	} else {
		p.theirs[0], p.ours[0], err = os.Pipe()
	}
	for i := 1; i < 3 && err == nil; i++ {
		p.ours[i], p.theirs[i], err = os.Pipe()
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// started closes the ends that git has now.
func (p *pipes) started() { closeAll(p.theirs[:]) }

func (p *pipes) close() {
	closeAll(p.theirs[:])
	closeAll(p.ours[:])
}

func closeAll(files []*os.File) {
	for i, f := range files {
		if f != nil {
			f.Close()
			files[i] = nil
		}
	}
}

// carry moves input and output until git has closed its side.
func (p *pipes) carry(in io.Reader, out io.Writer) (said []byte, err error) {
	var wait sync.WaitGroup
	if in != nil {
		w := p.ours[0]
		p.ours[0] = nil
		wait.Go(func() {
			_, _ = io.Copy(w, in) // git may have read enough
			w.Close()
		})
	}
	messages := &bounded{limit: maxMessage, cut: true}
	wait.Go(func() { _, _ = io.Copy(messages, p.ours[2]) }) // if this fails, the messages so far are enough
	if out == nil {
		out = io.Discard
	}
	_, err = io.Copy(out, p.ours[1])
	if err != nil {
		closeAll(p.ours[1:2])
		return nil, err
	}
	wait.Wait()
	return messages.Bytes(), nil
}
