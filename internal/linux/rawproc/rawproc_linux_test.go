package rawproc

import (
	"errors"
	"io"
	"net" // links the C library where CGO_ENABLED=1, as it does in bawn
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

func TestMain(m *testing.M) {
	if stage := os.Getenv(endAllStage); stage != "" {
		os.Exit(endAllPart(stage))
	}
	os.Exit(m.Run())
}

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

// TestExpectAnswerNamesTheErrno asks for routes that can and that can't be.
func TestExpectAnswerNamesTheErrno(t *testing.T) {
	for flags, want := range map[uint16]unix.Errno{unix.NLM_F_ACK | unix.NLM_F_REQUEST: unix.ENODEV, unix.NLM_F_REQUEST: unix.EAGAIN, 0: 0} {
		p := noop()
		s := p.NewSlot()
		p.Call("open netlink", unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE).Into(s)
		message := struct {
			h unix.NlMsghdr
			i unix.IfInfomsg
		}{unix.NlMsghdr{Len: 32, Type: unix.RTM_SETLINK, Flags: flags}, unix.IfInfomsg{Index: 999}}
		if flags == 0 { // the control: lo is there
			message.h.Flags, message.i.Index = unix.NLM_F_ACK|unix.NLM_F_REQUEST, 1
		} else if want == unix.EAGAIN {
			message.i.Index = 1
		}
		p.Call("ask", unix.SYS_SENDTO, s, Put(p, message), 32, 0, 0, 0)
		p.ExpectAnswer("answer", s)
		in, err := Start(Config{Namespaces: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET, Program: p})
		if err == nil {
			in.Kill()
		}
		var se *StepError
		if want == 0 && err != nil || want != 0 && (!errors.As(err, &se) || se.Step != "answer" || se.Errno != want) {
			t.Errorf("flags %#x: got %v, want %v", flags, err, want)
		}
	}
}

// TestSocketIsOfTheNamespace makes sockets in a namespace whose loopback is
// down, where ours is up.
func TestSocketIsOfTheNamespace(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	to := &unix.SockaddrInet4{Port: l.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
	for flag, want := range map[uintptr]error{unix.CLONE_NEWNET: unix.ENETUNREACH, 0: nil} {
		in, err := Start(Config{Namespaces: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | flag, Program: noop()})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			f, err := in.Socket(unix.AF_INET)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Connect(int(f.Fd()), to); !errors.Is(err, want) {
				t.Errorf("flag %#x: got %v, want %v", flag, err, want)
			}
			f.Close()
		}
		if _, err := in.Socket(4711); !errors.Is(err, unix.EAFNOSUPPORT) {
			t.Errorf("got %v, want EAFNOSUPPORT", err)
		}
		if fds, err := os.ReadDir("/proc/" + strconv.Itoa(in.PID()) + "/fd"); err != nil || len(fds) > 5 {
			t.Errorf("PID 1 has %d descriptors, %v", len(fds), err)
		}
		in.Kill()
		if _, err := in.Socket(unix.AF_INET); err == nil {
			t.Error("a socket after the end")
		}
	}
}

// TestChildHasNoMemoryOfOurs looks for a variable and for an object of the
// heap where the child has its memory; with the control that they are found
// where we have ours.
func TestChildHasNoMemoryOfOurs(t *testing.T) {
	secret := new([64]byte)
	in := startTest(t, noop())
	for name, p := range map[string]uintptr{"variable": reflect.ValueOf(&variable).Pointer(), "object": reflect.ValueOf(secret).Pointer()} {
		if !mapped(t, "self", p) {
			t.Errorf("%s: not found in our own memory", name)
		}
		if mapped(t, strconv.Itoa(in.PID()), p) {
			t.Errorf("%s: the child has it", name)
		}
	}
	runtime.KeepAlive(secret)
}

var variable = []byte("a variable")

// TestChildIsOurs wants no process between us and the child, whichever way it
// was forked: it is to die with us, and nothing else is to be left.
func TestChildIsOurs(t *testing.T) {
	in := startTest(t, noop())
	status, err := os.ReadFile("/proc/" + strconv.Itoa(in.PID()) + "/status")
	if want := "\nPPid:\t" + strconv.Itoa(os.Getpid()) + "\n"; err != nil || !strings.Contains(string(status), want) {
		t.Errorf("got %q, %v; want %q in it", status, err, want)
	}
	in.Kill()
	if pid, err := unix.Wait4(-1, nil, unix.WALL|unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a child is left: %d, %v", pid, err)
	}
}

// mapped reports whether a process has something at an address.
func mapped(t *testing.T, pid string, p uintptr) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/maps")
	if err != nil || len(text) == 0 {
		t.Fatalf("got %q, %v", text, err)
	}
	for line := range strings.Lines(string(text)) {
		e, _, ok := parseMapping(line)
		if !ok {
			t.Fatalf("not understood: %q", line)
		}
		if e.start <= p && p < e.end {
			return true
		}
	}
	return false
}

