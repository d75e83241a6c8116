package inside

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
)

func TestCommands(t *testing.T) {
	l := start(t, bare("/"))
	for line, want := range map[string]struct {
		out  string
		code int
		sig  syscall.Signal
	}{
		"echo out; echo err >&2":   {"out\nerr\n", 0, -1},
		"exit 7":                   {"", 7, -1},
		"kill -9 $$":               {"", -1, syscall.SIGKILL},
		"cat":                      {"", 0, -1}, // /dev/null
		"pwd; echo $LANG":          {"/\nC\n", 0, -1},
		"readlink /proc/self/fd/0": {"/dev/null\n", 0, -1},
		"ls -1 /proc/self/fd":      {"0\n1\n2\n3\n", 0, -1}, // 3 is the listed directory
	} {
		out, end := l.run(t, "/bin/sh", "-c", line)
		if out != want.out || end.ExitStatus() != want.code || end.Signal() != want.sig {
			t.Errorf("%q: got %q, %d, %v", line, out, end.ExitStatus(), end.Signal())
		}
	}
}

func TestWhatCantBeExecuted(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := bare(dir)
	l := start(t, s)
	for name, absent := range map[string]bool{"no-such-program": true, "/no/such/program": true, plain: false, dir: false, "": true} {
		_, err := l.Exec(sandbox.Command{Argv: []string{name}})
		var nf *sandbox.NotFoundError
		if !errors.As(err, &nf) || nf.Absent != absent {
			t.Errorf("%q: got %v, want a NotFoundError with Absent %v", name, err, absent)
		}
	}
	s.NotFound = func(c sandbox.Command, errno syscall.Errno) *sandbox.NotFoundError {
		return &sandbox.NotFoundError{Name: c.Argv[0], Err: errno, Why: "in " + c.Dir}
	}
	_, err := start(t, s).Exec(sandbox.Command{Argv: []string{"no-such-program"}})
	if err == nil || !strings.HasSuffix(err.Error(), "in "+dir) {
		t.Errorf("got %v, want the provider's own words", err)
	}
}

// TestDirectoryThroughALink: a command starts where a link leads, and sees no
// variable twice.
func TestDirectoryThroughALink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	s := bare(filepath.Join(dir, "link"))
	s.Environ = append(s.Environ, "A=1", "no variable", "A=2")
	if got, want := start(t, s).shell(t, "pwd; env | grep ^A=", true), filepath.Join(dir, "real")+"\nA=2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStopsAndSignals(t *testing.T) {
	l := start(t, bare("/"))
	p, err := l.Exec(sandbox.Command{Argv: []string{"/bin/sh", "-c", "kill -STOP $$; exit 3"}})
	if err != nil {
		t.Fatal(err)
	}
	if ch := <-p.Changes(); !ch.Stopped || ch.Status.StopSignal() != unix.SIGSTOP {
		t.Fatalf("got %+v, want a stop", ch)
	}
	if err := p.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if end := ended(t, p); end.ExitStatus() != 3 {
		t.Errorf("got exit status %d, want 3", end.ExitStatus())
	}
}

// TestLastCommandEndsTheSandbox: what it leaves behind is killed with it.
func TestLastCommandEndsTheSandbox(t *testing.T) {
	l := start(t, bare("/"))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := l.Exec(sandbox.Command{Argv: []string{"/bin/sh", "-c", "sleep 1000 & exit 4"}, Stdio: [3]*os.File{nil, w, nil}, Last: true})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if end := ended(t, p); end.ExitStatus() != 4 {
		t.Errorf("got exit status %d, want 4", end.ExitStatus())
	}
	testenv.Receive(t, "the sandbox's end", l.Done())
	if err := r.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err != nil { // the sleeper holds the other end
		t.Errorf("what the last command left behind is still there: %v", err)
	}
	if _, err := l.Exec(sandbox.Command{Argv: []string{"true"}}); err == nil {
		t.Error("a command was started after the last one")
	}
}

func TestTerminal(t *testing.T) {
	s := bare("/")
	s.Terminals = true // the host's are not everybody's to open by that name
	l := start(t, s)
	master, slave, err := l.OpenTerminal()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// Standard input is no terminal, and yet there is a controlling one.
	p, err := l.Exec(sandbox.Command{
		Argv:  []string{"/bin/sh", "-c", "test -t 1 && test ! -t 0 && exec </dev/tty && read line && echo got $line >&2"},
		Stdio: [3]*os.File{nil, slave, w}, Terminal: slave, Foreground: true,
	})
	slave.Close()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := master.WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if end := ended(t, p); err != nil || end.ExitStatus() != 0 || string(out) != "got hello\n" {
		t.Errorf("got %q, %v, exit status %d", out, err, end.ExitStatus())
	}
	if _, err := l.Exec(sandbox.Command{Argv: []string{"true"}, Terminal: master}); err == nil {
		t.Error("a terminal that is no descriptor of the command was accepted")
	}
}

// TestSocketByPath: the first process connects, as in a container that shares no
// descriptor with us.
func TestSocketByPath(t *testing.T) {
	at := filepath.Join(t.TempDir(), "control")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: at}), unix.Listen(fd, 1)); err != nil {
		t.Fatal(err)
	}
	launch(t, at)
	conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Start(testenv.Context(t), os.NewFile(uintptr(conn), "accepted"), bare("/"))
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{Guest: g}
	l.shell(t, "true", true)
	l.shell(t, "readlink /proc/1/fd/0 || cat /proc/1/environ || cat </proc/1/mem", false) // nothing of the first process can be had
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// TestNobodyAnswers: Start returns when its time is over.
func TestNobodyAnswers(t *testing.T) {
	ours, theirs, err := ipc.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = Start(ctx, ours, bare("/"))
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 20*time.Second {
		t.Errorf("got %v after %v, want the deadline", err, time.Since(began))
	}
}

func TestGoneWithinTheSetup(t *testing.T) {
	ours, theirs, err := ipc.Pair()
	if err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	if _, err := Start(testenv.Context(t), ours, bare("/")); err == nil {
		t.Error("a sandbox without a first process was started")
	}
}

// TestOtherFilesThanAskedFor: what the other side hands out is counted before it
// is kept.
func TestOtherFilesThanAskedFor(t *testing.T) {
	for _, s := range []string{`{"Sockets":1}`, `{"Handed":{}}`, `{"Handed":{"Root":true,"Listener":true}}`, `{"Failed":{"Step":"x","Why":"y"}}`, `{}`, `no JSON`} {
		ours, theirs, err := ipc.Pair()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer theirs.Close()
			for range 20 {
				frame := append([]byte{0, 0, 0, byte(len(s))}, s...)
				if _, err := unix.SendmsgN(int(theirs.Fd()), frame, unix.UnixRights(int(theirs.Fd())), nil, unix.MSG_NOSIGNAL); err != nil {
					return
				}
			}
		}()
		if _, err := Start(testenv.Context(t), ours, bare("/")); err == nil {
			t.Errorf("%s was taken for what was asked for", s)
		}
	}
}
