package seatbelt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// guest is a session: process groups, each below a sandbox-exec of its own that
// became the command.
type guest struct {
	plan    *Plan
	network *sandbox.GuestNetwork
	mu      sync.Mutex
	groups  map[int]bool // that still run
	closed  bool
	hits    []sandbox.Hit
	over    sync.Once
	done    chan struct{}
}

// Exec starts a command under the profile.
func (g *guest) Exec(c sandbox.Command) (sandbox.Process, error) {
	if c.Env == nil {
		c.Env = g.plan.env
	}
	if c.Dir == "" {
		c.Dir = g.plan.Dir
	}
	if err := find(c); err != nil {
		return nil, err
	}
	port := 0
	if g.network != nil {
		port = int(g.network.ProxyPort)
	}
	attr := &os.ProcAttr{Dir: c.Dir, Env: g.plan.proxied(c.Env, port), Files: c.Stdio[:], Sys: &syscall.SysProcAttr{Setpgid: true}}
	if c.Terminal != nil {
		attr.Files = append(append([]*os.File{}, c.Stdio[:]...), c.Terminal)
		attr.Sys = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: len(c.Stdio)}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errors.New("the session has ended")
	}
	proc, err := os.StartProcess(Program, g.plan.command(c.Argv, port), attr)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", Program, err)
	}
	p := &process{ChangeList: sandbox.NewChangeList(), pid: proc.Pid, terminal: c.Terminal}
	g.groups[p.pid] = true
	go g.wait(p, c.Last)
	return p, nil
}

// find looks for the program where execvp(3) would.
func find(c sandbox.Command) error {
	if len(c.Argv) == 0 || c.Argv[0] == "" || strings.HasPrefix(c.Argv[0], "-") {
		return &sandbox.NotFoundError{Name: strings.Join(c.Argv, " "), Err: unix.ENOENT, Absent: true}
	}
	name, dirs := c.Argv[0], "/usr/bin:/bin:/usr/sbin:/sbin"
	for _, kv := range c.Env {
		if p, ok := strings.CutPrefix(kv, "PATH="); ok {
			dirs = p
		}
	}
	if strings.Contains(name, "/") {
		dirs = ""
	}
	found := unix.ENOENT
	for _, dir := range filepath.SplitList(dirs + ":")[:max(1, strings.Count(dirs, ":")+1)] {
		file := filepath.Join(dir, name)
		if !filepath.IsAbs(file) {
			file = filepath.Join(c.Dir, file)
		}
		info, err := os.Stat(file)
		switch {
		case err != nil || info.IsDir():
		case info.Mode()&0o111 != 0:
			return nil
		default:
			found = unix.EACCES
		}
	}
	return &sandbox.NotFoundError{Name: name, Err: found, Absent: found == unix.ENOENT}
}

// wait reports what becomes of a command.
func (g *guest) wait(p *process, last bool) {
	for {
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(p.pid, &ws, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		change := sandbox.Change{Stopped: err == nil && ws.Stopped(), Status: ws}
		p.Put(change)
		if !change.Stopped {
			p.End()
			break
		}
	}
	g.mu.Lock()
	delete(g.groups, p.pid)
	g.mu.Unlock()
	_ = syscall.Kill(-p.pid, syscall.SIGKILL) // what it left in its group
	if last {
		g.finish()
	}
}

func (g *guest) finish() { g.over.Do(func() { close(g.done) }) }

// OpenTerminal opens one of the machine's pseudo-terminals.
func (*guest) OpenTerminal() (master, slave *os.File, err error) { return pty.Open() }

// Network returns the sockets of a network by name.
func (g *guest) Network() *sandbox.GuestNetwork { return g.network }

// Dial returns sandbox.ErrUnsupported: the loopback is the machine's.
func (*guest) Dial(uint16) (*os.File, error) { return nil, sandbox.ErrUnsupported }

// Done is closed when the session has ended by itself.
func (g *guest) Done() <-chan struct{} { return g.done }

// Hits lists the limit for which the session was ended.
func (g *guest) Hits() []sandbox.Hit {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.hits)
}

// psTimeout ends a ps(1) that hangs.
const psTimeout = 5 * time.Second

// usage measures the session; nothing where ps fails.
func (g *guest) usage() usage {
	ctx, cancel := context.WithTimeout(context.Background(), psTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/bin/ps", "-axo", "pid=,ppid=,pgid=,rss=").Output()
	if err != nil {
		return usage{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return measure(string(out), g.groups)
}

// watch ends the session once it is above a limit.
func (g *guest) watch() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-g.done:
			return
		case <-tick.C:
		}
		u := g.usage()
		if hit := u.over(g.plan.Limits); hit != nil {
			g.mu.Lock()
			g.hits = append(g.hits, *hit)
			g.mu.Unlock()
			kill(u.pids)
			g.finish()
		}
	}
}

func kill(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // gone is as good
	}
}

// Close kills what is left and removes the session's directory.
func (g *guest) Close() error {
	kill(g.usage().pids)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed, g.hits = true, nil
	for group := range g.groups {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
	var err error
	if g.network != nil {
		err = g.network.Close()
	}
	g.finish()
	for _, dir := range append(ownDirs(g.plan), g.plan.Tmp) { // which Start made
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// process is a command of a guest.
type process struct {
	sandbox.ChangeList
	pid      int
	terminal *os.File
}

// Signal sends sig to the command's process group.
func (p *process) Signal(sig syscall.Signal) error { return syscall.Kill(-p.pid, sig) }

// Foreground gives the command the terminal.
func (p *process) Foreground() error {
	if p.terminal == nil {
		return nil
	}
	return unix.IoctlSetPointerInt(int(p.terminal.Fd()), unix.TIOCSPGRP, p.pid)
}
