package session_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/testenv"
)

func TestDetach(t *testing.T) {
	h := newHome(t)
	id := h.detach("sh", "-c", `echo hello; stty size; read x; echo "got $x"; exit 3`)
	if !regexp.MustCompile(`^[a-z0-9]{26}$`).MatchString(id) {
		t.Fatalf("the ID is %q", id)
	}
	var s attach.Entry
	testenv.Until(t, "its starter to leave", func() bool { s = h.ps()[id]; return s.ID == id && s.Viewers == 0 })
	if s.State != attach.Running || !s.Hosted || s.Network != "none" || s.Agent != "sh" {
		t.Fatalf("ps says %+v", s)
	}
	testenv.Until(t, "the greeting in the log", func() bool { return h.bawn(0, "logs", id).out == "hello\n24 80\n" })
	p := h.openTerminal("bawn", "attach", id[:6])
	p.sees("ctrl-], then d leaves it, and it goes on")
	p.sees("24 80")
	p.types("me\r")
	p.sees("got me")
	p.ends(3)
	if got := h.bawn(0, "logs", "--tail", "1", id).out; got != "got me\n" {
		t.Errorf("the log's last line is %q", got)
	}
	if list := h.ps(); len(list) != 0 {
		t.Errorf("ps lists %v", list)
	}
	if s := h.ps("--all")[id]; s.State != attach.Ended || s.Exit == nil || *s.Exit != 3 {
		t.Errorf("ps --all says %+v", s)
	}
	if r := h.bawn(2, "attach", id); !strings.Contains(r.err, "has ended") {
		t.Errorf("attach says %q", r.err)
	}
}

// TestDetachTellsErrors as plain bawn run does, with the same exit code.
func TestDetachTellsErrors(t *testing.T) {
	h := newHome(t)
	for want, args := range map[int][]string{
		127: {"--net", "none", "--", "no-such-program"}, 2: {"--net", "bogus", "--", "true"}, 126: {"--net", "none", "--", "/etc/passwd"},
	} {
		plain := h.bawn(want, append([]string{"run", "-q"}, args...)...)
		r := h.bawn(want, append([]string{"run", "-q", "-d"}, args...)...)
		if r.out != "" || r.err != plain.err {
			t.Errorf("%q says %q and %q, want %q", args, r.out, r.err, plain.err)
		}
	}
	if list := h.ps(); len(list) != 0 {
		t.Errorf("ps lists %v", list)
	}
}

