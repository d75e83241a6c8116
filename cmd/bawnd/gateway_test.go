package main

import (
	"errors"
	"maps"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/plugin"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestPolled ends a read of a client's pipe by closing it, which only a file
// that the runtime waits for itself can be; what others write to stays.
func TestPolled(t *testing.T) {
	r, w := pipe(t)
	if in, _ := polled(r, r); in != r {
		t.Error("a file that is written to as well was changed")
	}
	if in, _ := polled(r, w); in != r {
		t.Error("two ends of one pipe are one file")
	}
	_, w2 := pipe(t)
	in, blocks := polled(r, w2)
	if in == r {
		t.Fatal("it is as it was")
	}
	if again, _ := polled(r, w2); again != r {
		t.Error("what does not block already was changed")
	}
	ended := make(chan error, 1)
	go func() {
		_, err := in.Read(make([]byte, 1))
		ended <- err
	}()
	time.Sleep(20 * time.Millisecond)
	_ = in.Close()
	if err := testenv.Receive(t, "the end of the read", ended); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	blocks()
	if flags, err := unix.FcntlInt(r.Fd(), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
		t.Errorf("afterwards its flags are %#x (%v)", flags, err)
	}
}

// pipe is one as a program is started with it.
func pipe(t *testing.T) (r, w *os.File) {
	var p [2]int
	if err := syscall.Pipe(p[:]); err != nil {
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(p[0]), "r"), os.NewFile(uintptr(p[1]), "w")
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return r, w
}

// TestMeaning reads what a manifest says of arguments: a tool's own name goes
// before patterns, and of those the first counts.
func TestMeaning(t *testing.T) {
	means := meaning(&plugin.Manifest{Arguments: map[string]string{
		"read_file.path": "path", "*.path": "host", "read_*.path": "command", "*.host": "host", "a.b.c": "path",
	}})
	for tool, want := range map[string]map[string]string{
		"read_file": {"path": "path", "host": "host"}, "read_all": {"path": "host", "host": "host"}, "x": {"path": "host", "host": "host"},
		"a": {"path": "host", "host": "host", "b.c": "path"}, "a.b": {"path": "host", "host": "host", "c": "path"},
	} {
		if got := means(tool); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", tool, got, want)
		}
	}
}
