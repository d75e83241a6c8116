package ipc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

var limits = Limits{Bytes: 1 << 20, Files: 3}

// A Hello is a message as those of package intent are.
type Hello struct {
	Exec    *Exec    `json:",omitempty"`
	Run     *Run     `json:",omitempty"`
	Request *Request `json:",omitempty"`
}

type Exec struct {
	Argv       []string
	Dir        string
	Env        []string
	Stdio      [3]bool
	Terminal   bool
	Rows, Cols uint16
	Statement  bool
}

// Files is how many descriptors travel along.
func (e *Exec) Files() (n int) {
	for _, is := range e.Stdio {
		if is {
			n++
		}
	}
	return n
}

type Run struct{ Args []string }

type Request struct{ Want []string }

func (h *Hello) Valid() error {
	n := 0
	for _, is := range []bool{h.Exec != nil, h.Run != nil, h.Request != nil} {
		if is {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("it says %d things", n)
	}
	return nil
}

// ends returns a connection and the raw descriptor of the other end.
func ends(t testing.TB) (*Conn, *os.File) {
	t.Helper()
	ours, theirs, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(ours, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); theirs.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c, theirs
}

func two(t testing.TB) (*Conn, *Conn) {
	t.Helper()
	a, theirs := ends(t)
	b, err := New(theirs, limits)
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

func framed(body string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// openFiles counts this process' descriptors.
func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestMessagesAndFilesArriveTogether(t *testing.T) {
	a, b := two(t)
	r, w, _ := os.Pipe()
	defer r.Close()
	defer w.Close()
	long := Hello{Exec: &Exec{Argv: []string{"x", strings.Repeat("é", 300_000)}, Dir: "/w", Env: []string{"A=b"}}}
	with := Hello{Exec: &Exec{Argv: []string{"y"}, Stdio: [3]bool{true, true}}}
	go func() {
		_ = a.Send(&long)
		_ = a.Send(&with, r, w)
		_ = a.Send(&long)
	}()
	for i, want := range []Hello{long, with, long} {
		var got Hello
		files, err := b.Receive(&got)
		if err != nil || cmp.Diff(want, got) != "" {
			t.Fatalf("message %d: %v %s", i, err, cmp.Diff(want, got))
		}
		if len(files) != want.Exec.Files() {
			t.Fatalf("message %d: %d files; want %d", i, len(files), want.Exec.Files())
		}
		for _, f := range files {
			if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("a received file stays open over exec: %v", err)
			}
			f.Close()
		}
	}
}

func TestGoodbye(t *testing.T) {
	a, b := two(t)
	a.Close()
	for range 2 {
		if _, err := b.Receive(&Hello{}); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want io.EOF", err)
		}
	}
	if err := b.Send(&Hello{Run: &Run{}}); !errors.Is(err, unix.EPIPE) {
		t.Errorf("got %v, want EPIPE", err)
	}
}

func TestDeadline(t *testing.T) {
	a, _ := two(t)
	if err := a.SetDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Receive(&Hello{}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Receive: got %v", err)
	}
	body := Hello{Run: &Run{Args: []string{strings.Repeat("x", limits.Bytes/2)}}}
	for range 100 {
		if err := a.Send(&body); errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
	t.Error("nobody reads, and Send does not end")
}

// TestWhatIsRefused sends what no honest side does. The control is the same
// bytes without the one thing that is wrong.
func TestWhatIsRefused(t *testing.T) {
	good := `{"Exec":{"Argv":["x"],"Dir":"/","Env":null,"Stdio":[false,false,false],"Terminal":false,"Rows":0,"Cols":0,"Statement":false}}`
	for name, raw := range map[string][]byte{
		"too long":              {0, 0x10, 0, 1},
		"a length and no end":   framed(good)[:20],
		"half a length":         {0, 0},
		"no JSON":               framed("x"),
		"nothing":               framed(""),
		"an unknown member":     framed(strings.Replace(good, "Argv", "Argw", 1)),
		"data behind the end":   framed(good + "{}"),
		"a bracket behind":      framed(good + "]"),
		"nothing is said":       framed("{}"),
		"two things are said":   framed(`{"Run":{},"Request":{}}`),
		"another type":          framed(strings.Replace(good, `"/"`, "7", 1)),
		"null":                  framed("null"),
		"a number out of range": framed(strings.Replace(good, `"Rows":0`, `"Rows":65536`, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			c, other := ends(t)
			_, _ = other.Write(framed(good))
			if _, err := c.Receive(new(Hello)); err != nil {
				t.Fatalf("control: %v", err)
			}
			_, _ = other.Write(raw)
			other.Close()
			if _, err := c.Receive(new(Hello)); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
}

// TestFilesThatAreTooMany attacks with descriptors; what arrives is closed.
func TestFilesThatAreTooMany(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	fd := int(null.Fd())
	many := func(n int) []byte {
		list := make([]int, n)
		for i := range list {
			list[i] = fd
		}
		return unix.UnixRights(list...)
	}
	body := framed(`{"Run":{}}`)
	for name, tt := range map[string]struct {
		send func(fd int) error
		fine bool
	}{
		"control: three": {func(fd int) error { return unix.Sendmsg(fd, body, many(3), nil, 0) }, true},
		"four":           {func(fd int) error { return unix.Sendmsg(fd, body, many(4), nil, 0) }, false},
		"a hundred":      {func(fd int) error { return unix.Sendmsg(fd, body, many(100), nil, 0) }, false},
		"one with each byte": {func(fd int) error {
			for i := range body {
				if err := unix.Sendmsg(fd, body[i:i+1], many(1), nil, 0); err != nil {
					return err
				}
			}
			return nil
		}, false},
		"with a message that can't be read": {func(fd int) error { return unix.Sendmsg(fd, framed("x"), many(2), nil, 0) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, other := ends(t)
			before := openFiles(t)
			if err := tt.send(int(other.Fd())); err != nil {
				t.Fatal(err)
			}
			files, err := c.Receive(new(Hello))
			if tt.fine != (err == nil) {
				t.Fatalf("got %v", err)
			}
			for _, f := range files {
				f.Close()
			}
			if now := openFiles(t); now != before {
				t.Errorf("%d descriptors are open; before it were %d", now, before)
			}
			if tt.fine {
				return
			}
			if _, err := c.Receive(new(Hello)); err == nil {
				t.Error("the conversation goes on")
			}
		})
	}
}

func TestWhatIsNotSent(t *testing.T) {
	a, _ := two(t)
	null, _ := os.Open(os.DevNull)
	defer null.Close()
	run := &Hello{Run: &Run{}}
	if a.Send(run, null, null, null, null) == nil || a.Send(&Hello{}) == nil || a.Send(func() {}) == nil ||
		a.Send(&Hello{Run: &Run{Args: []string{strings.Repeat("x", limits.Bytes)}}}) == nil {
		t.Error("a message without sense was sent")
	}
	if err := a.Send(run, null); err != nil {
		t.Errorf("control: %v", err)
	}
	null.Close()
	if a.Send(run, null) == nil {
		t.Error("a closed file was sent")
	}
	if err := a.Send(run); err != nil {
		t.Errorf("what was not sent ended the conversation: %v", err)
	}
}

// TestZeroLimits: a connection without limits takes and sends nothing.
func TestZeroLimits(t *testing.T) {
	a, b, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	c, err := New(a, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Send(&Hello{Run: &Run{}}); err == nil {
		t.Error("it sends")
	}
	_, _ = b.Write(framed(`{"Run":{}}`))
	if _, err := c.Receive(new(Hello)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("it receives: %v", err)
	}
	if _, err := New(a, Limits{Files: maxFiles + 1}); err == nil {
		t.Error("more files than there is room for")
	}
}

// TestPatience: Send does not wait longer for a peer that does not read.
func TestPatience(t *testing.T) {
	a, b, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	c, err := New(a, Limits{Bytes: 1 << 20, Patience: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	body := Hello{Run: &Run{Args: []string{strings.Repeat("x", limits.Bytes/2)}}}
	for range 100 {
		if err = c.Send(&body); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Send: %v", err)
	}
	if again := c.Send(&Hello{Run: &Run{}}); again == nil {
		t.Error("the conversation goes on in the middle of a frame")
	}
}

// FuzzReceive reads whatever comes, cut anywhere.
func FuzzReceive(f *testing.F) {
	f.Add(framed(`{"Exec":{"Argv":["x"]}}`), 3)
	f.Add(framed(`{"Run":{}}{}`), 0)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, 1)
	f.Add(append(framed(`{"Request":{"Want":["a"]}}`), framed("null")...), 7)
	f.Fuzz(func(t *testing.T, raw []byte, cut int) {
		if len(raw) > 64<<10 {
			return
		}
		c, other := ends(t)
		go func() {
			at := max(0, min(cut, len(raw)))
			_, _ = other.Write(raw[:at])
			_, _ = other.Write(raw[at:])
			other.Close()
		}()
		for range 100 {
			var h Hello
			files, err := c.Receive(&h)
			if err != nil {
				return
			}
			if len(files) != 0 || h.Valid() != nil {
				t.Fatalf("got %+v with %d files", h, len(files))
			}
		}
	})
}

func BenchmarkSendReceive(b *testing.B) {
	x, y := two(b)
	_ = x.SetDeadline(time.Time{})
	h := Hello{Exec: &Exec{Argv: []string{"sh", "-c", "true"}, Dir: "/w", Env: os.Environ()}}
	for b.Loop() {
		if err := x.Send(&h); err != nil {
			b.Fatal(err)
		}
		if _, err := y.Receive(new(Hello)); err != nil {
			b.Fatal(err)
		}
	}
}
