//go:build linux || darwin

package terminal

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// The test program is also the guest, the host and the shell of its tests.
const roleVariable = "BAWN_TERMINAL_TEST_ROLE"

const patience = 20 * time.Second

// queued is FIONREAD: how much has been written to a terminal that nobody has read.
var queued = map[string]uint{"linux": 0x541b, "darwin": 0x4004667f}[runtime.GOOS]

func TestMain(m *testing.M) {
	role := strings.Fields(os.Getenv(roleVariable))
	if len(role) == 0 {
		testenv.DefaultSignals()
		os.Exit(m.Run())
	}
	roles := map[string]func() error{"rawkey": rawKey, "sizes": sizes, "flood": flood, "host": host, "shell": shell, "asker": asker}
	if err := roles[role[0]](); err != nil {
		fmt.Fprintln(os.Stderr, "role:", err)
		os.Exit(3)
	}
	os.Exit(0)
}

// rawKey is a guest that makes its terminal raw and tells of one key.
func rawKey() error {
	if _, err := term.MakeRaw(0); err != nil {
		return err
	}
	fmt.Print("ready\r\n")
	var b [1]byte
	_, err := os.Stdin.Read(b[:])
	fmt.Printf("key %02x\r\n", b[0])
	return err
}

// sizes is a guest that tells its window's size, now and at each change.
func sizes() error {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGWINCH)
	for {
		rows, cols, err := pty.Getsize(os.Stdin)
		if err != nil {
			return err
		}
		fmt.Printf("size %dx%d\n", rows, cols)
		<-c
	}
}

// floodBytes is what flood writes, and what of it reaches a terminal.
func floodBytes() []byte {
	b := make([]byte, 10<<20)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

func flood() error {
	_, err := os.Stdout.Write(floodBytes())
	return err
}

// host is a Bawn with nothing but a Terminal, in a session that a shell role
// leads. It obeys one command a line on descriptor 3 and answers on 4.
func host() error {
	answers := os.NewFile(4, "answers")
	commands := bufio.NewScanner(os.NewFile(3, "commands"))
	tt, err := New([3]*os.File{os.Stdin, os.Stdout, os.Stderr}, nil)
	if err != nil {
		return err
	}
	defer tt.Close()
	for commands.Scan() {
		var err error
		switch commands.Text() {
		case "start":
			_, err = tt.Start()
		case "foreground":
			err = tt.Foreground()
		case "suspend":
			err = tt.Suspend()
		case "resume":
			_, err = tt.Resume()
		case "close":
			err = tt.Close()
		}
		fmt.Fprintf(answers, "%v %v\n", tt.Mode(), err)
	}
	return commands.Err()
}

// shell leads a session, starts a host in a process group of its own, and
// gives it the terminal (SIGUSR1) or takes it back (SIGUSR2).
func shell() error {
	signal.Ignore(unix.SIGTTOU)
	orders := make(chan os.Signal, 1)
	signal.Notify(orders, unix.SIGUSR1, unix.SIGUSR2)
	c := exec.Command(os.Args[0])
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.ExtraFiles = []*os.File{os.NewFile(3, "commands"), os.NewFile(4, "answers")}
	c.Env = append(os.Environ(), roleVariable+"=host")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		return err
	}
	go func() {
		for s := range orders {
			group := c.Process.Pid
			if s == unix.SIGUSR2 {
				group = unix.Getpgrp()
			}
			unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group)
			fmt.Fprintln(c.ExtraFiles[1], "ok")
		}
	}()
	return c.Wait()
}

// A person is the user: what they type into, and all that they have seen.
type person struct {
	t       *testing.T
	master  *os.File
	tty     *os.File // what Bawn is given
	mu      sync.Mutex
	seen    bytes.Buffer
	changed chan struct{}
	slow    time.Duration
}

func newPerson(t *testing.T) *person {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	u := &person{t: t, master: master, tty: tty, changed: make(chan struct{}, 1)}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 30, Cols: 90}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close(); master.Close() })
	return u
}

// watch reads what appears on the screen.
func (u *person) watch() {
	buf := make([]byte, 16<<10)
	for {
		n, err := u.master.Read(buf)
		if err != nil {
			return
		}
		u.mu.Lock()
		u.seen.Write(buf[:n])
		u.mu.Unlock()
		select {
		case u.changed <- struct{}{}:
		default:
		}
		time.Sleep(u.slow)
	}
}

func (u *person) screen() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.seen.String()
}

// sees waits until want is on the screen.
func (u *person) sees(want string) {
	u.t.Helper()
	limit := time.After(patience)
	for !strings.Contains(u.screen(), want) {
		select {
		case <-u.changed:
		case <-limit:
			u.t.Fatalf("screen shows %q; want %q on it", u.screen(), want)
		}
	}
}

func (u *person) types(keys string) {
	u.t.Helper()
	if _, err := io.WriteString(u.master, keys); err != nil {
		u.t.Fatal(err)
	}
}

// settings returns the terminal's termios.
func (u *person) settings() unix.Termios {
	u.t.Helper()
	s, err := unix.IoctlGetTermios(descriptor(u.tty), getTermios)
	if err != nil {
		u.t.Fatal(err)
	}
	return *s
}

func (u *person) isRaw() bool { return u.settings().Lflag&unix.ICANON == 0 }

// leftInQueue reads keys that nobody has taken, as the next program would.
func (u *person) leftInQueue(n int) string {
	u.t.Helper()
	got := make([]byte, 0, n)
	for len(got) < n && readable(descriptor(u.tty), patience) {
		var b [64]byte
		m, err := unix.Read(descriptor(u.tty), b[:])
		if err != nil {
			u.t.Fatal(err)
		}
		got = append(got, b[:m]...)
	}
	return string(got)
}

func (u *person) stdio() [3]*os.File { return [3]*os.File{u.tty, u.tty, u.tty} }

// open makes a Terminal that is closed at the end of the test.
func open(t *testing.T, stdio [3]*os.File) *Terminal {
	t.Helper()
	tt, err := New(stdio, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tt.Close() })
	return tt
}

func start(t *testing.T, tt *Terminal, want Mode) {
	t.Helper()
	if got, err := tt.Start(); err != nil || got != want {
		t.Fatalf("Start() = %v, %v; want %v", got, err, want)
	}
}

// guest starts a program on the guest's side, in a session of its own. It is
// killed at the end of the test.
func guest(t *testing.T, tt *Terminal, name string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(name, args...)
	files := tt.Guest()
	c.Stdin, c.Stdout, c.Stderr = files[0], files[1], files[2]
	c.ExtraFiles = []*os.File{tt.Slave()}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	return started(t, c)
}

func started(t *testing.T, c *exec.Cmd) *exec.Cmd {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return c
}

// role starts the test program as a guest.
func role(t *testing.T, tt *Terminal, name string) *exec.Cmd {
	t.Helper()
	return guest(t, tt, "/usr/bin/env", roleVariable+"="+name, os.Args[0])
}
