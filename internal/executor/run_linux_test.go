package executor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

func TestOutputExitCodesAndSignals(t *testing.T) {
	l := start(t)
	for text, want := range map[string]struct {
		out  string
		code int
		sig  syscall.Signal
	}{
		"echo out; echo err >&2":   {"out\nerr\n", 0, -1},
		"exit 7":                   {"", 7, -1},
		"kill -9 $$":               {"", -1, syscall.SIGKILL},
		"cat":                      {"", 0, -1}, // /dev/null
		"pwd; echo $LANG; env":     {"/\nC\nPWD=/\nPATH=/usr/bin:/bin\nLANG=C\n", 0, -1},
		"readlink /proc/self/fd/0": {"/dev/null\n", 0, -1},
	} {
		out, end := l.run(t, command("/bin/dash", "-c", text))
		if !slices.Equal(sorted(out), sorted(want.out)) || end.Status.ExitStatus() != want.code || end.Status.Signal() != want.sig {
			t.Errorf("%q: got %q, %d, %v", text, out, end.Status.ExitStatus(), end.Status.Signal())
		}
	}
}

func sorted(text string) []string {
	list := lines(text)
	slices.Sort(list)
	return list
}

// TestManyShortCommands: no status is lost, however quick the end.
func TestManyShortCommands(t *testing.T) {
	l := start(t)
	results := make(chan error)
	const each, at = 25, 8
	for range at {
		go func() {
			var err error
			for i := range each {
				p, derr := l.Do(testenv.Context(t), l.signed(t, command("/bin/sh", "-c", fmt.Sprint("exit ", i))), [3]*os.File{})
				if err = errors.Join(err, derr); derr != nil {
					break
				}
				if end := last(t, p); end.Status.ExitStatus() != i {
					err = errors.Join(err, fmt.Errorf("got %v, want %d", end, i))
				}
			}
			results <- err
		}()
	}
	for range at {
		if err := testenv.Receive(t, "a result", results); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatCantBeStarted(t *testing.T) {
	l := start(t)
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/", link); err != nil {
		t.Fatal(err)
	}
	in := func(dir, path string, argv ...string) Do {
		return Do{Argv: argv, Dir: dir, Env: []string{"PATH=" + path}}
	}
	for name, tt := range map[string]struct {
		do     Do
		errno  syscall.Errno
		absent bool
	}{
		"absent":          {in("/", "/usr/bin", "no-such-program"), unix.ENOENT, true},
		"absent, by path": {in("/", "/usr/bin", "/no/such"), unix.ENOENT, true},
		"not executable":  {in("/", dir, "plain"), unix.EACCES, false},
		"a directory":     {in("/", "/", "/usr"), unix.EACCES, false},
		"no such place":   {in(dir+"/none", "/usr/bin", "true"), unix.ENOENT, true},
		"by a link":       {in(link, "/usr/bin", "true"), unix.ELOOP, false},
		"no PATH has it":  {in("/", "", "true"), unix.ENOENT, true},
		"no terminal":     {Do{Argv: []string{"/bin/true"}, Dir: "/", Terminal: true}, unix.ENOTTY, false},
	} {
		var no *StartError
		if err := l.does(t, l.signed(t, tt.do)); !errors.As(err, &no) || no.Errno != tt.errno || no.Absent() != tt.absent || no.Name != tt.do.Argv[0] {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestPathIsOfTheCommand: relative entries start at its directory.
func TestPathIsOfTheCommand(t *testing.T) {
	l := start(t)
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/bin/hello", []byte("#!/bin/sh\necho from $PWD\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []Do{
		{Argv: []string{"hello"}, Dir: dir, Env: []string{"PATH=/none:bin"}},
		{Argv: []string{"hello"}, Dir: dir + "/bin", Env: []string{"PATH="}},
		{Argv: []string{"./hello"}, Dir: dir + "/bin", Env: []string{"PATH=/none"}},
		{Argv: []string{"bin/hello"}, Dir: dir},
	} {
		if out, end := l.run(t, tt); out != "from "+tt.Dir+"\n" || end.Status != 0 {
			t.Errorf("%+v: got %q, %v", tt, out, end)
		}
	}
}

// TestLiveInput: the command reads what its caller writes, as it comes.
func TestLiveInput(t *testing.T) {
	l := start(t)
	inR, inW, _ := os.Pipe()
	outR, outW, _ := os.Pipe()
	defer inW.Close()
	defer outR.Close()
	d := command("cat")
	d.Stdio = [3]bool{true, true, false}
	p, err := l.Do(testenv.Context(t), l.signed(t, d), [3]*os.File{inR, outW})
	inR.Close()
	outW.Close()
	if err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(outR)
	for _, line := range []string{"one\n", "two\n"} {
		_, _ = inW.WriteString(line)
		if got, err := from.ReadString('\n'); got != line {
			t.Errorf("got %q, %v", got, err)
		}
	}
	inW.Close() // nobody else has it: the executor has closed its copies
	if end := last(t, p); end.Status != 0 {
		t.Error(end)
	}
	if rest, err := io.ReadAll(from); err != nil || len(rest) != 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestSignalsReachTheGroup: also what the command has started.
func TestSignalsReachTheGroup(t *testing.T) {
	l := start(t)
	r, w, _ := os.Pipe()
	defer r.Close()
	_ = r.SetReadDeadline(time.Now().Add(20 * time.Second))
	d := command("/bin/sh", "-c", "sleep 100 & echo there; wait; sleep 100")
	d.Stdio[1] = true
	p, err := l.Do(testenv.Context(t), l.signed(t, d), [3]*os.File{1: w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGTERM} {
		if err := p.Signal(sig); err != nil {
			t.Fatal(err)
		}
		ch := testenv.Receive(t, "a change", p.Changes())
		got := map[syscall.Signal]bool{syscall.SIGSTOP: ch.Status.Stopped(), syscall.SIGCONT: ch.Status.Continued(), syscall.SIGTERM: ch.Status.Signal() == syscall.SIGTERM}
		if !got[sig] {
			t.Fatalf("after %v: %v", sig, ch.Status)
		}
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) != 0 { // EOF: the sleep has ended too
		t.Errorf("%q, %v", rest, err)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Errorf("a signal after the end: %v", err)
	}
}

func TestTerminalControls(t *testing.T) {
	l := start(t)
	master, slave := terminal(t)
	defer master.Close()
	d := command("/bin/sh", "-c", "stty -echo; test -w /dev/tty && echo mine; read x; exec sleep 100")
	d.Stdio, d.Terminal = [3]bool{true, true, true}, true
	p, err := l.Do(testenv.Context(t), l.signed(t, d), [3]*os.File{slave, slave, slave})
	slave.Close()
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(master).ReadString('\n'); strings.TrimSpace(line) != "mine" {
		t.Errorf("got %q, %v", line, err)
	}
	_, _ = master.WriteString("x\n\x03") // the terminal makes a signal of it, for its foreground
	if end := last(t, p); end.Status.Signal() != syscall.SIGINT {
		t.Errorf("got %v", end.Status)
	}
}

func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

func TestLimits(t *testing.T) {
	l := start(t)
	text := "ulimit -n; ulimit -Hn; ulimit -f; ulimit -n 4096 2>/dev/null && ulimit -n"
	free, _ := l.run(t, command("/bin/bash", "-c", text))
	d := command("/bin/bash", "-c", text)
	d.Limits = Limits(bawn.Resources{OpenFiles: 50, FileSizeMB: 3})
	out, _ := l.run(t, d)
	if want := "50\n50\n3072\n"; !strings.HasPrefix(out, want) || strings.HasPrefix(free, want) {
		t.Errorf("got %q; without limits %q", out, free)
	}
	if os.Geteuid() != 0 && out != "50\n50\n3072\n" {
		t.Errorf("the command raised its limit: %q", out)
	}
	if out, end := l.run(t, command("/bin/bash", "-c", "ulimit -n 30; ulimit -n")); out != "30\n" || end.Status != 0 {
		t.Errorf("control: a command's own limits: %q, %v", out, end)
	}
}

func TestTimeIsUp(t *testing.T) {
	l := start(t)
	d := command("sleep", "100")
	d.Limits.Timeout = 50 * time.Millisecond
	if _, end := l.run(t, d); end.Status.Signal() != syscall.SIGTERM {
		t.Errorf("got %v", end.Status)
	}
	stubborn := command("/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
	var end Change
	var began time.Time
	for _, limit := range []time.Duration{2 * time.Second, 10 * time.Second} { // its shell sets the trap in this time
		stubborn.Limits.Timeout, began = limit, time.Now()
		if _, end = l.run(t, stubborn); end.Status.Signal() != syscall.SIGTERM {
			break
		}
	}
	if end.Status.Signal() != syscall.SIGKILL || time.Since(began) < killAfter {
		t.Errorf("got %v after %v", end.Status, time.Since(began))
	}
}

// TestOnlyStdioIsInherited: what a caller left open stays outside.
func TestOnlyStdioIsInherited(t *testing.T) {
	l := start(t)
	out, _ := l.run(t, command("/bin/sh", "-c", "ls /proc/$$/fd"))
	if got := strings.Fields(out); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("a command has descriptors %q", got)
	}
	if list, err := os.ReadDir("/proc/self/fd"); err != nil || len(list) < 5 {
		t.Errorf("control: this process has %d", len(list))
	}
}

// TestTheEndTakesAllAlong: orphans in sessions of their own too.
func TestTheEndTakesAllAlong(t *testing.T) {
	l := start(t)
	r, w, _ := os.Pipe()
	defer r.Close()
	d := command("/bin/sh", "-c", "setsid sleep 100 & setsid sh -c 'sleep 100 & sleep 100' & sleep 0.05; echo there")
	d.Stdio[1] = true
	p, err := l.Do(testenv.Context(t), l.signed(t, d), [3]*os.File{1: w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	last(t, p)
	from := bufio.NewReader(r)
	if line, err := from.ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	gone := make(chan error, 1)
	go func() { _, err := from.ReadByte(); gone <- err }()
	select {
	case <-gone:
		t.Fatal("control: the orphans have ended before")
	case <-time.After(50 * time.Millisecond):
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := testenv.Receive(t, "the end of the orphans", gone); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := l.wait(); err != nil {
		t.Errorf("the executor's end: %v", err)
	}
}

// TestNobodyWaitsAnyMore: what was started for a caller that has gone is killed.
func TestNobodyWaitsAnyMore(t *testing.T) {
	l := start(t)
	r, w, _ := os.Pipe()
	defer r.Close()
	_ = r.SetReadDeadline(time.Now().Add(20 * time.Second))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := command("sleep", "100")
	d.Stdio[1] = true
	p, err := l.Do(ctx, l.signed(t, d), [3]*os.File{1: w})
	w.Close()
	if err == nil { // it was quicker
		err = p.Signal(syscall.SIGKILL)
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if rest, rerr := io.ReadAll(r); rerr != nil || len(rest) != 0 {
		t.Errorf("it lives on: %q, %v, %v", rest, rerr, err)
	}
}

// TestTheExecutorIsKilled: every process has an end, and Do errs.
func TestTheExecutorIsKilled(t *testing.T) {
	l := start(t)
	p, err := l.Do(testenv.Context(t), l.signed(t, command("sleep", "100")), [3]*os.File{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(l.pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if end := last(t, p); end.Status.Signal() != syscall.SIGKILL {
		t.Errorf("got %v", end.Status)
	}
	<-l.Done()
	if _, err := l.Do(testenv.Context(t), l.signed(t, command("true")), [3]*os.File{}); !errors.Is(err, ErrGone) {
		t.Errorf("got %v", err)
	}
	if _, err := l.Start(testenv.Context(t), Start{}); !errors.Is(err, ErrGone) {
		t.Errorf("got %v", err)
	}
}
