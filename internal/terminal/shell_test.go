//go:build linux || darwin

package terminal

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A controlled is a host below a shell below a terminal that controls both.
type controlled struct {
	t        *testing.T
	shell    *exec.Cmd
	commands *os.File
	answers  *bufio.Reader
}

func newControlled(t *testing.T, u *person) *controlled {
	t.Helper()
	cr, cw, err1 := os.Pipe()
	ar, aw, err2 := os.Pipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), roleVariable+"=shell")
	c.Stdin, c.Stdout, c.Stderr = u.tty, u.tty, u.tty
	c.ExtraFiles = []*os.File{cr, aw}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	started(t, c)
	cr.Close()
	aw.Close()
	t.Cleanup(func() { cw.Close(); ar.Close() })
	return &controlled{t: t, shell: c, commands: cw, answers: bufio.NewReader(ar)}
}

// says sends a command to the host and wants this answer. A host that was
// stopped by the kernel never answers.
func (c *controlled) says(command, want string) {
	c.t.Helper()
	fmt.Fprintln(c.commands, command)
	c.answer(command, want)
}

func (c *controlled) answer(to, want string) {
	c.t.Helper()
	got := make(chan string, 1)
	go func() {
		line, _ := c.answers.ReadString('\n')
		got <- line
	}()
	select {
	case line := <-got:
		if line != want+"\n" {
			c.t.Fatalf("%s: host answers %q; want %q", to, line, want)
		}
	case <-time.After(patience):
		c.t.Fatalf("%s: host does not answer", to)
	}
}

func (c *controlled) order(s unix.Signal) {
	c.t.Helper()
	if err := c.shell.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
	c.answer(s.String(), "ok")
}

// The life of "bawn run -- vi &", fg, Ctrl-Z, bg, fg.
func TestJobControl(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	c := newControlled(t, u)
	raw := func(want bool) {
		t.Helper()
		if u.isRaw() != want {
			t.Fatalf("terminal is raw: %v; want %v", u.isRaw(), want)
		}
	}
	fg, bg := unix.SIGUSR1, unix.SIGUSR2
	c.says("start", "background <nil>")
	raw(false)
	c.says("foreground", "background "+ErrBackground.Error())
	raw(false)
	c.order(fg)
	c.says("resume", "foreground <nil>")
	raw(true)
	c.says("suspend", "suspended <nil>")
	raw(false)
	c.order(bg)
	c.says("resume", "background <nil>")
	raw(false)
	c.order(fg)
	c.says("resume", "foreground <nil>")
	raw(true)
	c.says("close", "closed <nil>")
	raw(false)
}

// SIGSTOP gives us no time to restore the terminal. The shell does, but some
// shells put the job's settings back for fg: those are ours, not the user's.
func TestStoppedWithoutSuspend(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	users := u.settings()
	c := newControlled(t, u)
	c.says("hello", "background <nil>")
	c.order(unix.SIGUSR1)
	c.says("start", "foreground <nil>")
	ours := u.settings()
	for _, shells := range []unix.Termios{users, ours} {
		c.order(unix.SIGUSR2)
		if err := unix.IoctlSetTermios(descriptor(u.tty), setTermios, &shells); err != nil {
			t.Fatal(err)
		}
		c.says("resume", "background <nil>")
		c.order(unix.SIGUSR1)
		c.says("resume", "foreground <nil>")
		if u.settings() != ours {
			t.Error("terminal is not raw in the foreground")
		}
	}
	c.says("close", "closed <nil>")
	if u.settings() != users {
		t.Error("the user's settings have not come back")
	}
}

// A shell that has taken the terminal has set its own modes: touching them
// would stop us (SIGTTOU) or spoil them.
func TestCloseInBackground(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	c := newControlled(t, u)
	c.says("hello", "background <nil>")
	c.order(unix.SIGUSR1)
	c.says("start", "foreground <nil>")
	c.order(unix.SIGUSR2)
	mine := u.settings()
	mine.Cc[unix.VERASE] = 8
	if err := unix.IoctlSetTermios(descriptor(u.tty), setTermios, &mine); err != nil {
		t.Fatal(err)
	}
	c.says("close", "closed <nil>")
	if u.settings() != mine {
		t.Errorf("settings of the shell were changed from the background")
	}
}