func TestMappingsAreRead(t *testing.T) {
	for line, want := range map[string]extent{
		"55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0                          [heap]\n": {0x55d0c8a00000, 0x55d0c8a21000},
		"00400000-00642000 r-xp 00000000 08:01 131 /usr/bin/x y\n":                          {0x400000, 0x642000},
	} {
		if got, _, ok := parseMapping(line); !ok || got != want {
			t.Errorf("%q: got %x, %v", line, got, ok)
		}
	}
	for _, line := range []string{"", "\n", "1-2", "1-2 rw", "x-2 rw-p 0", "1- rw-p 0", "12 rw-p 0"} {
		if got, _, ok := parseMapping(line); ok {
			t.Errorf("%q: got %x", line, got)
		}
	}
}

// TestFirstCommandNeedsNoRequest starts a command along with the child, and
// then another one.
func TestFirstCommandNeedsNoRequest(t *testing.T) {
	r, w := pipe(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	echo := func(word string) Command {
		return Command{Paths: []string{"/bin/sh"}, Args: []string{"sh", "-c", "echo " + word}, Dir: "/", Stdio: [3]*os.File{null, w, w}}
	}
	first := echo("first")
	in, err := Start(Config{Namespaces: unix.CLONE_NEWPID | unix.CLONE_NEWUSER, Program: noop(), First: &first})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Kill()
	if pid, err := in.First(); err != nil || pid < 2 {
		t.Fatalf("first: got %d, %v", pid, err)
	}
	buf := make([]byte, 6)
	if _, err := io.ReadFull(r, buf); err != nil || string(buf) != "first\n" {
		t.Fatalf("got %q, %v", buf, err)
	}
	if _, err := in.Run(echo("then")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, buf[:5]); err != nil || string(buf[:5]) != "then\n" {
		t.Fatalf("got %q, %v", buf, err)
	}
}

func TestFirstCommandMayBeAbsent(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	in, err := Start(Config{Namespaces: unix.CLONE_NEWPID | unix.CLONE_NEWUSER, Program: noop(),
		First: &Command{Paths: []string{"/nonexistent"}, Args: []string{"x"}, Dir: "/", Stdio: [3]*os.File{null, null, null}}})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Kill()
	if _, err := in.First(); !errors.Is(err, unix.ENOENT) {
		t.Fatalf("got %v, want ENOENT", err)
	}
}

// TestProgramThatIsTooLarge fails when it is started, not while it is made.
func TestProgramThatIsTooLarge(t *testing.T) {
	p := noop()
	for range dataSize/pageSize + 1 {
		p.Call("too much", unix.SYS_GETPID, make([]byte, pageSize))
	}
	if _, err := Start(Config{Namespaces: unix.CLONE_NEWUSER, Program: p}); !errors.Is(err, unix.E2BIG) {
		t.Fatalf("got %v, want E2BIG", err)
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
	testenv.Receive(t, "the end of whoever holds the pipe", eof)
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
