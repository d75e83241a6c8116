package rawproc

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { os.Exit(m.Run()) }

func startTest(t *testing.T, p *Program) *Init {
	t.Helper()
	in, err := Start(Config{Namespaces: unix.CLONE_NEWPID | unix.CLONE_NEWUSER, Program: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Kill)
	return in
}

func noop() *Program {
	p := &Program{}
	p.Call("getpid", unix.SYS_GETPID)
	return p
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func TestRunReportsOutputAndStatus(t *testing.T) {
	in := startTest(t, noop())
	ends := make(chan unix.WaitStatus, 8)
	for range 3 {
		r, w := pipe(t)
		null, _ := os.Open(os.DevNull)
		_, err := in.Run(Command{Paths: []string{"/nonexistent/sh", "/bin/sh"}, Args: []string{"sh", "-c", "echo $X $$; exit 7"},
			Env: []string{"X=hello"}, Dir: "/", Stdio: [3]*os.File{null, w, w}, OnStatus: func(ws unix.WaitStatus) { ends <- ws }})
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		out, _ := io.ReadAll(r)
		if ws := <-ends; ws.ExitStatus() != 7 {
			t.Errorf("got %v, want status 7", ws)
		}
		if len(out) < 7 || string(out[:6]) != "hello " {
			t.Errorf("got output %q", out)
		}
		null.Close()
	}
}

func TestRunTellsWhyExecFailed(t *testing.T) {
	in := startTest(t, noop())
	null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	defer null.Close()
	cases := map[string]unix.Errno{"/nonexistent": unix.ENOENT, "/etc/passwd": unix.EACCES}
	for path, want := range cases {
		_, err := in.Run(Command{Paths: []string{path}, Args: []string{"x"}, Dir: "/", Stdio: [3]*os.File{null, null, null}})
		var ee *ExecError
		if !errors.As(err, &ee) || ee.Errno != want {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
	_, err := in.Run(Command{Paths: []string{"/bin/true"}, Args: []string{"x"}, Dir: "/nonexistent", Stdio: [3]*os.File{null, null, null}})
	if !errors.Is(err, unix.ENOENT) {
		t.Errorf("absent directory: got %v", err)
	}
}

func TestFailedStepIsNamed(t *testing.T) {
	p := noop()
	p.Call("open what is not there", unix.SYS_OPENAT, unix.AT_FDCWD, "/nonexistent", unix.O_RDONLY)
	_, err := Start(Config{Namespaces: unix.CLONE_NEWUSER | unix.CLONE_NEWPID, Program: p})
	var se *StepError
	if !errors.As(err, &se) || se.Step != "open what is not there" || se.Errno != unix.ENOENT || se.Index != 1 {
		t.Fatalf("got %v", err)
	}
}

func TestExpectIdentityRefusesAnotherFile(t *testing.T) {
	p := noop()
	s := p.NewSlot()
	p.Call("open /", unix.SYS_OPENAT, unix.AT_FDCWD, "/", unix.O_PATH).Into(s)
	p.ExpectIdentity("identity of /", s, Identity{Dev: 1, Ino: 1})
	if _, err := Start(Config{Namespaces: unix.CLONE_NEWUSER | unix.CLONE_NEWPID, Program: p}); !errors.Is(err, unix.ESTALE) {
		t.Fatalf("got %v, want ESTALE", err)
	}
}

func TestKillEndsEverything(t *testing.T) {
	in := startTest(t, noop())
	r, w := pipe(t)
	null, _ := os.Open(os.DevNull)
	defer null.Close()
	if _, err := in.Run(Command{Paths: []string{"/bin/sh"}, Args: []string{"sh", "-c", "trap '' TERM HUP INT; (sleep 1000 &) ; sleep 1000"},
		Dir: "/", Stdio: [3]*os.File{null, w, w}}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	in.Kill()
	eof := make(chan struct{})
	go func() { io.ReadAll(r); close(eof) }()
	select {
	case <-eof:
	case <-time.After(5 * time.Second):
		t.Fatal("a process still holds the pipe after Kill")
	}
	if _, err := in.Run(Command{Paths: []string{"/bin/true"}, Args: []string{"x"}, Dir: "/", Stdio: [3]*os.File{null, null, null}}); err == nil {
		t.Fatal("Run after Kill: got nil error")
	}
}

func TestTooLargeCommandIsRefused(t *testing.T) {
	in := startTest(t, noop())
	big := string(make([]byte, arenaSize))
	null, _ := os.Open(os.DevNull)
	defer null.Close()
	for _, env := range []string{"X=" + big[:0] + string(make([]byte, 3)), "X=" + stringOf('x', arenaSize)} {
		if _, err := in.Run(Command{Paths: []string{"/bin/true"}, Args: []string{"x"}, Env: []string{env}, Dir: "/", Stdio: [3]*os.File{null, null, null}}); err == nil {
			t.Error("got nil error")
		}
	}
}

func stringOf(c byte, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = c
	}
	return string(b)
}

func BenchmarkRunTrue(b *testing.B) {
	in, err := Start(Config{Namespaces: unix.CLONE_NEWUSER | unix.CLONE_NEWPID, Program: noop()})
	if err != nil {
		b.Fatal(err)
	}
	defer in.Kill()
	ended := make(chan struct{}, 1)
	null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	for b.Loop() {
		if _, err := in.Run(Command{Paths: []string{"/bin/true"}, Args: []string{"true"}, Dir: "/", Stdio: [3]*os.File{null, null, null},
			OnStatus: func(unix.WaitStatus) { ended <- struct{}{} }}); err != nil {
			b.Fatal(err)
		}
		<-ended
	}
}
