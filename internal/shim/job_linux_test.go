package shim

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestConsumerGoesAway shows that a command ends when nobody takes its output
// any more, whatever that goes through.
func TestConsumerGoesAway(t *testing.T) {
	r := newRig(t)
	r.human.set(always(bawn.Allow))
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ends := map[string][2]*os.File{"pipe": {pr, pw}, "socket": {os.NewFile(uintptr(pair[1]), "in"), os.NewFile(uintptr(pair[0]), "out")}}
	for name, end := range ends {
		cmd := r.shell("sh", "-c", "yes; echo after >>ended")
		cmd.Stdout = end[1]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		end[1].Close()
		if _, err := io.ReadFull(end[0], make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		if exists(r, "ended") {
			t.Fatalf("%s: control: it ended before", name)
		}
		end[0].Close()
		testenv.Until(t, "the end of "+name, func() bool { return exists(r, "ended") })
		_ = cmd.Wait()
		os.Remove(filepath.Join(r.dir, "ended"))
	}
}

// TestOutputGoesThrough moves a lot both ways through each sort of descriptor.
func TestOutputGoesThrough(t *testing.T) {
	r := newRig(t)
	data := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16) // 1 MiB
	in, out := filepath.Join(r.dir, "in"), filepath.Join(r.dir, "out")
	if err := os.WriteFile(in, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := r.shell("sh", "-c", "cat")
	cmd.Stdin = bytes.NewReader(data)
	if res := finish(t, cmd, ""); res.Out != string(data) {
		t.Errorf("pipes: %d bytes of %d", len(res.Out), len(data))
	}
	cmd = r.shell("sh", "-c", "cat")
	from, err := os.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	to, err := os.OpenFile(out, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout = from, to
	finish(t, cmd, "")
	if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, data) {
		t.Errorf("files: %d bytes of %d, %v", len(got), len(data), err)
	}
}

// TestOrder shows that output and errors that go to one file stay in order.
func TestOrder(t *testing.T) {
	r := newRig(t)
	out, err := os.OpenFile(filepath.Join(r.dir, "out"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd := r.shell("bash", "-c", "for i in 1 2 3 4 5 6 7 8; do echo out; echo err >&2; done")
	cmd.Stdout, cmd.Stderr = out, out
	finish(t, cmd, "")
	if got, _ := os.ReadFile(out.Name()); string(got) != strings.Repeat("out\nerr\n", 8) {
		t.Errorf("got %q", got)
	}
}

// TestRestOfFile shows that what a command has not read of a file is there for
// the next one.
func TestRestOfFile(t *testing.T) {
	r := newRig(t)
	name := filepath.Join(r.dir, "in")
	if err := os.WriteFile(name, []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<one>\n", "<two>\n"} {
		cmd := r.shell("sh", "-c", "read x; echo \"<$x>\"")
		cmd.Stdin = f
		if res := finish(t, cmd, ""); res.Out != want {
			t.Errorf("got %+v, want %q", res, want)
		}
	}
	if rest, _ := io.ReadAll(f); string(rest) != "three\n" {
		t.Errorf("left is %q", rest)
	}
}

// TestLeftRunning shows that a command ends although it has left something
// running, and that the output of that still comes.
func TestLeftRunning(t *testing.T) {
	r := newRig(t)
	gate := filepath.Join(r.dir, "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	out, in := os.NewFile(uintptr(pair[0]), "out"), os.NewFile(uintptr(pair[1]), "in")
	cmd := r.shell("sh", "-c", "(read x <gate; echo later) & echo now")
	cmd.Stdout = out
	if err := cmd.Run(); err != nil { // before the gate opens
		t.Fatal(err)
	}
	out.Close()
	if err := os.WriteFile(gate, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(in); string(got) != "now\nlater\n" {
		t.Errorf("got %q", got)
	}
}

// TestSignals shows that a command is told of signals, and that the shim ends
// as it does.
func TestSignals(t *testing.T) {
	r := newRig(t)
	r.human.set(always(bawn.Allow))
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGQUIT} {
		if status, _ := r.signalled(sig, "exec sleep 60", 0); status.Signal() != sig {
			t.Errorf("%v: %v", sig, status)
		}
		text := fmt.Sprintf("trap 'echo caught; exit 3' %d; echo ready >ready; while :; do sleep 0.01; done", int(sig))
		if !heard(func(pause time.Duration) bool {
			status, out := r.signalled(sig, text, pause)
			return status.ExitStatus() == 3 && strings.HasPrefix(out, "caught\n")
		}) {
			t.Errorf("%v is never caught", sig)
		}
	}
}

// TestIgnoredSignals shows that a signal that the shim was started to ignore is
// ignored by the shim, as by any shell (nohup(1)).
func TestIgnoredSignals(t *testing.T) {
	r := newRig(t)
	r.human.set(always(bawn.Allow))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		trap string
		want bool
	}{{"trap '' HUP; ", true}, {"", false}} { // the second is the control
		cmd := exec.CommandContext(testenv.Context(t), "bash", "-c", tt.trap+`exec -a sh "$0" -c 'echo ready; read line; exit 7'`, self)
		cmd.Env, cmd.Dir = r.environ, r.dir
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadFull(out, make([]byte, len("ready\n")))
		_ = cmd.Process.Signal(syscall.SIGHUP)
		if !tt.want {
			_ = cmd.Wait() // nothing is said to it
		}
		_, _ = io.WriteString(in, "on\n")
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode() == 7; got != tt.want {
			t.Errorf("%q: %v", tt.trap, cmd.ProcessState)
		}
	}
}

// heard tries what needs a shim to have heard that its command runs, which can't be
// seen from outside: a signal that comes before that is for the shim itself. Each
// try waits longer.
func heard(try func(pause time.Duration) bool) bool {
	for pause := 5 * time.Millisecond; pause < 2*time.Second; pause *= 3 {
		if try(pause) {
			return true
		}
	}
	return false
}

// signalled starts a command, sends it a signal once it runs, and returns how it
// ends. Bash drops a signal that comes just before it becomes another program:
// then it is sent again.
func (r *rig) signalled(sig syscall.Signal, text string, pause time.Duration) (syscall.WaitStatus, string) {
	r.t.Helper()
	os.Remove(filepath.Join(r.dir, "ready"))
	cmd := r.shell("bash", "-c", "echo ready >ready; "+text)
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	testenv.Until(r.t, "the command", func() bool { return exists(r, "ready") })
	time.Sleep(pause)
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		_ = cmd.Process.Signal(sig) // it may have ended
		select {
		case <-done:
			return cmd.ProcessState.Sys().(syscall.WaitStatus), out.String()
		case <-time.After(time.Second):
		}
	}
}

// TestKilled shows that a shim that is killed takes its command with it.
func TestKilled(t *testing.T) {
	r := newRig(t)
	r.human.set(always(bawn.Allow))
	cmd := r.shell("bash", "-c", "echo $$ >pid; sleep 60; echo x >survived")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	testenv.Until(t, "the command", func() bool {
		b, _ := os.ReadFile(filepath.Join(r.dir, "pid"))
		_, err := fmt.Sscan(string(b), &pid)
		return err == nil
	})
	if unix.Kill(pid, 0) != nil {
		t.Fatal("control: it does not run")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	testenv.Until(t, "the command's end", func() bool { return unix.Kill(pid, 0) != nil })
}

// TestStopAndContinue shows that the shim stops with its command.
func TestStopAndContinue(t *testing.T) {
	r := newRig(t)
	r.human.set(always(bawn.Allow))
	cmd := r.shell("bash", "-c", "kill -STOP $$; echo continued")
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ws unix.WaitStatus
	if _, err := unix.Wait4(cmd.Process.Pid, &ws, unix.WUNTRACED, nil); err != nil || !ws.Stopped() {
		t.Fatalf("got %v, %v; want a stop", ws, err)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || out.String() != "continued\n" {
		t.Errorf("got %q, %v", &out, err)
	}
}

// TestConversation drives one shell statement by statement, as agents do that
// keep one.
func TestConversation(t *testing.T) {
	r := newRig(t)
	if err := os.Mkdir(filepath.Join(r.dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"pipe", "socket"} {
		t.Run(kind, func(t *testing.T) {
			cmd := r.shell("bash")
			in, out := ends(t, cmd, kind)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			say := func(text, want string) {
				t.Helper()
				if _, err := io.WriteString(in, text); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(want))
				if _, err := io.ReadFull(out, got); err != nil || string(got) != want {
					t.Errorf("%q says %q, %v; want %q", text, got, err, want)
				}
			}
			say("cd dir; export A=1\n", "")
			say("pwd; echo $A\n", filepath.Join(r.dir, "dir")+"\n1\n")
			judged := r.judges("(exit 7)")
			say("(exit 7)\n", "")
			judged() // what comes next is a text of its own
			say("echo code $?\n", "code 7\n")
			say("for i in 1 2\ndo echo $i\ndone\n", "1\n2\n")
			say("cat <<E\nbody\nE\n", "body\n")
			say("x=1\necho $x\n", "1\n") // at once
			judged = r.judges("rm -rf /")
			say("rm -rf /; echo never\n", "")
			judged() // or what comes next is refused along with it
			say("echo still here $?\n", "still here 126\n")
			if kind == "pipe" {
				say("read v\nthe value\n", "")
			}
			// What a file sets unseen is not what the next text was judged with.
			vars := "export MINE=1 PATH=" + r.dir + ":$PATH\ngit() { echo evil; }\nexport -f git\n"
			if err := os.WriteFile(filepath.Join(r.dir, "dir/vars"), []byte(vars), 0o600); err != nil {
				t.Fatal(err)
			}
			r.human.set(always(bawn.Allow))
			say(". ./vars; type -t git\n", "function\n") // the control
			r.human.set(always(bawn.Deny))
			say("type -t git; echo $MINE\n", "file\n1\n")
			say("echo ${PATH%%:*}\n", "/usr/local/bin\n")
			r.human.set(always(bawn.Allow))
			say(". ./vars; echo ${PATH%%:*} # PATH\n", r.dir+"\n") // the control: read, and not set, by the text
			say("export OWN=1 PATH=/bin:/usr/bin; echo set\n", "set\n")
			r.human.set(always(bawn.Deny))
			say("echo ${PATH%%:*} $OWN\n", "/bin 1\n") // what the text has set, and a human allowed, is kept
			r.human.set(always(bawn.Allow))
			say(". ./vars; echo ${PATH%%:*} # PATH\n", r.dir+"\n")
			r.human.set(always(bawn.Deny))
			say("echo ${PATH%%:*}\n", "/bin\n")
			say("exit 5\n", "")
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 5 {
				t.Errorf("it ended with %d", code)
			}
		})
	}
}

// judges returns what waits until the guard has been asked, from now on, about a
// line with text in it.
func (r *rig) judges(text string) (wait func()) {
	before := len(r.log.all())
	return func() {
		r.t.Helper()
		testenv.Until(r.t, "a decision about "+text, func() bool {
			return slices.ContainsFunc(r.log.all()[before:], func(e bawn.Event) bool { return strings.Contains(e.Resource, text) })
		})
	}
}

// ends makes pipes or socket pairs for a command's input and output.
func ends(t *testing.T, cmd *exec.Cmd, kind string) (in io.Writer, out io.Reader) {
	t.Helper()
	if kind == "pipe" {
		w, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		r, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		return w, r
	}
	var files [2]*os.File
	for i := range files {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.SetNonblock(pair[0], true); err != nil { // for the deadline
			t.Fatal(err)
		}
		ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
		if err := ours.SetDeadline(time.Now().Add(testenv.Patience(t, time.Minute))); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ours.Close(); theirs.Close() })
		files[i] = ours
		if i == 0 {
			cmd.Stdin = theirs
		} else {
			cmd.Stdout = theirs
		}
	}
	return files[0], files[1]
}

// A screen is what a terminal shows.
type screen struct {
	t    *testing.T
	file *os.File
	mu   sync.Mutex
	text strings.Builder
}

func watchScreen(t *testing.T, f *os.File) *screen {
	s := &screen{t: t, file: f}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *screen) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// wait waits until the text is shown after what was shown before.
func (s *screen) wait(text string) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Logf("shown is %q", s.shown())
		}
	}()
	testenv.Until(s.t, fmt.Sprintf("%q", text), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, rest, found := strings.Cut(s.text.String(), text)
		if found {
			s.text.Reset()
			s.text.WriteString(rest)
		}
		return found
	})
}

