package executor

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// led does a command with its ticket and a terminal as its standard input, and
// returns what it wrote elsewhere and its end.
func (l *lab) led(t testing.TB, d Do) (string, Change) {
	t.Helper()
	_, p, out := l.lead(t, d)
	end := last(t, p)
	return out(), end
}

// lead starts it.
func (l *lab) lead(t testing.TB, d Do) (master *os.File, p *Process, out func() string) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	d.Stdio, d.Terminal, d.Led = [3]bool{true, true, true}, true, true
	p, err = l.Do(testenv.Context(t), l.signed(t, d), [3]*os.File{slave, w, w})
	w.Close()
	slave.Close()
	if err != nil {
		t.Fatal(err)
	}
	return master, p, func() string {
		if err := r.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil { // something may keep the pipe
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r)
		return string(text) + testenv.Drain(t, r) // the deadline may have come before a read
	}
}

// stopped presses Ctrl-Z, and again where it came before the command had the
// foreground, and returns the first change.
func stopped(t *testing.T, master *os.File, p *Process) Change {
	t.Helper()
	for range 10 {
		if _, err := master.WriteString("\x1a"); err != nil {
			t.Fatal(err)
		}
		select {
		case ch := <-p.Changes():
			return ch
		case <-time.After(2 * time.Second):
		}
	}
	t.Fatal("Ctrl-Z does not stop the command")
	panic("unreachable")
}

// TestLedCommandStops: Ctrl-Z stops it, and it goes on in the foreground. Without
// a leader the key does nothing.
func TestLedCommandStops(t *testing.T) {
	l := start(t)
	master, p, out := l.lead(t, command("/bin/sh", "-c", "echo ready; read a && echo got $a; exit 5"))
	time.Sleep(50 * time.Millisecond)
	for range 2 {
		if ch := stopped(t, master, p); !ch.Status.Stopped() || ch.Status.StopSignal() != unix.SIGTSTP {
			t.Fatalf("got %v, want a stop by the keyboard", ch.Status)
		}
		if err := p.Foreground(); err != nil {
			t.Fatal(err)
		}
		if err := p.Signal(unix.SIGCONT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if _, err := master.WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	end := last(t, p)
	if text := out(); end.Status.ExitStatus() != 5 || text != "ready\ngot hello\n" {
		t.Errorf("got %q, %v", text, end.Status)
	}
}

// TestLedCommandBehind: it stops when it reads from its terminal, and goes on once
// it has the foreground. The control is one that starts there.
func TestLedCommandBehind(t *testing.T) {
	l := start(t)
	for _, behind := range []bool{false, true} {
		d := command("/bin/sh", "-c", "read a; echo got $a")
		d.Behind = behind
		master, p, out := l.lead(t, d)
		if _, err := master.WriteString("hello\n"); err != nil {
			t.Fatal(err)
		}
		ch := testenv.Receive(t, "a change", p.Changes())
		if ch.Status.Stopped() != behind || behind && ch.Status.StopSignal() != unix.SIGTTIN {
			t.Fatalf("behind %v: got %v", behind, ch.Status)
		}
		if behind {
			if err := errors.Join(p.Foreground(), p.Signal(unix.SIGCONT)); err != nil {
				t.Fatal(err)
			}
			ch = last(t, p)
		}
		if text := out(); ch.Status != 0 || text != "got hello\n" {
			t.Errorf("behind %v: got %q, %v", behind, text, ch.Status)
		}
	}
}

// TestLeaderKilled: a command whose leader is gone is reported as killed, and no
// number of it is left.
func TestLeaderKilled(t *testing.T) {
	l := start(t)
	_, p, out := l.lead(t, command("/bin/sh", "-c", "kill -9 $PPID; sleep 100"))
	if end := last(t, p); end.Status.Signal() != unix.SIGKILL {
		t.Errorf("got %v, want it killed: %s", end.Status, out())
	}
	if text, end := l.led(t, command("/bin/sh", "-c", "ps -o stat= --ppid $(cut -d' ' -f4 /proc/$PPID/stat) | sort | uniq -c")); end.Status != 0 || strings.Contains(text, "Z") {
		t.Errorf("%v: a leader was left: %s", end.Status, text)
	}
}

// TestLedLimits: the limits hold from the start.
func TestLedLimits(t *testing.T) {
	l := start(t)
	d := command("/bin/sh", "-c", "ulimit -Hn; ulimit -Sf; tty <&0 >/dev/null")
	d.Limits = Limits{OpenFiles: 64, FileSizeMB: 1}
	if text, end := l.led(t, d); end.Status != 0 || text != "64\n2048\n" {
		t.Errorf("got %q, %v", text, end.Status)
	}
	d = command("/no/such/program")
	d.Stdio, d.Terminal, d.Led = [3]bool{}, true, true
	if _, err := l.Do(testenv.Context(t), l.signed(t, d), [3]*os.File{}); err == nil {
		t.Error("what is not there was started")
	}
}