// TestPlainIsListed also where nobody can attach to it, and is gone afterwards.
func TestPlainIsListed(t *testing.T) {
	h := newHome(t)
	p := h.openTerminal("bawn", "run", "-q", "--net", "none", "--", "sh", "-c", "echo ready; read x; exit 4")
	p.sees("ready")
	testenv.Until(t, "the session in the list", func() bool { return len(h.sessions()) > 0 }) // it is entered while its command runs
	list := h.sessions()
	if len(list) != 1 || list[0].Hosted || list[0].PID != p.cmd.Process.Pid {
		t.Fatalf("listed are %+v", list)
	}
	if r := h.bawn(2, "attach", list[0].ID); !strings.Contains(r.err, "belongs to the terminal") {
		t.Errorf("attach says %q", r.err)
	}
	if r := h.bawn(2, "attach"); !strings.Contains(r.err, "no session runs") {
		t.Errorf("attach says %q", r.err)
	}
	p.types("\r")
	p.ends(4)
	if names, err := os.ReadDir(filepath.Join(h.registry, "sessions")); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// TestClosedTerminal: the session goes on without it, and somebody else comes.
func TestClosedTerminal(t *testing.T) {
	h := newHome(t)
	shell := []string{"bawn", "run", "-q", "--net", "none", "--attachable", "--", "sh"}
	p := h.openTerminal(shell...)
	p.sees("$ ")
	p.types("x=kept; echo ready-$((1))\r")
	p.sees("ready-1")
	p.slave.Close()
	p.master.Close() // hangs up
	_ = p.cmd.Wait()
	list := h.sessions()
	if len(list) != 1 || list[0].State != attach.Running {
		t.Fatalf("listed are %+v", list)
	}
	p = h.openTerminal("bawn", "attach")
	p.sees("ready-1")
	p.types("echo $x-$((2)); exit 9\r")
	p.sees("kept-2")
	p.ends(9)
}

// TestClosedTerminalEndsPlain is the control.
func TestClosedTerminalEndsPlain(t *testing.T) {
	h := newHome(t)
	p := h.openTerminal("bawn", "run", "-q", "--net", "none", "--", "sh")
	p.sees("$ ")
	p.slave.Close()
	p.master.Close()
	_ = p.cmd.Wait()
	testenv.Until(t, "its end", func() bool { return len(h.sessions()) == 0 })
}

// TestKilledViewer harms nobody.
func TestKilledViewer(t *testing.T) {
	h := newHome(t)
	p := h.openTerminal("bawn", "run", "-q", "--net", "none", "--attachable", "--", "sh")
	p.sees("$ ")
	other := h.openTerminal("bawn", "attach")
	other.sees("$ ")
	p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	other.types("echo on-$((1)); exit 0\r")
	other.sees("on-1")
	other.ends(0)
}

// TestKilledHost: the guest dies with it, viewers learn of it, and ps says so
// once.
func TestKilledHost(t *testing.T) {
	h := newHome(t)
	mark := "7" + strconv.Itoa(os.Getpid()) + "11"
	id := h.detach("sh", "-c", "sleep "+mark+" & echo ready; sleep "+mark)
	testenv.Until(t, "the guest", func() bool { return running("sleep", mark) == 2 })
	p := h.openTerminal("bawn", "attach", id)
	p.sees("ready")
	check(t, syscall.Kill(h.sessions()[0].PID, syscall.SIGKILL))
	p.ends(125)
	p.sees("host is gone")
	testenv.Until(t, "the guest's end", func() bool { return running("sleep", mark) == 0 })
	testenv.Until(t, "its death in the list", func() bool { return h.ps()[id].State == attach.Dead })
	if list := h.ps(); len(list) != 0 {
		t.Errorf("ps lists the dead twice: %+v", list)
	}
	if got := h.bawn(0, "logs", id).out; got != "ready\n" {
		t.Errorf("the log is %q", got)
	}
	if s := h.ps("--all")[id]; s.State != attach.Dead {
		t.Errorf("ps --all says %+v", s)
	}
}

// running counts processes with that command line.
func running(argv ...string) (n int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, l := range lines {
		if text, err := os.ReadFile(l); err == nil && string(text) == strings.Join(argv, "\x00")+"\x00" {
			n++
		}
	}
	return n
}

func TestKill(t *testing.T) {
	h := newHome(t)
	term := h.detach("sh", "-c", `trap "echo bye; exit 6" TERM; echo ready; while :; do sleep 0.02; done`)
	deaf := h.detach("sh", "-c", `trap "" TERM INT; echo ready; while :; do sleep 0.02; done`)
	for _, id := range []string{term, deaf} {
		testenv.Until(t, "being ready", func() bool { return h.bawn(0, "logs", id).out == "ready\n" })
	}
	plain := h.openTerminal("bawn", "run", "-q", "--net", "none", "--", "sh", "-c", `trap "exit 8" INT; echo ready; while :; do sleep 0.02; done`)
	plain.sees("ready")
	var plainID string
	testenv.Until(t, "the plain session", func() bool {
		for id, s := range h.ps() {
			if !s.Hosted {
				plainID = id
			}
		}
		return plainID != ""
	})
	h.bawn(2, "kill")
	h.bawn(2, "kill", "nobody")
	h.bawn(2, "kill", "--signal", "SEGV", term)
	h.bawn(0, "kill", "-s", "sigint", plainID)
	plain.ends(8)
	h.bawn(0, "kill", term)
	if s := h.ps("--all")[term]; s.Exit == nil || *s.Exit != 6 {
		t.Errorf("after TERM: %+v", s)
	}
	if got := h.bawn(0, "logs", term).out; !strings.HasPrefix(got, "ready\n") || !strings.HasSuffix(got, "\nbye\n") {
		t.Errorf("the log is %q", got)
	}
	if r := h.bawn(1, "kill", term); !strings.Contains(r.err, "does not run any more") {
		t.Errorf("killed twice: %q", r.err)
	}
	h.bawn(0, "kill", "--signal", "KILL", deaf)
	if s := h.ps("--all")[deaf]; s.State != attach.Ended || *s.Exit != 128+15 {
		t.Errorf("after KILL: %+v", s)
	}
	h.detach("sleep", "60")
	h.detach("sleep", "60")
	h.bawn(0, "kill", "--all")
	if list := h.ps(); len(list) != 0 {
		t.Errorf("after kill --all: %+v", list)
	}
}

// TestTerminalIsRestored after leaving a session that has set all kinds of modes,
// and after its end.
func TestTerminalIsRestored(t *testing.T) {
	h := newHome(t)
	id := h.detach("sh", "-c", `stty raw -echo; printf '\033[?1049h\033[?25l\033[?1002;1006h\033[?2004h\033[>1u\033='; echo ready; read x; exit 5`)
	for _, leave := range []func(*person){(*person).detaches, func(p *person) { p.types("\n"); p.ends(5) }} {
		p := h.openTerminal("bawn", "attach", id)
		p.sees("ready")
		leave(p)
		after, err := unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
		check(t, err)
		if *p.before != *after {
			t.Errorf("the terminal was %+v and is %+v", p.before, after)
		}
		p.sees("\x1b[<1u\x1b>\x1b[?25h\x1b[?1002l\x1b[?1006l\x1b[?2004l\x1b[0m\x1b[?1049l")
	}
}

// TestReadOnly looks on, and Ctrl-C leaves.
func TestReadOnly(t *testing.T) {
	h := newHome(t)
	id := h.detach("sh")
	p := h.openTerminal("bawn", "attach", "--read-only", id)
	p.sees("$ ")
	p.types("echo typed-$((1))\r")
	w := h.openTerminal("bawn", "attach", id)
	w.sees("$ ")
	w.types("echo control-$((1))\r")
	w.sees("control-1")
	p.sees("control-1")
	if strings.Contains(w.screen(), "typed-1") {
		t.Error("who may only look has typed")
	}
	p.types("\x03")
	p.ends(0)
	w.detaches()
}

// TestKeysOfOthers: Ctrl-C is the guest's, and the detach keys are one's own.
func TestKeys(t *testing.T) {
	h := newHome(t)
	id := h.detach("sh", "-c", `trap 'echo interrupted' INT; echo ready; while :; do read x && echo "got $x" | od -c; done`)
	p := h.openTerminal("bawn", "attach", "--detach-keys", "ctrl-p,ctrl-q", id)
	p.sees("ready")
	p.types("\x03")
	p.sees("interrupted")
	p.types("a\x1ddb\r")
	p.sees("035   d   b")
	p.types("\x10x\r")
	p.sees("020   x")
	p.types("\x10\x11")
	p.ends(0)
	h.bawn(2, "attach", "--detach-keys", "q", id)
}

// TestResize follows the terminal of who looks.
func TestResize(t *testing.T) {
	h := newHome(t)
	id := h.detach("sh", "-c", `trap 'stty size' WINCH; stty size; while :; do sleep 0.02; done`)
	p := h.openTerminal("bawn", "attach", id)
	p.sees("20 70")
	check(t, unix.IoctlSetWinsize(int(p.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 99}))
	p.sees("33 99")
}

// TestPipes: without a terminal --attachable changes nothing.
func TestPipes(t *testing.T) {
	h := newHome(t)
	r := h.run("sh", "-c", `echo in | bawn run -q --net none --attachable -- sh -c 'cat; echo err >&2; test -t 1 || echo pipe; exit 7' | cat; exit 0`)
	if r.out != "in\npipe\n" || r.err != "err\n" {
		t.Errorf("got %q and %q", r.out, r.err)
	}
	if r := h.bawn(7, "run", "-q", "--net", "none", "--attachable", "--", "sh", "-c", "exit 7"); r.out+r.err != "" {
		t.Errorf("got %q and %q", r.out, r.err)
	}
}

// TestDescriptors: a hosted guest inherits what a plain one does, and no more.
func TestDescriptors(t *testing.T) {
	h := newHome(t)
	id := h.detach("sh", "-c", "ls -l /proc/self/fd | awk '{print $9, $11}'; tty")
	testenv.Until(t, "its end", func() bool { return h.ps("-a")[id].State == attach.Ended })
	lines := strings.Fields(h.bawn(0, "logs", id).out)
	for i, word := range lines {
		if n, err := strconv.Atoi(word); err == nil && n > 2 && !(n == 3 && strings.HasPrefix(lines[i+1], "/proc/")) {
			t.Errorf("the guest has descriptor %d: %q", n, lines)
		}
	}
	if !slices.Contains(lines, "2") || strings.Contains(strings.Join(lines, " "), "socket:") {
		t.Errorf("the guest has %q", lines)
	}
}

func TestAmbiguous(t *testing.T) {
	h := newHome(t)
	a, b := h.detach("sleep", "60"), h.detach("sleep", "60")
	for _, args := range [][]string{{"attach"}, {"logs"}} {
		if r := h.bawn(2, args...); !strings.Contains(r.err, a) || !strings.Contains(r.err, b) {
			t.Errorf("%q says %q", args, r.err)
		}
	}
	out := h.bawn(0, "ps", "-q").out
	if out != a+"\n"+b+"\n" {
		t.Errorf("ps -q says %q", out)
	}
	for _, verb := range []string{"attach", "logs", "kill"} {
		if r := h.bawn(0, "__complete", verb, ""); !strings.Contains(r.out, a) {
			t.Errorf("%s completes %q", verb, r.out)
		}
	}
}

// TestLogsAreVisible: what a guest wrote acts on no terminal behind a pipe.
func TestLogsAreVisible(t *testing.T) {
	h := newHome(t)
	id := h.detach("printf", `\033[31mred\033[0m\tx\n\033]0;title\007\302\233\n`)
	testenv.Until(t, "its end", func() bool { return h.ps("-a")[id].State == attach.Ended })
	if got, want := h.bawn(0, "logs", "-f", id).out, "\\x1b[31mred\\x1b[0m\tx\n\\x1b]0;title\\x07\\u009b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p := h.openTerminal("bawn", "logs", id)
	p.ends(0)
	p.sees("\x1b[31mred")
}