// waitRaw waits until the keys are the command's: a key that interrupts is the
// shim's until then.
func (s *screen) waitRaw() {
	s.t.Helper()
	testenv.Until(s.t, "a command with the terminal", func() bool {
		now, err := unix.IoctlGetTermios(int(s.file.Fd()), getSettings)
		return err == nil && now.Lflag&unix.ISIG == 0
	})
}

func (s *screen) keys(text string) {
	s.t.Helper()
	if _, err := s.file.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// onTerminal starts the shim on a terminal of its own.
func (r *rig) onTerminal(t *testing.T, argv ...string) (*exec.Cmd, *screen) {
	t.Helper()
	r.human.set(always(bawn.Allow))
	cmd := r.shell(argv...)
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 33, Cols: 111})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); master.Close() })
	return cmd, watchScreen(t, master)
}

// TestTerminal shows that a command has a terminal, which is not the guest's,
// and that its keys do what they do.
func TestTerminal(t *testing.T) {
	r := newRig(t)
	cmd, s := r.onTerminal(t, "bash", "-c", `tty; stty size; echo ready; read x; echo "<$x>"
		until [ "$(stty size)" = "44 99" ]; do sleep 0.02; done; echo larger
		trap 'echo interrupted; over=1' INT; echo waits; until [ "$over" ]; do sleep 0.02; done; exit 4`)
	s.wait("/dev/pts/")
	s.wait("33 111\r\n")
	s.wait("ready\r\n")
	s.keys("typed\r")
	s.wait("typed\r\n<typed>\r\n") // echoed once
	s.waitRaw()
	if err := pty.Setsize(s.file, &pty.Winsize{Rows: 44, Cols: 99}); err != nil {
		t.Fatal(err)
	}
	s.wait("larger\r\n")
	s.wait("waits\r\n")
	s.keys("\x03")
	s.wait("interrupted\r\n")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 4 {
		t.Errorf("it ended with %d", code)
	}
}

// TestInteractive drives a shell that prompts.
func TestInteractive(t *testing.T) {
	r := newRig(t)
	cmd, s := r.onTerminal(t, "bash")
	s.wait("(bawn) $ ")
	s.keys("echo $((6*7))\r")
	s.wait("42\r\n(bawn) $ ")
	s.keys("for i in 1 2\r")
	s.wait("> ")
	s.keys("do echo $i-; done\r")
	s.wait("1-\r\n2-\r\n(bawn) $ ")
	s.keys("echo 'abc\r")
	s.wait("> ")
	s.keys("\x03")
	s.wait("$ ")
	s.keys("echo s''leeps; sleep 60\r")
	s.wait("sleeps\r\n")
	s.waitRaw()
	s.keys("\x03")
	s.wait("$ ")
	s.keys("if ;\r")
	s.wait("syntax error")
	s.wait("$ ")
	s.keys("cat\r")
	s.waitRaw()
	s.keys("a line\r")
	s.wait("a line\r\na line\r\n")
	s.keys("\x04")
	s.wait("$ ")
	s.keys("exit 3\r")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("it ended with %d", code)
	}
}
