package stream

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/ticket"
)

const roleExecutor = "be-the-executor"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == roleExecutor {
		control, err := Serve(os.Stdin, nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			unix.Exit(2)
		}
		unix.Exit(executor.Main(control))
	}
	os.Exit(m.Run())
}

const session = "s1"

var plan = sha256.Sum256([]byte("a plan"))

// A lab is an executor behind a tunnel.
type lab struct {
	*executor.Client
	host   *Host
	issuer *ticket.Issuer
	cmd    *exec.Cmd
}

func start(t testing.TB) *lab {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "wire")
	cmd := exec.Command("/proc/self/exe", roleExecutor)
	cmd.Stdin, cmd.Stderr = theirs, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	h, err := Open(os.NewFile(uintptr(fds[0]), "wire"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := executor.New(h.Control())
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{Client: c, host: h, issuer: ticket.NewIssuer(time.Now), cmd: cmd}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		_ = cmd.Process.Kill() // it has ended by itself, as a rule
		_ = cmd.Wait()
	})
	if _, err := c.Start(testenv.Context(t), executor.Start{Keys: l.issuer.Keys(), Session: session, Plan: plan}); err != nil {
		t.Fatal(err)
	}
	return l
}

// do starts a shell command with these descriptors.
func (l *lab) do(t testing.TB, text string, terminal bool, files ...*os.File) *executor.Process {
	t.Helper()
	d := executor.Do{Argv: []string{"/bin/sh", "-c", text}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Terminal: terminal}
	var stdio [3]*os.File
	for i, f := range files {
		stdio[i], d.Stdio[i] = f, f != nil
	}
	digest, err := d.Digest(session, plan)
	if err != nil {
		t.Fatal(err)
	}
	if d.Ticket, err = l.issuer.Issue(session, digest, time.Minute); err != nil {
		t.Fatal(err)
	}
	p, err := l.Do(testenv.Context(t), d, stdio)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// last waits for the end of p.
func last(t testing.TB, p *executor.Process) syscall.WaitStatus {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case ch := <-p.Changes():
			if ch.Ended() {
				return ch.Status
			}
		case <-late:
			t.Fatal("the command does not end")
		}
	}
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// TestOutputPrecedesTheEnd: when the end is told, all of the output is in the
// file already.
func TestOutputPrecedesTheEnd(t *testing.T) {
	l := start(t)
	for i := range 30 {
		f, err := os.Create(t.TempDir() + "/out")
		if err != nil {
			t.Fatal(err)
		}
		n := 1 + i*20000
		if ws := last(t, l.do(t, fmt.Sprintf("head -c %d /dev/zero; exit 3", n), false, nil, f, f)); ws.ExitStatus() != 3 {
			t.Errorf("status %v", ws)
		}
		if st, err := f.Stat(); err != nil || st.Size() != int64(n) {
			t.Fatalf("%d bytes of %d (%v)", st.Size(), n, err)
		}
		f.Close()
	}
}

// TestBytesBothWays: what goes in comes out, every byte, and both ends of file
// are passed on.
func TestBytesBothWays(t *testing.T) {
	l := start(t)
	data := make([]byte, 5<<20)
	_, _ = rand.Read(data)
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	p := l.do(t, "cat; echo done >&2", false, inR, outW)
	inR.Close()
	outW.Close()
	go func() {
		_, _ = inW.Write(data)
		inW.Close()
	}()
	got, err := io.ReadAll(outR)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes of %d come back, equal: %v, %v", len(got), len(data), bytes.Equal(got, data), err)
	}
	if ws := last(t, p); ws.ExitStatus() != 0 {
		t.Errorf("status %v", ws)
	}
}

// TestOrderOfTwoStreams: what is written to one file by two descriptors keeps
// its order.
func TestOrderOfTwoStreams(t *testing.T) {
	l := start(t)
	r, w := pipe(t)
	p := l.do(t, "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done", false, nil, w, w)
	w.Close()
	got, _ := io.ReadAll(r)
	var want strings.Builder
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&want, "o%d\ne%d\n", i, i)
	}
	if string(got) != want.String() {
		t.Errorf("got %q", got)
	}
	last(t, p)
}

// TestBrokenPipes: a command that stops reading stops its writer, and
// one whose output nobody reads any more is told by SIGPIPE.
func TestBrokenPipes(t *testing.T) {
	l := start(t)
	inR, inW := pipe(t)
	p := l.do(t, "exec <&-; sleep 100", false, inR)
	inR.Close()
	_ = inW.SetWriteDeadline(time.Now().Add(20 * time.Second))
	_, err := inW.Write(make([]byte, 10<<20))
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("writing to a command that has closed its input: %v", err)
	}
	_ = p.Signal(syscall.SIGKILL)
	last(t, p)

	outR, outW := pipe(t)
	p = l.do(t, "exec cat /dev/zero", false, nil, outW)
	outW.Close()
	_, _ = io.ReadFull(outR, make([]byte, 1000))
	outR.Close()
	if ws := last(t, p); ws.Signal() != syscall.SIGPIPE {
		t.Errorf("status %v", ws)
	}
}

