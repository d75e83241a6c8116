package host

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// guest is a session that runs on the host.
type guest struct {
	plan  *Plan
	init  *rawproc.Init
	group *cgroup.Group // nil: there is no limit that one holds
	once  sync.Once
}

// Exec starts a command. The first process stays after the last one, until
// Close: otherwise its adopted processes would have no parent here.
func (g *guest) Exec(c sandbox.Command) (sandbox.Process, error) {
	if c.Env == nil {
		c.Env = g.plan.env
	}
	if c.Dir == "" {
		c.Dir = g.plan.Dir
	}
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil, &sandbox.NotFoundError{Name: `""`, Err: unix.ENOENT, Absent: true}
	}
	p := &process{ChangeList: sandbox.NewChangeList(), guest: g}
	pid, err := g.init.Run(rawproc.Command{
		Paths: candidates(c.Argv[0], c.Dir, c.Env), Args: c.Argv, Env: c.Env, Dir: c.Dir,
		Stdio: c.Stdio, Terminal: c.Terminal, Foreground: c.Foreground, OnStatus: p.changed,
	})
	var ee *rawproc.ExecError
	if errors.As(err, &ee) {
		return nil, notFound(c.Argv[0], ee.Errno)
	}
	p.pid = pid
	return p, err
}

// notFound says why a program can't be executed.
func notFound(name string, errno unix.Errno) error {
	e := &sandbox.NotFoundError{Name: name, Err: errno, Absent: errno == unix.ENOENT || errno == unix.ENOTDIR}
	if e.Absent && !strings.Contains(name, "/") {
		e.Why, e.Remedy = "not found in PATH", "install it, or give its whole path"
	}
	return e
}

// candidates are the paths that execvp(3) would try.
func candidates(name, dir string, env []string) []string {
	if strings.Contains(name, "/") {
		if !path.IsAbs(name) {
			name = dir + "/" + name
		}
		return []string{name}
	}
	search := "/usr/local/bin:/usr/bin:/bin"
	for _, kv := range env {
		if p, ok := strings.CutPrefix(kv, "PATH="); ok && p != "" {
			search = p
		}
	}
	var list []string
	for d := range strings.SplitSeq(search, ":") {
		if !path.IsAbs(d) {
			d = path.Join(dir, d)
		}
		list = append(list, d+"/"+name)
	}
	return list[:min(len(list), maxCandidates)]
}

const maxCandidates = 60 // what rawproc takes

// OpenTerminal opens one of the host's pseudo-terminals.
func (*guest) OpenTerminal() (master, slave *os.File, err error) { return pty.Open() }

// Network returns nil: the guest has the host's.
func (*guest) Network() *sandbox.GuestNetwork { return nil }

// Dial returns sandbox.ErrUnsupported: the loopback is the host's.
func (*guest) Dial(uint16) (*os.File, error) { return nil, sandbox.ErrUnsupported }

// Done is closed when the first process has ended.
func (g *guest) Done() <-chan struct{} { return g.init.Done() }

// killWait is how long Close goes on finding processes to kill.
const killWait = 2 * time.Second

// Close ends what the session has started, and removes its control group.
func (g *guest) Close() error {
	var err error
	g.once.Do(func() {
		err = g.endDescendants()
		if g.group != nil {
			err = errors.Join(err, g.group.Kill()) // and with it the first process
		}
		g.init.Kill()
		if g.group != nil {
			err = errors.Join(err, g.group.Remove())
		}
	})
	return err
}

// endDescendants kills all that descends from the first process, which adopts
// orphans, until there is nothing left but what can't be killed.
func (g *guest) endDescendants() error {
	for deadline := time.Now().Add(killWait); ; time.Sleep(time.Millisecond) {
		left, refused := 0, 0
		for _, pid := range descendants(g.init.PID()) {
			switch err := unix.Kill(pid, unix.SIGKILL); {
			case errors.Is(err, unix.EPERM):
				refused++
			case err == nil:
				left++
			}
		}
		switch {
		case left == 0 && refused == 0:
			return nil
		case left == 0 || time.Now().After(deadline):
			return fmt.Errorf("%d processes of the session go on: they have another user's rights, or did not end in %v", left+refused, killWait)
		}
	}
}

// descendants lists the processes below pid.
func descendants(pid int) []int {
	var all []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is a good one
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}

// Hits lists the limits whose counters prove that they were reached.
func (g *guest) Hits() []sandbox.Hit {
	if g.group == nil {
		return nil
	}
	used, _ := g.group.Stats() // what can't be read proves nothing
	var list []sandbox.Hit
	if used.OOMKills > 0 && used.MemoryFull && g.plan.Limits.MemoryMB > 0 {
		list = append(list, sandbox.Hit{
			Rule: "limits:memory", Killed: true, Remedy: "raise it with --memory",
			Reason: fmt.Sprintf("the session reached its memory limit of %d MiB, and a process was killed", g.plan.Limits.MemoryMB),
		})
	}
	if used.PIDsMaxHits > 0 && g.plan.Limits.PIDs > 0 {
		list = append(list, sandbox.Hit{Rule: "limits:pids", Remedy: "raise it with --pids", Reason: fmt.Sprintf("a new process was refused; the session's limit is %d", g.plan.Limits.PIDs)})
	}
	return list
}

// process is a command of a guest.
type process struct {
	sandbox.ChangeList
	guest *guest
	pid   int
}

func (p *process) changed(ws unix.WaitStatus) {
	p.Put(sandbox.Change{Stopped: ws.Stopped(), Status: syscall.WaitStatus(ws)})
	if !ws.Stopped() {
		p.End()
	}
}

// Signal sends sig to the command's process group.
func (p *process) Signal(sig syscall.Signal) error { return p.guest.init.Signal(p.pid, sig) }

// Foreground gives the command the terminal.
func (p *process) Foreground() error { return p.guest.init.Foreground(p.pid) }
