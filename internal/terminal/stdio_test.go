//go:build linux || darwin

package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNoTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	stdio := [3]*os.File{r, w, nil}
	tt := open(t, stdio)
	if tt.Guest() != stdio || tt.Slave() != nil {
		t.Errorf("Guest() = %v, Slave() = %v; want the files themselves and nil", tt.Guest(), tt.Slave())
	}
	start(t, tt, NoTerminal)
	m, err := tt.Resume()
	if err := errors.Join(err, tt.Foreground(), tt.Suspend(), tt.Restore(), tt.Close()); err != nil || m != NoTerminal {
		t.Errorf("mode %v, %v", m, err)
	}
}

// The guest must hold no descriptor of the user's terminal, whichever of the
// three it is, and nothing else may be replaced.
func TestMixedStdio(t *testing.T) {
	for bits := 1; bits < 8; bits++ {
		u := newPerson(t)
		go u.watch()
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		stdio := [3]*os.File{null, null, null}
		for i := range stdio {
			if bits>>i&1 == 1 {
				stdio[i] = u.tty
			}
		}
		tt := open(t, stdio)
		for i, f := range tt.Guest() {
			if stdio[i] == null && f != null {
				t.Errorf("terminals %03b: file %d was replaced", bits, i)
			}
			if stdio[i] != null && (f != tt.Slave() || sameDevice(descriptor(f), descriptor(u.tty))) {
				t.Errorf("terminals %03b: the guest's file %d is the user's terminal", bits, i)
			}
		}
		if !sameDevice(descriptor(stdio[firstBit(bits)]), descriptor(u.tty)) {
			t.Fatal("control: the user's terminal is not recognised")
		}
		want := Background
		if bits&3 == 3 {
			want = Foreground
		}
		start(t, tt, want)
		fmt.Fprint(tt.Slave(), "from the guest")
		u.sees("from the guest")
		if err := tt.Close(); err != nil {
			t.Error(err)
		}
	}
}

func firstBit(bits int) int {
	for i := 0; ; i++ {
		if bits>>i&1 == 1 {
			return i
		}
	}
}

// In "bawn run -- ls | less" the keys and the settings belong to less.
func TestPipeline(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	before := u.settings()
	tt := open(t, [3]*os.File{u.tty, w, u.tty})
	c := guest(t, tt, "sh", "-c", `echo out; printf 'progress\rerr\n' >&2; read x && echo "got $x" >&2`)
	w.Close()
	start(t, tt, Background)
	u.sees("err\r\n")
	if got, want := u.screen(), "progress\rerr\r\n"; got != want {
		t.Errorf("screen shows %q; want %q", got, want)
	}
	u.types("q\n")
	if got := u.leftInQueue(2); got != "q\n" {
		t.Errorf("less got %q; want the user's %q", got, "q\n")
	}
	if diff := cmp.Diff(before, u.settings()); diff != "" {
		t.Errorf("settings in the background (-before +now):\n%s", diff)
	}
	if err := tt.Foreground(); err != nil || tt.Mode() != Foreground || !u.isRaw() {
		t.Fatalf("Foreground() gave %v, mode %v, raw %v", err, tt.Mode(), u.isRaw())
	}
	u.types("answer\r")
	u.sees("got answer\r\n")
	out, err := io.ReadAll(r)
	if err := errors.Join(err, c.Wait(), tt.Close()); err != nil || string(out) != "out\n" {
		t.Errorf("the pipe got %q, %v", out, err)
	}
	if strings.Contains(u.screen(), "\r\r") {
		t.Errorf("screen shows %q: a doubled carriage return", u.screen())
	}
	if diff := cmp.Diff(before, u.settings()); diff != "" {
		t.Errorf("settings at the end (-before +now):\n%s", diff)
	}
}

// A progress line ends in a return that may or may not become a newline: it
// must come out while we don't know.
func TestReturnIsNotHeldBack(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	tt := open(t, [3]*os.File{u.tty, nil, u.tty})
	start(t, tt, Background)
	fmt.Fprint(tt.Slave(), "50%\r")
	u.sees("50%\r")
	fmt.Fprint(tt.Slave(), "done\n")
	u.sees("50%\rdone\r\n")
}
