//go:build linux || darwin

package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/terminal/modes"
	"github.com/bawn-dev/bawn/internal/testenv"
)

func TestEcho(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	tt := open(t, u.stdio())
	c := guest(t, tt, "cat")
	start(t, tt, Foreground)
	u.types("hello\r") // a return key, which the guest's terminal makes a newline
	u.sees("hello\r\nhello\r\n")
	u.types("\x04")
	if err := c.Wait(); err != nil {
		t.Errorf("cat after Ctrl-D: %v", err)
	}
	if err := tt.Close(); err != nil {
		t.Error(err)
	}
	if got, want := u.screen(), "hello\r\nhello\r\n"; got != want {
		t.Errorf("screen shows %q; want %q", got, want)
	}
}

func TestCtrlC(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	tt := open(t, u.stdio())
	c := guest(t, tt, "sleep", "60")
	start(t, tt, Foreground)
	u.types("\x03")
	var e *exec.ExitError
	if err := c.Wait(); !errors.As(err, &e) || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Errorf("sleep ended with %v; want SIGINT", err)
	}
}

func TestRawKeys(t *testing.T) {
	for _, key := range []string{"\x03", "\x1a", "\x11", "\x00", "\r", "\xff"} {
		u := newPerson(t)
		go u.watch()
		tt := open(t, u.stdio())
		c := role(t, tt, "rawkey")
		start(t, tt, Foreground)
		u.sees("ready")
		u.types(key)
		u.sees(fmt.Sprintf("key %02x", key[0]))
		if err := errors.Join(c.Wait(), tt.Close()); err != nil {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

func TestWindowSize(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	tt := open(t, u.stdio())
	role(t, tt, "sizes")
	start(t, tt, Foreground)
	u.sees("size 30x90")
	if err := pty.Setsize(u.master, &pty.Winsize{Rows: 41, Cols: 101}); err != nil {
		t.Fatal(err)
	}
	// The terminal doesn't control this test, so the kernel tells us nothing.
	if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	u.sees("size 41x101")
}

func TestMuchOutputSlowly(t *testing.T) {
	t.Parallel()
	u := newPerson(t)
	u.slow = 50 * time.Microsecond
	go u.watch()
	tt := open(t, u.stdio())
	c := role(t, tt, "flood")
	start(t, tt, Foreground)
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := tt.Close(); err != nil {
		t.Error(err)
	}
	want := bytes.ReplaceAll(floodBytes(), []byte("\n"), []byte("\r\n"))
	u.settle(len(want))
	if got := u.screen(); got != string(want) {
		t.Errorf("%d bytes arrived, %d were written, or they differ", len(got), len(want))
	}
}

// settle waits until n bytes have been seen, or no more come.
func (u *person) settle(n int) {
	for len(u.screen()) < n {
		select {
		case <-u.changed:
		case <-time.After(patience):
			return
		}
	}
}

// What the guest wrote last must not be lost when it ends.
func TestLastWords(t *testing.T) {
	for range 20 {
		u := newPerson(t)
		tt := open(t, u.stdio())
		c := guest(t, tt, "sh", "-c", "seq 1 400; echo last words")
		start(t, tt, Foreground)
		go u.watch()
		if err := errors.Join(c.Wait(), tt.Close()); err != nil {
			t.Fatal(err)
		}
		u.sees("400\r\nlast words\r\n")
	}
}

// A process that still holds the guest's terminal can't keep Close from ending.
func TestCloseIsBounded(t *testing.T) {
	for _, script := range []string{"exec sleep 60", "exec yes"} {
		u := newPerson(t)
		go u.watch()
		tt := open(t, u.stdio())
		guest(t, tt, "sh", "-c", script)
		start(t, tt, Foreground)
		before := time.Now()
		if err := tt.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(before); took > patience {
			t.Errorf("%s: Close took %v", script, took)
		}
	}
}

// Nobody reads the user's screen any more (a stopped terminal, a dead line).
func TestCloseWithStuckScreen(t *testing.T) {
	t.Parallel()
	u := newPerson(t)
	before := u.settings()
	tt := open(t, u.stdio())
	guest(t, tt, "yes")
	start(t, tt, Foreground)
	last, same := 0, 0
	testenv.Until(t, "a screen that takes no more", func() bool {
		n, err := unix.IoctlGetInt(descriptor(u.master), queued)
		if err != nil || n == 0 || n != last {
			last, same = n, 0
		}
		same++
		return same > 10
	})
	begin := time.Now()
	if err := tt.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > patience {
		t.Errorf("Close took %v", took)
	}
	if diff := cmp.Diff(before, u.settings()); diff != "" {
		t.Errorf("settings (-before +after):\n%s", diff)
	}
}

func TestCloseRestores(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	before := u.settings()
	tt := open(t, u.stdio())
	start(t, tt, Foreground)
	if !u.isRaw() {
		t.Fatal("terminal is not raw in the foreground; the test would prove nothing")
	}
	if err := errors.Join(tt.Close(), tt.Close(), tt.Restore()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, u.settings()); diff != "" {
		t.Errorf("settings (-before +after):\n%s", diff)
	}
	if tt.Mode() != Closed {
		t.Errorf("mode is %v", tt.Mode())
	}
	if _, err := tt.Start(); err == nil {
		t.Error("a closed terminal started")
	}
}

func TestRestoreIsFinal(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	before := u.settings()
	tt := open(t, u.stdio())
	start(t, tt, Foreground)
	if err := errors.Join(tt.Restore(), tt.Restore()); err != nil {
		t.Error(err)
	}
	_, err := tt.Resume()
	if diff := cmp.Diff(before, u.settings()); diff != "" || err == nil {
		t.Errorf("Resume() gave %v, settings (-before +after):\n%s", err, diff)
	}
}

// A key that is typed when the session is over belongs to the shell.
func TestNoKeyEatenAfterClose(t *testing.T) {
	for i := range 40 {
		u := newPerson(t)
		go u.watch()
		tt := open(t, u.stdio())
		c := guest(t, tt, "cat")
		start(t, tt, Foreground)
		u.types("x\r")
		u.sees("x\r\nx")
		c.Process.Kill()
		if err := tt.Close(); err != nil {
			t.Fatal(err)
		}
		u.types("ls\n")
		if got := u.leftInQueue(3); got != "ls\n" {
			t.Fatalf("run %d: the shell got %q; want %q", i, got, "ls\n")
		}
	}
}

func TestSuspendResume(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	before := u.settings()
	tt := open(t, u.stdio())
	guest(t, tt, "cat")
	start(t, tt, Foreground)
	if err := tt.Suspend(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, u.settings()); diff != "" {
		t.Errorf("settings while suspended (-before +now):\n%s", diff)
	}
	u.types("jobs\n")
	if got := u.leftInQueue(5); got != "jobs\n" {
		t.Errorf("the shell got %q while we were suspended; want %q", got, "jobs\n")
	}
	// The user changes a setting meanwhile; it must survive us.
	changed := u.settings()
	changed.Cc[unix.VERASE] = 8
	if err := unix.IoctlSetTermios(descriptor(u.tty), setTermios, &changed); err != nil {
		t.Fatal(err)
	}
	for range 2 { // SIGCONT may come more than once
		if m, err := tt.Resume(); m != Foreground || err != nil {
			t.Fatalf("Resume() = %v, %v", m, err)
		}
	}
	if !u.isRaw() {
		t.Error("terminal is not raw after Resume")
	}
	u.types("again\r")
	u.sees("again\r\nagain\r\n")
	if err := tt.Close(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(changed, u.settings()); diff != "" {
		t.Errorf("settings at the end (-user's +now):\n%s", diff)
	}
}

// What the guest wrote before it stopped is out before the shell's prompt.
func TestSuspendFlushes(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	tt := open(t, u.stdio())
	start(t, tt, Foreground)
	words := strings.Repeat("0123456789", 1500)
	for i := range 20 {
		end := fmt.Sprintf("end %d", i)
		fmt.Fprint(tt.Slave(), words, end)
		if err := tt.Suspend(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(u.tty, "PROMPT")
		u.sees(end + "PROMPT")
		if _, err := tt.Resume(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHangup(t *testing.T) {
	for _, mode := range []Mode{Foreground, Background} {
		u := newPerson(t)
		stdio := u.stdio()
		if mode == Background {
			stdio[1] = nil
		}
		tt := open(t, stdio)
		guest(t, tt, "sh", "-c", "while echo still here >&2; do sleep 0.01; done")
		start(t, tt, mode)
		if tt.Err() != nil {
			t.Errorf("error before the end: %v", tt.Err())
		}
		u.master.Close()
		select {
		case <-tt.Done():
		case <-time.After(patience):
			t.Fatalf("%v: the relay has not noticed", mode)
		}
		if tt.Err() == nil || tt.Close() == nil {
			t.Errorf("%v: no error after a hang-up", mode)
		}
	}
}

// Programs expect blocking descriptors, and others share the user's.
func TestBlockingModes(t *testing.T) {
	nonblocking := func(f *os.File) bool {
		flags, err := unix.FcntlInt(uintptr(descriptor(f)), unix.F_GETFL, 0)
		if err != nil {
			t.Fatal(err)
		}
		return flags&unix.O_NONBLOCK != 0
	}
	u := newPerson(t)
	go u.watch()
	if err := unix.SetNonblock(descriptor(u.tty), false); err != nil {
		t.Fatal(err)
	}
	tt := open(t, u.stdio())
	start(t, tt, Foreground)
	if nonblocking(tt.Slave()) || nonblocking(u.tty) {
		t.Errorf("guest's terminal is non-blocking: %v; user's: %v", nonblocking(tt.Slave()), nonblocking(u.tty))
	}
}

func TestGuestStartsWithUsersSettings(t *testing.T) {
	u := newPerson(t)
	s := u.settings()
	s.Cc[unix.VINTR] = 'k'
	s.Lflag &^= unix.ECHOK
	if err := unix.IoctlSetTermios(descriptor(u.tty), setTermios, &s); err != nil {
		t.Fatal(err)
	}
	tt := open(t, u.stdio())
	got, err := unix.IoctlGetTermios(descriptor(tt.Slave()), getTermios)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, *got); diff != "" {
		t.Errorf("(-user's +guest's):\n%s", diff)
	}
}

// BenchmarkScreen relays output to a user who reads as fast as they can.
func BenchmarkScreen(b *testing.B) {
	master, tty, err := pty.Open()
	if err != nil {
		b.Fatal(err)
	}
	defer master.Close()
	defer tty.Close()
	go io.Copy(io.Discard, master)
	tt, err := New([3]*os.File{tty, tty, tty}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer tt.Close()
	if _, err := tt.Start(); err != nil {
		b.Fatal(err)
	}
	block := bytes.Repeat([]byte("x"), 64<<10)
	b.SetBytes(int64(len(block)))
	for b.Loop() {
		if _, err := unix.Write(descriptor(tt.Slave()), block); err != nil {
			b.Fatal(err)
		}
	}
}

// TestLabel: the user's terminal says that a guest is in it while it is the guest's, and
// not in a pipeline, where it is another program's.
func TestLabel(t *testing.T) {
	const begin, end = "\x1b[22;0t\x1b]0;bawn: sh\a", "\x1b]0;\a\x1b[23;0t"
	u := newPerson(t)
	go u.watch()
	tt := open(t, u.stdio())
	tt.Label(modes.Label{Mark: "bawn: ", Name: "sh"})
	c := guest(t, tt, "sh", "-c", `read a; printf '\033]2;mine\007%s' "$a"`)
	start(t, tt, Foreground)
	u.sees(begin)
	if err := tt.Suspend(); err != nil {
		t.Fatal(err)
	}
	u.sees(begin + end)
	if _, err := tt.Resume(); err != nil {
		t.Fatal(err)
	}
	u.sees(begin + end + begin)
	u.types("x\r")
	if err := errors.Join(c.Wait(), tt.Close(), tt.Restore()); err != nil {
		t.Fatal(err)
	}
	want := begin + end + begin + "x\r\n\x1b]2;mine\ax\x1b]2;bawn: mine\a" + end
	u.settle(len(want))
	if got := u.screen(); got != want {
		t.Errorf("screen %q; want %q", got, want)
	}

	u = newPerson(t)
	go u.watch()
	tt = open(t, [3]*os.File{nil, u.tty, u.tty})
	tt.Label(modes.Label{Mark: "bawn: ", Name: "sh"})
	c = guest(t, tt, "echo", "hello")
	start(t, tt, Background)
	if err := errors.Join(c.Wait(), tt.Close()); err != nil {
		t.Fatal(err)
	}
	u.settle(len("hello\r\n"))
	if got := u.screen(); got != "hello\r\n" {
		t.Errorf("in a pipeline: %q", got)
	}
}