// TestWhoDoesNotReadHoldsUpNobody: the output of one command waits, within its
// window, while others go on; and its end waits for it.
func TestWhoDoesNotReadHoldsUpNobody(t *testing.T) {
	l := start(t)
	r, w := pipe(t)
	slow := l.do(t, "head -c 3000000 /dev/zero", false, nil, w)
	w.Close()
	for range 5 {
		or, ow := pipe(t)
		p := l.do(t, "echo quick", false, nil, ow)
		ow.Close()
		if got, _ := io.ReadAll(or); string(got) != "quick\n" {
			t.Errorf("got %q", got)
		}
		last(t, p)
	}
	select {
	case ch := <-slow.Changes():
		t.Errorf("it ended before anybody read what it wrote: %v", ch.Status)
	case <-time.After(50 * time.Millisecond):
	}
	l.host.mu.Lock()
	for _, s := range l.host.sinks {
		if s.waiting > window {
			t.Errorf("%d bytes are kept", s.waiting)
		}
	}
	l.host.mu.Unlock()
	if got, err := io.ReadAll(r); err != nil || len(got) != 3000000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	last(t, slow)
}

// TestTerminal: keys, their echo, signals of the line discipline, the size.
func TestTerminal(t *testing.T) {
	l := start(t)
	master, slave, err := l.host.OpenTerminal()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 11, Col: 77}); err != nil {
		t.Fatal(err)
	}
	p := l.do(t, "test -t 0 && test -t 1 && test -t 2 && stty size; tty; trap 'stty size' WINCH; while read x; do echo got-$x; done; exec sleep 100", true, slave, slave, slave)
	slave.Close()
	from := bufio.NewReader(master)
	expect := func(want string) {
		t.Helper()
		_ = master.SetReadDeadline(time.Now().Add(20 * time.Second))
		for {
			line, err := from.ReadString('\n')
			if strings.TrimRight(line, "\r\n") == want {
				return
			}
			if err != nil {
				t.Fatalf("%q instead of %q: %v", line, want, err)
			}
		}
	}
	expect("11 77")
	_, _ = master.WriteString("abc\n")
	expect("abc") // the echo
	expect("got-abc")
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 99}); err != nil {
		t.Fatal(err)
	}
	seen, typed := make(chan struct{}), make(chan struct{})
	go func() { // a shell that reads does not look for its signals
		defer close(typed)
		for {
			select {
			case <-seen:
				return
			case <-time.After(lookPause):
				_, _ = master.WriteString("x\n")
			}
		}
	}()
	expect("33 99")
	close(seen)
	<-typed
	_, _ = master.WriteString("\x03")
	if ws := last(t, p); ws.Signal() != syscall.SIGINT {
		t.Errorf("status %v", ws)
	}
	if err := unix.SetNonblock(int(master.Fd()), true); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "the end of the terminal", func() bool {
		_, err := unix.Read(int(master.Fd()), make([]byte, 100))
		return err == unix.EIO // nobody has the other side any more
	})
}

// TestDial: both directions, each with its own end, and a port where nobody is.
func TestDial(t *testing.T) {
	l := start(t)
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			text, _ := io.ReadAll(c)
			_, _ = fmt.Fprintf(c, "heard %s", text)
			c.Close()
		}()
		port := uint16(ln.Addr().(*net.TCPAddr).Port)
		f, err := l.host.Dial(port)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "hello")
		_ = c.(*net.UnixConn).CloseWrite()
		if got, err := io.ReadAll(c); string(got) != "heard hello" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		c.Close()
		ln.Close()
		if _, err := l.host.Dial(port); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("a port where nobody listens: %v", err)
		}
	}
}

// TestTheEndOfTheOtherSide: the executor is killed; a caller that waits is told.
func TestTheEndOfTheOtherSide(t *testing.T) {
	l := start(t)
	r, w := pipe(t)
	p := l.do(t, "echo there; exec sleep 100", false, nil, w)
	w.Close()
	if line, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if ws := last(t, p); ws.Signal() != syscall.SIGKILL {
		t.Errorf("status %v", ws)
	}
	testenv.Receive(t, "the tunnel's end", l.host.Done())
	if _, err := io.ReadAll(r); err != nil {
		t.Error(err)
	}
}

// TestNothingStays: no goroutine's descriptor of many commands.
func TestNothingStays(t *testing.T) {
	l := start(t)
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	once := func() {
		r, w := pipe(t)
		p := l.do(t, "echo x", false, r, w, w)
		r.Close()
		w.Close()
		last(t, p)
	}
	once()
	before := count()
	for range 50 {
		once()
	}
	testenv.Until(t, "the end of their descriptors", func() bool { return count() <= before+5 })
}
