package attach

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/bawn-dev/bawn/internal/testenv"
)

const testPatience = 20 * time.Second

// A rig is a hosted session whose guest is a program at the other side of the
// server's terminal.
type rig struct {
	t      *testing.T
	dir    string
	server *Server
	slave  *os.File
	guest  *exec.Cmd
}

func newRig(t *testing.T, argv ...string) *rig {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.SetNonblock(int(master.Fd()), true); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(master.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	syscall.SetNonblock(fd, true)
	master.Close()
	r := &rig{t: t, dir: t.TempDir(), server: NewServer(os.NewFile(uintptr(fd), "master")), slave: slave}
	r.server.admit = func(net.Conn) error { return nil } // viewers are in the host's own process here; see test/session
	e := testEntry("x1")
	e.Hosted = true
	if err := r.server.Listen(register(t, r.dir, e)); err != nil {
		t.Fatal(err)
	}
	r.guest = exec.Command(argv[0], argv[1:]...)
	r.guest.Stdin, r.guest.Stdout, r.guest.Stderr = slave, slave, slave
	r.guest.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	r.guest.Env = append(os.Environ(), "PS1=$ ", "TERM=xterm", "ENV=")
	if err := r.guest.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.guest.Process.Kill(); r.end(0) })
	return r
}

// end waits for the guest and ends the session.
func (r *rig) end(code int) {
	if r.slave == nil {
		return
	}
	r.guest.Wait()
	r.slave.Close()
	r.slave = nil
	if err := r.server.End(code); err != nil {
		r.t.Error(err)
	}
	r.server.master.Close()
}

// A watcher is a viewer, with all that it has seen.
type watcher struct {
	*Client
	t *testing.T

	mu      sync.Mutex
	seen    strings.Builder // read often while much arrives
	anew    int
	status  Status
	notices []string
	exit    *Exit
	err     error
}

func (r *rig) dial(readOnly bool) *watcher {
	r.t.Helper()
	c, err := Dial(r.dir, "x1", readOnly)
	if err != nil {
		r.t.Fatal(err)
	}
	return watch(r.t, c)
}

func watch(t *testing.T, c *Client) *watcher {
	w := &watcher{Client: c, t: t}
	t.Cleanup(func() { c.Close() })
	go w.hear()
	return w
}

