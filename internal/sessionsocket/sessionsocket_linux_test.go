package sessionsocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// serve opens a session socket for h and returns its path.
func serve(t *testing.T, h Handlers) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "socket") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, h) }()
	t.Cleanup(func() {
		cancel()
		if err := testenv.Receive(t, "the end of the session socket", done); err != nil {
			t.Error(err)
		}
	})
	return path
}

// knock dials the session socket as a guest that may say anything.
func knock(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func speak(t *testing.T, path string) *ipc.Conn {
	t.Helper()
	u := knock(t, path)
	f, err := u.File()
	if err != nil {
		t.Fatal(err)
	}
	u.Close()
	c, err := ipc.New(f, intent.Limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends a first message and returns the rule of the refusal that comes back, or
// "" if the answer is not a refusal.
func ask(t *testing.T, path string, h *intent.Hello, files ...*os.File) string {
	t.Helper()
	c := speak(t, path)
	if err := c.Send(h, files...); err != nil && !errors.Is(err, syscall.EPIPE) { // the session socket may have answered already
		t.Fatal(err)
	}
	var r intent.Reply
	if _, err := c.Receive(&r); err != nil {
		t.Fatal(err)
	}
	if r.Denied == nil {
		return ""
	}
	if r.Denied.By != "bawn" || r.Denied.Session != "s1" || r.Denied.Reason == "" {
		t.Errorf("the refusal is %+v", *r.Denied)
	}
	return r.Denied.Rule
}

func TestZeroHandlersRefuse(t *testing.T) {
	path := serve(t, Handlers{Session: "s1"})
	for name, h := range map[string]*intent.Hello{"exec": {Exec: &intent.Exec{}}, "run": {Run: &intent.Run{}}, "request": {Request: &intent.Request{}}} {
		if rule := ask(t, path, h); rule != RuleClosed {
			t.Errorf("%s: refused by %q, want %q", name, rule, RuleClosed)
		}
	}
}

// TestRefusalsAreTold: what the session socket refuses by itself is told, whatever the
// guest does with the answer.
func TestRefusalsAreTold(t *testing.T) {
	told := make(chan string, 8)
	path := serve(t, Handlers{Session: "s1", Refused: func(rule, reason string) {
		if reason == "" || len(reason) > 2000 {
			t.Errorf("the reason is %.80q", reason)
		}
		told <- rule
	}})
	ask(t, path, &intent.Hello{Run: &intent.Run{}})
	ask(t, path, &intent.Hello{Exec: &intent.Exec{Stdio: [3]bool{true, true}}}, os.Stderr)
	u := knock(t, path)
	_, _ = u.Write([]byte{0, 0, 0, 2, '{', '['})
	u.Close()
	for _, want := range []string{RuleClosed, RuleMessage, RuleMessage} {
		if got := testenv.Receive(t, want, told); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
}

func TestDispatch(t *testing.T) {
	served := func(c *Conn) { _ = c.Send(intent.Reply{Started: true}) }
	path := serve(t, Handlers{
		Session: "s1",
		Exec: func(_ context.Context, c *Conn, x intent.Exec, files [3]*os.File) {
			if files[0] != nil || files[1] == nil || files[2] != nil || x.Dir != "/d" {
				t.Errorf("got %+v with %v", x, files)
			}
			served(c)
		},
		Run:     func(_ context.Context, c *Conn, _ intent.Run, _ [3]*os.File) { served(c) },
		Request: func(_ context.Context, c *Conn, _ intent.Request) { served(c) },
	})
	if rule := ask(t, path, &intent.Hello{Exec: &intent.Exec{Dir: "/d", Stdio: [3]bool{1: true}}}, os.Stderr); rule != "" {
		t.Errorf("exec: %s", rule)
	}
	if rule := ask(t, path, &intent.Hello{Run: &intent.Run{}}); rule != "" {
		t.Errorf("run: %s", rule)
	}
	if rule := ask(t, path, &intent.Hello{Request: &intent.Request{}}); rule != "" {
		t.Errorf("request: %s", rule)
	}
	for _, stdio := range [][3]bool{{}, {true, true}} {
		if rule := ask(t, path, &intent.Hello{Exec: &intent.Exec{Stdio: stdio}}, os.Stderr); rule != RuleMessage {
			t.Errorf("one descriptor for %v is refused by %q, want %q", stdio, rule, RuleMessage)
		}
	}
}

func TestListenTakesNoPlaceThatIsThere(t *testing.T) {
	name := filepath.Join(t.TempDir(), "socket")
	if err := os.Symlink("elsewhere", name); err != nil {
		t.Fatal(err)
	}
	if l, err := Listen(name); err == nil {
		l.Close()
		t.Error("a link was taken for a free place")
	}
}

// TestListenBelowDeepDirectories shows that a socket's address, which is short,
// bounds no home.
func TestListenBelowDeepDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "socket")
	if l, err := net.Listen("unix", path); err == nil {
		l.Close()
		t.Fatal("control: the address is short enough")
	}
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the session socket is %v, %v", info, err)
	}
	err = short(path, func(name string) error {
		c, err := net.Dial("unix", name)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	if err != nil {
		t.Errorf("nobody can connect: %v", err)
	}
}

// TestGuestGoesAway shows that a handler is told.
func TestGuestGoesAway(t *testing.T) {
	ended := make(chan struct{})
	path := serve(t, Handlers{Exec: func(ctx context.Context, c *Conn, _ intent.Exec, _ [3]*os.File) {
		_ = c.Send(intent.Reply{Started: true})
		<-ctx.Done()
		close(ended)
	}})
	c := speak(t, path)
	if err := c.Send(&intent.Hello{Exec: &intent.Exec{}}); err != nil {
		t.Fatal(err)
	}
	var r intent.Reply
	if _, err := c.Receive(&r); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
		t.Fatal("control: the context ended with the guest there")
	case <-time.After(20 * time.Millisecond):
	}
	c.Close()
	testenv.Receive(t, "the end of the context", ended)
}

// TestLaterDescriptors shows that nothing but the first message carries any.
func TestLaterDescriptors(t *testing.T) {
	ended := make(chan struct{})
	path := serve(t, Handlers{Exec: func(ctx context.Context, _ *Conn, _ intent.Exec, _ [3]*os.File) { <-ctx.Done(); close(ended) }})
	c := speak(t, path)
	if err := c.Send(&intent.Hello{Exec: &intent.Exec{}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Send(&intent.Update{Signal: 15}, os.Stderr); err != nil {
		t.Fatal(err)
	}
	testenv.Receive(t, "the end of the conversation", ended)
}

// TestStatementsTakeTurns: what a guest says ahead of its turn is not kept. The
// control waits for the end of each.
func TestStatementsTakeTurns(t *testing.T) {
	for name, waits := range map[string]bool{"control": true, "ahead": false} {
		ended := make(chan int, 1)
		path := serve(t, Handlers{Exec: func(ctx context.Context, c *Conn, _ intent.Exec, _ [3]*os.File) {
			n := 0
			defer func() { ended <- n }()
			for {
				if waits {
					_ = c.Send(intent.Reply{Exit: &intent.Exit{}})
				}
				select {
				case <-c.Updates():
					n++
				case <-ctx.Done():
					return
				}
			}
		}})
		c := speak(t, path)
		if err := c.Send(&intent.Hello{Exec: &intent.Exec{}}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if waits {
				if _, err := c.Receive(&intent.Reply{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Send(&intent.Update{Exec: &intent.Exec{}}); err != nil && waits {
				t.Fatal(err)
			}
		}
		if waits {
			if _, err := c.Receive(&intent.Reply{}); err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
		if n, want := testenv.Receive(t, name+": the end of the conversation", ended), map[bool]int{true: 3}[waits]; n != want {
			t.Errorf("%s: %d statements were taken, want %d", name, n, want)
		}
	}
}

// TestCrowd lets 10,000 guests stand at the session socket and say nothing, or stay for
// good. The session socket holds no more than its limit of them, says so to the others,
// and serves again when they are gone.
func TestCrowd(t *testing.T) {
	path := serve(t, Handlers{Session: "s1", Request: func(ctx context.Context, c *Conn, _ intent.Request) {
		_ = c.Send(intent.Reply{Started: true})
		<-ctx.Done()
	}})
	before := descriptors(t)
	var stay []*ipc.Conn
	for range MaxPeers {
		c := speak(t, path)
		if err := c.Send(&intent.Hello{Request: &intent.Request{}}); err != nil {
			t.Fatal(err)
		}
		var r intent.Reply
		if _, err := c.Receive(&r); err != nil || !r.Started {
			t.Fatalf("control: got %+v, %v", r, err)
		}
		stay = append(stay, c)
	}
	busy := 0
	for range 10_000 - MaxPeers {
		c := knock(t, path)
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if b, _ := io.ReadAll(c); strings.Contains(string(b), RuleBusy) {
			busy++
		}
		c.Close()
	}
	if busy != 10_000-MaxPeers {
		t.Errorf("%d were told that the session socket is busy, want %d", busy, 10_000-MaxPeers)
	}
	if now := descriptors(t); now > before+3*MaxPeers+100 {
		t.Errorf("%d descriptors before and %d after", before, now)
	}
	for _, c := range stay {
		c.Close()
	}
	testenv.Until(t, "to serve again", func() bool { return ask(t, path, &intent.Hello{Request: &intent.Request{}}) == "" })
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestSilent shows that a guest that says nothing is sent away.
func TestSilent(t *testing.T) {
	const patience = 300 * time.Millisecond
	path := serve(t, Handlers{Session: "s1", Patience: patience})
	began := time.Now()
	c := knock(t, path)
	_ = c.SetDeadline(time.Now().Add(testenv.Patience(t, HelloWait)))
	if _, err := io.ReadAll(c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	if took := time.Since(began); took < patience {
		t.Errorf("it was sent away after %v, want %v", took, patience)
	}
}

// TestSort shows what is done with each sort of descriptor.
func TestSort(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(name string, flags int) *os.File {
		fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0o600)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f := os.NewFile(uintptr(fd), name)
		t.Cleanup(func() { f.Close() })
		return f
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	socket := os.NewFile(uintptr(pair[0]), "socket")
	defer socket.Close()
	defer unix.Close(pair[1])
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	anon := os.NewFile(uintptr(event), "eventfd")
	defer anon.Close()
	tests := []struct {
		name string
		file *os.File
		want class
	}{
		{"none", nil, closed},
		{"a pipe's end to read", r, passed},
		{"a pipe's end to write", w, passed},
		{"/dev/null", open("/dev/null", unix.O_RDWR), null},
		{"a named pipe", open(fifo, unix.O_RDWR), pumped},
		{"a file", open(filepath.Join(dir, "file"), unix.O_RDWR|unix.O_CREAT), pumped},
		{"a socket", socket, pumped},
		{"/dev/zero", open("/dev/zero", unix.O_RDONLY), pumped},
		{"a terminal", open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY), terminal},
		{"a directory", open(dir, unix.O_RDONLY|unix.O_DIRECTORY), refused},
		{"a place of a directory", open(dir, unix.O_PATH), refused},
		{"a place of a file", open(filepath.Join(dir, "file"), unix.O_PATH), refused},
		{"a place of a pipe", open(fifo, unix.O_PATH), refused},
		{"no file at all", anon, refused},
		{"a file of the kernel's", open("/proc/self/oom_score_adj", unix.O_WRONLY), refused}, // a Bawn that root runs may write there what its guest may not
	}
	for _, tt := range tests {
		got, err := sort([3]*os.File{1: tt.file})
		if got[1].class != tt.want || (err != nil) != (tt.want == refused) {
			t.Errorf("%s: class %d, %v; want class %d", tt.name, got[1].class, err, tt.want)
		}
	}
	if got, err := sort([3]*os.File{open("/proc/meminfo", unix.O_RDONLY)}); err != nil || got[0].class != pumped {
		t.Errorf("a file of the kernel's that is read: class %d, %v", got[0].class, err)
	}
}

// TestGuestsDescriptorStaysAsItIs shows that a guest's descriptor, which it
// shares with the session socket, blocks afterwards as it did before.
func TestGuestsDescriptorStaysAsItIs(t *testing.T) {
	for _, blocks := range []bool{true, false} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(pair[1])
		if err := unix.SetNonblock(pair[0], !blocks); err != nil {
			t.Fatal(err)
		}
		copied, err := unix.Dup(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(copied)
		f := os.NewFile(uintptr(pair[0]), "guest")
		p := &plumbing{}
		if p.stdio, err = sort([3]*os.File{1: f}); err != nil {
			t.Fatal(err)
		}
		if err := p.connect(nil, 0, 0); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(p.files[1], "text")
		buf := make([]byte, 4)
		if _, err := unix.Read(pair[1], buf); err != nil || string(buf) != "text" {
			t.Errorf("got %q, %v", buf, err)
		}
		p.abandon()
		flags, err := unix.FcntlInt(uintptr(copied), unix.F_GETFL, 0)
		if err != nil || (flags&unix.O_NONBLOCK == 0) != blocks {
			t.Errorf("flags are %#x, %v; want blocking %v", flags, err, blocks)
		}
		f.Close()
	}
}
