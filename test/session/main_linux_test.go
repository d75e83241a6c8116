// Package session_test runs sessions in the background as a user does: from
// terminals, with the real program.
package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/cli"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/skill/strict"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/verb"
)

const patience = 30 * time.Second

// TestMain makes this program bawn where that is what it is called.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "bawn" {
		os.Exit(m.Run())
	}
	dir, err := os.Getwd()
	if err != nil {
		os.Exit(125)
	}
	os.Exit(cli.Main(os.Args[1:], &launch.Env{World: verb.World{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Dir: dir}, CheckSkill: strict.Check}))
}

// A home is a user's, with a project in it and bawn in PATH.
type home struct {
	t        *testing.T
	dir      string
	bin      string
	env      []string
	registry string
}

func newHome(t *testing.T, features ...string) *home {
	t.Helper()
	testenv.Need(t, append([]string{"userns", "landlock", "seccomp", "notify"}, features...)...)
	h := &home{t: t, dir: testenv.TempDir(t)}
	h.bin = filepath.Join(h.dir, "bin")
	run := filepath.Join(h.dir, "run")
	for dir, mode := range map[string]os.FileMode{h.bin: 0o755, run: 0o700, filepath.Join(h.dir, "project"): 0o755} {
		check(t, os.MkdirAll(dir, mode))
	}
	self, err := os.ReadFile("/proc/self/exe")
	check(t, err)
	check(t, os.WriteFile(filepath.Join(h.bin, "bawn"), self, 0o755))
	h.registry = filepath.Join(run, "bawn")
	h.env = []string{
		"HOME=" + h.dir, "XDG_STATE_HOME=" + filepath.Join(h.dir, "state"), "XDG_RUNTIME_DIR=" + run, "PATH=" + h.bin + ":/usr/local/bin:/usr/bin:/bin",
		"TERM=xterm", "LANG=C.UTF-8", "PS1=$ ",
	}
	t.Cleanup(h.killAll)
	return h
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// killAll leaves no session behind, whatever the test has left.
func (h *home) killAll() {
	for _, s := range h.sessions() {
		if s.State == attach.Running {
			_ = attach.Signal(h.registry, s, "KILL")
		}
	}
}

func (h *home) sessions() []attach.Entry {
	h.t.Helper()
	list, err := attach.List(h.registry)
	check(h.t, err)
	return list
}

func (h *home) command(argv ...string) *exec.Cmd {
	c := exec.Command(argv[0], argv[1:]...)
	if argv[0] == "bawn" {
		c.Path = filepath.Join(h.bin, "bawn")
		c.Err = nil
	}
	c.Dir, c.Env, c.WaitDelay = filepath.Join(h.dir, "project"), h.env, patience // as long as somebody holds its output: a busy machine is slow
	return c
}

type result struct {
	out, err string
	code     int
}

// run runs a command without a terminal.
func (h *home) run(argv ...string) result {
	h.t.Helper()
	c := h.command(argv...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	timer := time.AfterFunc(patience, func() { _ = c.Process.Kill() })
	err := c.Run()
	var exit *exec.ExitError
	if !timer.Stop() || err != nil && !errors.As(err, &exit) {
		h.t.Fatalf("%q: %v\n%s%s", argv, err, &out, &errs)
	}
	return result{out.String(), errs.String(), c.ProcessState.ExitCode()}
}

// bawn runs bawn and wants an exit code.
func (h *home) bawn(code int, args ...string) result {
	h.t.Helper()
	r := h.run(append([]string{"bawn"}, args...)...)
	if r.code != code {
		h.t.Fatalf("bawn %q ends with %d, want %d\n%s%s", args, r.code, code, r.out, r.err)
	}
	return r
}

// detach starts a session in the background and returns its ID.
func (h *home) detach(argv ...string) string {
	h.t.Helper()
	r := h.bawn(0, append([]string{"run", "-d", "-q", "--net", "none", "--"}, argv...)...)
	return strings.TrimSpace(r.out)
}

// ps is what bawn ps says of the sessions that run, by ID.
func (h *home) ps(flags ...string) map[string]attach.Entry {
	h.t.Helper()
	var list []attach.Entry
	check(h.t, json.Unmarshal([]byte(h.bawn(0, append([]string{"ps", "--json"}, flags...)...).out), &list))
	out := map[string]attach.Entry{}
	for _, s := range list {
		out[s.ID] = s
	}
	return out
}

// A person sits at a terminal and runs one command there.
type person struct {
	t      *testing.T
	home   *home
	master *os.File
	slave  *os.File      // open, so that the terminal outlives the command
	before *unix.Termios // the terminal's modes when the command was started
	cmd    *exec.Cmd

	mu   sync.Mutex
	seen bytes.Buffer
}

// openTerminal starts a command at a terminal of its own.
func (h *home) openTerminal(argv ...string) *person {
	h.t.Helper()
	master, slave, err := pty.Open()
	check(h.t, err)
	master = pollable(h.t, master)
	check(h.t, pty.Setsize(slave, &pty.Winsize{Rows: 20, Cols: 70}))
	p := &person{t: h.t, home: h, master: master, slave: slave, cmd: h.command(argv...)}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.before, err = unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	check(h.t, err)
	check(h.t, p.cmd.Start())
	go p.look()
	h.t.Cleanup(func() { p.cmd.Process.Kill(); p.cmd.Wait(); slave.Close(); master.Close() })
	return p
}

// pollable is a file of which a read ends when it is closed.
func pollable(t *testing.T, f *os.File) *os.File {
	t.Helper()
	fd, err := syscall.Dup(int(f.Fd()))
	check(t, err)
	syscall.CloseOnExec(fd)
	check(t, syscall.SetNonblock(fd, true))
	f.Close()
	return os.NewFile(uintptr(fd), f.Name())
}

func (p *person) look() {
	buf := make([]byte, 32<<10)
	for {
		n, err := p.master.Read(buf)
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *person) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

func (p *person) sees(text string) {
	p.t.Helper()
	p.seesAfter(0, text)
}

// seesAfter waits for text behind a place of what was seen.
func (p *person) seesAfter(from int, text string) {
	p.t.Helper()
	defer func() {
		if p.t.Failed() {
			p.t.Logf("seen %q", p.screen())
		}
	}()
	testenv.Until(p.t, strconv.Quote(text), func() bool { return strings.Contains(p.screen()[from:], text) })
}

func (p *person) types(keys string) {
	p.t.Helper()
	_, err := io.WriteString(p.master, keys)
	check(p.t, err)
}

// typed is how long a human takes to the next key. Enter that comes with the key
// before it counts as pasted: so wait first until that is on the screen.
const typed = 100 * time.Millisecond

// answers types a line, once the prompt is there.
func (p *person) answers(prompt, line string) {
	p.t.Helper()
	p.sees(prompt)
	from := len(p.screen())
	p.types(line)
	p.seesAfter(from, line)
	time.Sleep(typed)
	p.types("\r")
}

// ends waits for the command's end and wants an exit code.
func (p *person) ends(code int) {
	p.t.Helper()
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait()
	if !timer.Stop() || p.cmd.ProcessState.ExitCode() != code {
		p.t.Fatalf("%q: %v, want %d; seen %q", p.cmd.Args, p.cmd.ProcessState, code, p.screen())
	}
}

// detaches leaves the session by its keys.
func (p *person) detaches() {
	p.t.Helper()
	p.types("\x1dd")
	p.ends(0)
	p.sees("which goes on")
}
