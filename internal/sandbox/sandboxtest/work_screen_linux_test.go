package sandboxtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// patience is how long a terminal is watched for what must come.
const patience = 30 * time.Second

// A screen is a user's terminal with one program on it.
type screen struct {
	t           *testing.T
	master, tty *os.File
	cmd         *exec.Cmd
	ended       chan error
	before      unix.Termios

	mu   sync.Mutex
	text bytes.Buffer
	seen int // how much of text has been expected
}

// newScreen starts argv as the leader of a session on a new terminal of 24
// lines and 80 columns.
func newScreen(t *testing.T, dir string, env []string, argv ...string) *screen {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, master: closable(t, master), tty: tty, ended: make(chan error, 1)}
	s.resize(24, 80)
	s.before = s.settings()
	go s.read()
	s.cmd = exec.Command(argv[0], argv[1:]...)
	s.cmd.Dir, s.cmd.Env = dir, env
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = tty, tty, tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(s.close)
	return s
}

// closable returns the file anew, in such a way that closing it hangs the
// terminal up even while somebody reads.
func closable(t *testing.T, f *os.File) *os.File {
	t.Helper()
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), f.Name())
}

func (s *screen) close() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGHUP)
	s.master.Close()
	s.tty.Close()
	select {
	case <-s.ended:
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
	}
	if s.t.Failed() {
		s.t.Logf("the terminal showed:\n%q", s.all())
	}
}

func (s *screen) read() {
	buf := make([]byte, 1<<16)
	for {
		n, err := s.master.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// all is everything that was shown.
func (s *screen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// expect waits for an expression after what was expected before, and returns
// its match and groups.
func (s *screen) expect(expression string) []string {
	s.t.Helper()
	groups := s.await(expression, patience)
	if groups == nil {
		s.t.Fatalf("the terminal never showed %q; after what was expected it showed %q; its processes:\n%s", expression, s.all()[s.seen:], below(s.cmd.Process.Pid))
	}
	return groups
}

// below says what a process and those below it wait for: names, states and system calls
// (proc_pid_stat(5), proc_pid_syscall(5)), as far as they may be read.
func below(top int) string {
	parents, lines := map[string]string{}, map[string]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		name, rest, ok := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); err == nil && ok && len(fields) > 1 {
			dir := filepath.Dir(file)
			call, _ := os.ReadFile(filepath.Join(dir, "syscall"))
			wait, _ := os.ReadFile(filepath.Join(dir, "wchan"))
			pid := filepath.Base(dir)
			parents[pid], lines[pid] = fields[1], fmt.Sprintf("%s) %s in %s: %s\n", name, fields[0], wait, strings.TrimSpace(string(call)))
		}
	}
	var b strings.Builder
	for pid := range lines {
		for p := pid; p != ""; p = parents[p] {
			if p == strconv.Itoa(top) {
				b.WriteString(lines[pid])
				break
			}
		}
	}
	return b.String()
}

// await is expect for so long, and returns nil where nothing comes.
func (s *screen) await(expression string, patience time.Duration) []string {
	re := regexp.MustCompile(expression)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		text := s.all()[s.seen:]
		if at := re.FindStringIndex(text); at != nil {
			groups := re.FindStringSubmatch(text)
			s.seen += at[1]
			return groups
		}
	}
	return nil
}

// sendUntil presses keys each second, as somebody does who sees no effect,
// until an expression is shown.
func (s *screen) sendUntil(keys, expression string) {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		s.send(keys)
		if s.await(expression, time.Second) != nil {
			return
		}
	}
	s.t.Fatalf("the terminal never showed %q; after what was expected it showed %q", expression, s.all()[s.seen:])
}

// sendUntilEnd presses keys each second until the program ends, and wants an exit
// code: bash forgets a signal that comes as one of its commands ends.
func (s *screen) sendUntilEnd(keys string, code int) {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		s.send(keys)
		select {
		case err := <-s.ended:
			s.ended <- err
			s.mustEnd(code)
			return
		case <-time.After(time.Second):
		}
	}
	s.mustEnd(code)
}

func (s *screen) send(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) resize(rows, cols uint16) {
	s.t.Helper()
	if err := unix.IoctlSetWinsize(int(s.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		s.t.Fatal(err)
	}
}

// resizeUntil resizes again and again until the expression is shown, each time from
// a row more: bash and dash forget a signal that comes while a trap runs.
func (s *screen) resizeUntil(rows, cols uint16, expression string) {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); s.resize(rows+1, cols) {
		s.resize(rows, cols)
		if s.await(expression, time.Second) != nil {
			return
		}
	}
	s.expect(expression)
}

func (s *screen) settings() unix.Termios {
	s.t.Helper()
	got, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return *got
}

// wait waits for the program's end and returns its exit code.
func (s *screen) wait() int {
	s.t.Helper()
	select {
	case err := <-s.ended:
		s.ended <- err
		code, err := exitCode(context.Background(), err)
		if err != nil {
			s.t.Fatal(err)
		}
		return code
	case <-time.After(patience):
		s.t.Fatalf("still running; the terminal showed %q", s.all())
		return -1
	}
}

// mustEnd wants an exit code and the terminal's settings as they were.
func (s *screen) mustEnd(code int) {
	s.t.Helper()
	if got := s.wait(); got != code {
		s.t.Errorf("exit code %d, want %d", got, code)
	}
	s.mustBeRestored()
}

func (s *screen) mustBeRestored() {
	s.t.Helper()
	if got := s.settings(); got != s.before {
		s.t.Errorf("the terminal's settings are %+v, were %+v", got, s.before)
	}
}

// mustShow wants everything shown so far to contain text so many times.
func (s *screen) mustShow(text string, times int) {
	s.t.Helper()
	if got := strings.Count(s.all(), text); got != times {
		s.t.Errorf("%q was shown %d times, want %d", text, got, times)
	}
}
