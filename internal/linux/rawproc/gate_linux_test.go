package rawproc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestGateLetsNothingThrough: what is behind a gate happens when it is opened,
// also what was added since, and with the descriptors that come with it.
func TestGateLetsNothingThrough(t *testing.T) {
	dir := t.TempDir()
	p := &Program{}
	there := p.NewSlot()
	p.Call("make one", unix.SYS_MKDIRAT, unix.AT_FDCWD, filepath.Join(dir, "one"), 0o700)
	first := p.Await("wait for the rest")
	in, err := Begin(Config{Program: p, Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Kill()
	eventually(t, filepath.Join(dir, "one"))
	p.Call("make two", unix.SYS_MKDIRAT, unix.AT_FDCWD, filepath.Join(dir, "two"), 0o700)
	second := p.Await("wait for a file", there)
	p.Call("write to it", unix.SYS_WRITE, there, "hello", 5)
	time.Sleep(20 * time.Millisecond)
	if _, err := os.Stat(filepath.Join(dir, "two")); err == nil {
		t.Fatal("the child went through a gate that was shut")
	}
	if err := in.Open(first, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, filepath.Join(dir, "two"))
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := in.Open(second, []*os.File{f}, there); err != nil {
		t.Fatal(err)
	}
	if err := in.Wait(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(f.Name()); string(text) != "hello" {
		t.Errorf("got %q, %v", text, err)
	}
	if n := len(in.Ready()); n != 1 {
		t.Errorf("got %d files back, want the one that is to be", n)
	}
}

// TestGateWantsItsDescriptors: a step that lacks what it works with does not
// happen, and nobody opens a gate with another word.
func TestGateWantsItsDescriptors(t *testing.T) {
	for _, c := range []struct {
		n    int32
		kind uint32
		want unix.Errno
	}{{1, kindOpen, unix.EBADMSG}, {0, kindStart, unix.EPIPE}, {0, kindOpen, 0}} {
		p := &Program{}
		g := p.Await("wait for a file", p.NewSlot())
		in, err := Begin(Config{Program: p, Alone: true})
		if err != nil {
			t.Fatal(err)
		}
		g.g.n = c.n
		if err := in.send(packet{kind: c.kind}, nil); err != nil {
			t.Fatal(err)
		}
		err = in.Wait()
		var step *StepError
		if c.want == 0 && err != nil || c.want != 0 && (!errors.As(err, &step) || step.Step != "wait for a file" || step.Errno != c.want) {
			t.Errorf("%v: got %v", c, err)
		}
		in.Kill()
	}
}

// TestGateStaysShutForTooMuch: a program that does not fit is not carried out in
// part.
func TestGateStaysShutForTooMuch(t *testing.T) {
	p := &Program{}
	g := p.Await("wait for the rest")
	in, err := Begin(Config{Program: p, Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Kill()
	p.Call("much", unix.SYS_GETPID, strings.Repeat("x", dataSize))
	if err := in.Open(g, nil); !errors.Is(err, unix.E2BIG) {
		t.Errorf("got %v, want E2BIG", err)
	}
	select {
	case <-in.readied:
		t.Error("it went on")
	case <-time.After(20 * time.Millisecond):
	}
}

// TestAloneHoldsNothing: a child that is alone has no descriptor of ours, and so
// ends when ours of its socket is closed.
func TestAloneHoldsNothing(t *testing.T) {
	for _, alone := range []bool{true, false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p := &Program{}
		p.Await("wait")
		in, err := Begin(Config{Program: p, Alone: alone})
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		ended := make(chan error, 1)
		go func() { _, err := r.Read(make([]byte, 1)); ended <- err }()
		if alone {
			_ = testenv.Receive(t, "the end of a pipe of ours", ended) // EOF
		} else { // the control
			select {
			case <-ended:
				t.Error("the child has closed what it may use")
			case <-time.After(200 * time.Millisecond):
			}
		}
		in.Kill()
		r.Close()
	}
}

func eventually(t *testing.T, path string) {
	t.Helper()
	testenv.Until(t, path, func() bool { _, err := os.Stat(path); return err == nil })
}