func (w *watcher) hear() {
	for {
		e, err := w.Next()
		w.mu.Lock()
		w.take(e)
		w.err = err
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (w *watcher) take(e Event) {
	if e.Anew {
		w.anew++
		w.seen.Reset()
	}
	w.seen.Write(e.Output)
	if e.Status != nil {
		w.status = *e.Status
	}
	if e.Notice != "" {
		w.notices = append(w.notices, e.Notice)
	}
	if e.Exit != nil {
		w.exit = e.Exit
	}
}

// until waits for something to hold of what was seen.
func (w *watcher) until(what string, holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(testPatience); ; time.Sleep(5 * time.Millisecond) {
		w.mu.Lock()
		ok, seen := holds(), w.seen.String()
		notices, err := fmt.Sprint(w.notices), w.err
		w.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("waited in vain for %s; seen %q, notices %s, %v", what, seen[max(0, len(seen)-2000):], notices, err)
		}
	}
}

// sofar returns what was seen, and how often the screen was drawn anew.
func (w *watcher) sofar() (seen string, anew int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.String(), w.anew
}

func (w *watcher) sees(text string) {
	w.t.Helper()
	w.until(text, func() bool { return strings.Contains(w.seen.String(), text) })
}

func (w *watcher) types(text string) {
	w.t.Helper()
	if err := w.Input([]byte(text)); err != nil {
		w.t.Fatal(err)
	}
}

func TestTwoViewers(t *testing.T) {
	r := newRig(t, "sh")
	a, b := r.dial(false), r.dial(false)
	a.types("echo from-$((1))\n")
	a.sees("from-1")
	b.sees("from-1")
	b.types("echo from-$((2))\n")
	a.sees("from-2")
	b.sees("from-2")
	a.until("two viewers", func() bool { return a.status.Viewers == 2 })
	if e := onlyState(t, r.dir, Running); e.Viewers != 2 {
		t.Errorf("the registry has %d viewers", e.Viewers)
	}
	b.Close()
	a.until("one viewer", func() bool { return a.status.Viewers == 1 })
	late := r.dial(true)
	late.sees("from-1")
	late.sees("from-2")
	a.types("exit 5\n")
	r.end(5)
	for _, w := range []*watcher{a, late} {
		w.until("the end", func() bool { return w.exit != nil && w.exit.Code == 5 })
	}
	if _, err := Dial(r.dir, "x1", true); err == nil {
		t.Error("a session that has ended was dialled")
	}
	if e := onlyState(t, r.dir, Ended); *e.Exit != 5 {
		t.Errorf("the registry says %d", *e.Exit)
	}
}

func refused(err error) bool {
	var refusal *RefusedError
	return errors.As(err, &refusal) && refusal.Why != ""
}

// TestReadOnlyCantType also not by sending what its client never would.
func TestReadOnlyCantType(t *testing.T) {
	r := newRig(t, "sh")
	a := r.dial(false)
	for _, frame := range [][]byte{
		appendFrame(nil, inputFrame, []byte("echo sneaked-$((1))\n")), appendFrame(nil, signalFrame, []byte("TERM")), appendFrame(nil, 'x', nil),
		appendFrame(nil, helloFrame, []byte("{}")),
	} {
		b := r.dial(true)
		if err := b.send(frame); err != nil {
			t.Fatal(err)
		}
		b.until("being closed", func() bool { return refused(b.err) })
	}
	ro := r.dial(true)
	if err := ro.Resize(Size{10, 10}); err != nil {
		t.Fatal(err)
	}
	a.types("stty size; echo typed-$((1))\n") // the control
	a.sees("typed-1")
	a.sees("24 80")
	if seen, _ := a.sofar(); strings.Contains(seen, "sneaked-1") {
		t.Error("a viewer that may only look has typed")
	}
}

// TestSmallestWindow: the window fits everybody who may type.
func TestSmallestWindow(t *testing.T) {
	r := newRig(t, "sh")
	a, b := r.dial(false), r.dial(false)
	size := func(w *watcher, want string) {
		t.Helper()
		var rows, cols uint16
		fmt.Sscanf(want, "%d %d", &rows, &cols)
		w.until("size "+want, func() bool { return w.status.Size == Size{rows, cols} })
		w.types("stty size\n")
		w.sees(want + "\r\n")
	}
	a.Resize(Size{50, 100})
	size(a, "50 100")
	b.Resize(Size{60, 90})
	size(b, "50 90")
	b.Resize(Size{0, 0})
	size(b, "50 100")
	b.Resize(Size{20, 60})
	size(b, "20 60")
	b.Close()
	size(a, "50 100")
}

// TestSlowViewer: the guest never waits, and the viewer sees the end anew.
func TestSlowViewer(t *testing.T) {
	r := newRig(t, "sh", "-c", "read go; seq 1 400000; echo all-$((1)); read go")
	a := r.dial(false)
	slow, err := Dial(r.dir, "x1", true)
	if err != nil {
		t.Fatal(err)
	}
	a.until("two viewers", func() bool { return a.status.Viewers == 2 })
	a.types("\n")
	a.sees("all-1")
	w := watch(t, slow)
	w.sees("all-1")
	if seen, anew := w.sofar(); anew == 0 || len(seen) > 3*scrollBack {
		t.Errorf("%d screens and then %d bytes; want the screen anew", anew, len(seen))
	}
	seen, anew := a.sofar()
	if n := strings.Count(seen, "\n"); anew == 0 && n < 400000 {
		t.Errorf("the other viewer saw %d lines", n)
	}
}

// TestDeafViewer is one that has lost output when the session ends.
func TestDeafViewer(t *testing.T) {
	r := newRig(t, "sh", "-c", "seq 1 400000; echo all-$((1))")
	slow, err := Dial(r.dir, "x1", true)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { r.guest.Process.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(testPatience):
		t.Fatal("the guest waits for a viewer")
	}
	w := watch(t, slow)
	r.end(0)
	w.until("the end", func() bool { return w.exit != nil })
	w.sees("all-1")
}

// TestGreedyViewer: one that asks for screens and reads none costs the session no
// memory, whether it may type or not.
func TestGreedyViewer(t *testing.T) {
	r := newRig(t, "sh", "-c", "seq 1 50000; echo all-$((1)); read go")
	a := r.dial(false)
	a.sees("all-1")
	c, err := Dial(r.dir, "x1", true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a.until("two viewers", func() bool { return a.status.Viewers == 2 })
	r.server.mu.Lock()
	greedy := r.server.viewers[1]
	r.server.mu.Unlock()
	for range 500 {
		if err := c.Refresh(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Input([]byte("x")); err != nil { // what ends it, so all has been heard
		t.Fatal(err)
	}
	a.until("one viewer", func() bool { return a.status.Viewers == 1 })
	greedy.mu.Lock()
	defer greedy.mu.Unlock()
	if n := cap(greedy.backlog); n > 4*maxBacklog {
		t.Errorf("%d bytes wait for a viewer that does not read", n)
	}
}

// TestOneIsAsked: a question to the terminal goes to one of those who could
// answer.
func TestOneIsAsked(t *testing.T) {
	r := newRig(t, "sh", "-c", `stty -echo; while read x; do printf '\033[6n:%s:' "$x"; done`)
	a, b, ro := r.dial(false), r.dial(false), r.dial(true)
	all := []*watcher{a, b, ro}
	asked := func(word string) (n []int) {
		for i, w := range all {
			w.sees(":" + word + ":")
			if seen, _ := w.sofar(); strings.Contains(seen, "\x1b[6n:"+word) {
				n = append(n, i)
			}
		}
		return n
	}
	a.types("one\n")
	if got := fmt.Sprint(asked("one")); got != "[0]" {
		t.Errorf("asked were %v; want the one that typed", got)
	}
	b.types("two\n")
	if got := fmt.Sprint(asked("two")); got != "[1]" {
		t.Errorf("asked were %v; want the one that typed last", got)
	}
	b.Close()
	a.until("two viewers", func() bool { return a.status.Viewers == 2 })
	all = []*watcher{a, ro}
	a.types("three\n")
	if got := fmt.Sprint(asked("three")); got != "[0]" {
		t.Errorf("asked were %v; want the one that is left", got)
	}
}

// TestRedraw: a program that draws its window is made to.
func TestRedraw(t *testing.T) {
	r := newRig(t, "sh", "-c", `printf '\033[?1049hfirst'; trap 'printf "drawn %s;" "$(stty size)"' WINCH; echo ready; while :; do sleep 0.02; done`)
	a := r.dial(false)
	a.sees("ready")
	a.Resize(Size{24, 80}) // no change, and yet; a busy machine's guest may see the second of two changes only
	a.sees("drawn 24 80;")
	b := r.dial(false)
	b.sees("\x1b[?1049hfirst")
}

func TestTooManyViewers(t *testing.T) {
	r := newRig(t, "cat")
	var all []*watcher
	for range maxViewers {
		all = append(all, r.dial(true))
	}
	all[0].until("a full house", func() bool { return all[0].status.Viewers == maxViewers })
	w := r.dial(false)
	w.until("being refused", func() bool { return refused(w.err) })
	all[1].Close()
	all[0].until("a place", func() bool { return all[0].status.Viewers == maxViewers-1 })
	w = r.dial(false)
	w.until("being let in", func() bool { return w.status.Viewers == maxViewers })
}

// TestEndedBeforeHello shows how the session ended to the viewer that its starter
// is, also where the command was faster.
func TestEndedBeforeHello(t *testing.T) {
	r := newRig(t, "sh", "-c", "echo last words")
	host, end, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.server.Serve(host); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { r.end(7); close(ended) }()
	testenv.Until(t, "the end", func() bool {
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		return r.server.exit != nil
	})
	c, err := NewClient(end, false)
	if err != nil {
		t.Fatal(err)
	}
	w := watch(t, c)
	w.sees("last words")
	w.until("the exit code", func() bool { return w.exit != nil && w.exit.Code == 7 })
	<-ended
}

// TestGarbage: what is no viewer is closed, and harms nobody.
func TestGarbage(t *testing.T) {
	r := newRig(t, "cat")
	a := r.dial(false)
	for _, garbage := range []string{"", "GET / HTTP/1.1\r\n\r\n", "H\x00\x00\x00\x01x", "H\xff\xff\xff\xff", "H\x00\x00\x00\x02{}I\xff\xff\xff\xff", "H\x00\x00\x00\x02{}R\x00\x00\x00\x01x", "H\x00\x00\x00\x02{}G\x00\x00\x00\x04SEGV"} {
		conn, err := connect(r.dir + "/sessions/x1")
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte(garbage))
		conn.CloseWrite()
		conn.SetReadDeadline(time.Now().Add(testPatience))
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("%q: was not closed: %v", garbage, err)
		}
		conn.Close()
	}
	a.types("still here\n")
	a.sees("still here\r\nstill here")
}

// TestFiftyAttaches: nothing is left of those who came and went.
func TestFiftyAttaches(t *testing.T) {
	r := newRig(t, "sh")
	a := r.dial(false)
	a.types("echo one-$((1))\n")
	a.sees("one-1")
	alone := func() { t.Helper(); a.until("being alone", func() bool { return a.status.Viewers == 1 }) }
	once := func() {
		w := r.dial(false)
		w.Resize(Size{30, 70})
		w.sees("one-1")
		w.Close()
	}
	once()
	alone()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 50 {
		once()
	}
	alone()
	testenv.Until(t, fmt.Sprintf("%d goroutines and %d files, as before", goroutines, files), func() bool { return runtime.NumGoroutine() <= goroutines && openFiles(t) <= files })
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// TestLog: the output is kept up to its limit, read back and followed.
func TestLog(t *testing.T) {
	r := newRig(t, "sh", "-c", `printf 'a\033[6nb\n'; read go; seq -f '%07g' 1 520000; echo all-$((1)); read go; echo last`)
	a := r.dial(false)
	a.sees("b\r\n")
	var follow lockedBuffer
	done := make(chan error, 1)
	go func() { done <- LogReader{Dir: r.dir, ID: "x1", Follow: true}.Copy(t.Context(), &follow) }()
	a.types("\n")
	a.sees("all-1")
	a.types("\n")
	r.end(0)
	if err := testenv.Receive(t, "the end", done); err != nil {
		t.Fatal(err)
	}
	text := follow.String()
	if !strings.HasPrefix(text, "ab\r\n") || !strings.HasSuffix(text, "all-1\r\n\r\nlast\r\n") {
		t.Errorf("follow: %q … %q", text[:20], text[len(text)-30:])
	}
	var kept bytes.Buffer
	if err := (LogReader{Dir: r.dir, ID: "x1"}).Copy(t.Context(), &kept); err != nil {
		t.Fatal(err)
	}
	if n := kept.Len(); n > LogLimit+64<<10 || n < LogLimit/2 || !strings.HasSuffix(kept.String(), "last\r\n") {
		t.Errorf("%d bytes are kept, to %q", n, kept.String()[max(0, n-30):])
	}
	kept.Reset()
	if err := (LogReader{Dir: r.dir, ID: "x1", Lines: 3}).Copy(t.Context(), &kept); err != nil || kept.String() != "all-1\r\n\r\nlast\r\n" {
		t.Errorf("the last three lines are %q, %v", kept.String(), err)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestWithoutKey does what a guest could that is shown the socket: its host
// connects in its stead, so that the credentials may be in order.
func TestWithoutKey(t *testing.T) {
	r := newRig(t, "sh")
	refused := make(chan error, 8)
	r.server.Refused = func(why error) { refused <- why }
	for name, first := range map[string][]byte{
		"no key":  appendJSON(nil, helloFrame, hello{}),
		"another": appendJSON(nil, helloFrame, hello{Key: strings.Repeat("A", 26)}),
		"nothing": appendFrame(nil, inputFrame, []byte("exit\n")),
	} {
		conn, err := connect(r.dir + "/sessions/x1")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(appendFrame(first, inputFrame, []byte("exit 3\n"))); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(testPatience))
		text, err := io.ReadAll(conn)
		if len(text) == 0 || kind(text[0]) != refuseFrame {
			t.Errorf("%s: told %q, %v", name, text, err)
		}
		select {
		case why := <-refused:
			if !strings.Contains(why.Error(), "process ") {
				t.Errorf("%s: told %v", name, why)
			}
		case <-time.After(testPatience):
			t.Fatalf("%s: nothing is told", name)
		}
	}
	w := r.dial(false) // the control
	if err := w.Input([]byte("echo ali''ve\n")); err != nil {
		t.Fatal(err)
	}
	w.sees("alive")
	info, err := os.Stat(r.dir + "/sessions/x1/" + keyName)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key is %v, %v", info, err)
	}
}
