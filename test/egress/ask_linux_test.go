package egress_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// prompt ends a question.
const prompt = "n/N/?] "

// A terminal is a pseudo-terminal with a session in it, and what has been on its screen.
type terminal struct {
	t    *testing.T
	tty  *os.File
	mu   sync.Mutex
	text string
	done chan struct{} // the session has ended
	code int
}

// openTerminal starts a guest at a terminal.
func (d *account) openTerminal(t *testing.T, flags []string, line string) *terminal {
	t.Helper()
	return d.atTerminal(t, d.insideArgs(t, flags, d.shell(t, line)...)...)
}

// atTerminal starts a command at a terminal.
func (d *account) atTerminal(t *testing.T, argv ...string) *terminal {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := d.command(ctx, argv...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 0
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 250})
	check(t, err)
	s := &terminal{t: t, tty: tty, done: make(chan struct{})}
	t.Cleanup(func() { tty.Close() })
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			s.mu.Lock()
			s.text += string(buf[:n])
			s.mu.Unlock()
			if err != nil { // EIO once nobody has the other side
				return
			}
		}
	}()
	go func() {
		_ = cmd.Wait()
		<-read
		s.code = cmd.ProcessState.ExitCode()
		close(s.done)
	}()
	return s
}

// screen is what has been on it so far.
func (s *terminal) screen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

// see waits for words on the screen.
func (s *terminal) see(words string) {
	s.t.Helper()
	s.within(patience, words)
}

func (s *terminal) within(most time.Duration, words string) {
	s.t.Helper()
	for end := time.Now().Add(most); !strings.Contains(s.screen(), words); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%q is not on the screen:\n%s", words, s.screen())
		}
	}
}

// say types a line, and Enter a moment after the line is on the screen: keys that arrive
// together count as a paste.
func (s *terminal) say(words string) {
	s.t.Helper()
	from := len(s.screen())
	s.presses(words)
	testenv.Until(s.t, strconv.Quote(words), func() bool { return strings.Contains(s.screen()[from:], words) })
	time.Sleep(100 * time.Millisecond)
	s.presses("\n")
}

func (s *terminal) presses(keys string) {
	s.t.Helper()
	_, err := s.tty.WriteString(keys)
	check(s.t, err)
}

// end waits for the end of the session and returns the screen.
func (s *terminal) end() string {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		s.t.Fatalf("the session does not end:\n%s", s.screen())
	}
	return s.screen()
}

const (
	askable = "askable.test:7777"
	askFive = "$PROBE ask 5 " + askable + "; echo then; $PROBE ask 2 " + askable
)

// TestAskYes holds what wants to an unknown host until the human says yes, and
// asks once.
func TestAskYes(t *testing.T) {
	d := newAccount(t)
	m := d.now(t)
	s := d.openTerminal(t, []string{"--ask-timeout", "30s"}, askFive)
	s.see(prompt)
	if !strings.Contains(s.screen(), "connect to "+askable) {
		t.Errorf("the question does not say what it is about:\n%s", s.screen())
	}
	time.Sleep(300 * time.Millisecond)
	if seen, asked := d.since(t, m), d.questions(t, m); len(seen)+len(asked) > 0 {
		t.Errorf("before the answer %v and %q are outside", seen, asked)
	}
	s.say("y")
	screen := s.end()
	if got := strings.Count(screen, prompt); got != 1 {
		t.Errorf("%d questions, want 1", got)
	}
	if got := strings.Count(screen, "ended: <nil>"); got != 7 || s.code != 0 {
		t.Errorf("%d of 7 connections have gone on, code %d:\n%s", got, s.code, screen)
	}
}

// TestAskNo refuses them all when the human says no, and does not ask again.
func TestAskNo(t *testing.T) {
	d := newAccount(t)
	m := d.now(t)
	s := d.openTerminal(t, []string{"--ask-timeout", "30s"}, askFive)
	s.see(prompt)
	s.say("n")
	screen := s.end()
	if got := strings.Count(screen, prompt); got != 1 {
		t.Errorf("%d questions, want 1", got)
	}
	if got := strings.Count(screen, "ended: "); got != 7 || strings.Contains(screen, "ended: <nil>") {
		t.Errorf("want 7 connections refused:\n%s", screen)
	}
	d.nothingElse(t, m, attack{})
}

// TestAskInVain refuses when nobody has answered in time.
func TestAskInVain(t *testing.T) {
	d := newAccount(t)
	m := d.now(t)
	begin := time.Now()
	s := d.openTerminal(t, []string{"--ask-timeout", "1s"}, "$PROBE ask 3 "+askable)
	screen := s.end()
	if took := time.Since(begin); took < time.Second {
		t.Errorf("it ended after %v, want more than a second", took)
	}
	if got := strings.Count(screen, "ended: "); got != 3 || strings.Contains(screen, "ended: <nil>") {
		t.Errorf("want 3 connections refused:\n%s", screen)
	}
	d.nothingElse(t, m, attack{})
}

// TestAskNobody refuses at once, and says what to do, where there is no
// terminal.
func TestAskNobody(t *testing.T) {
	d := newAccount(t)
	r := d.inside(t, []string{"--ask-timeout", "30s"}, "$PROBE tcp "+askable+" abc; curl -sS -m 30 http://askable.test/")
	if r.took > soon || strings.Contains(r.out, "this is") {
		t.Errorf("after %v: %s", r.took, r.out)
	}
	for where, text := range map[string]string{"the program": r.out, "the human": r.err} {
		if !strings.Contains(text, "askable.test") || !strings.Contains(text, "--allow askable.test") {
			t.Errorf("%s is told %q", where, text)
		}
	}
}

// TestAskTooSoon: a guest that knows when its human is about to press a key asks
// just then. Keys that come too soon for a human to have read the question are
// ignored.
func TestAskTooSoon(t *testing.T) {
	d := newAccount(t)
	for try := 1; ; try++ {
		m := d.now(t)
		s := d.openTerminal(t, []string{"--ask-timeout", "30s"}, "$PROBE tcp "+askable+" abc")
		s.see("the guest wants to")
		s.presses("y")
		time.Sleep(100 * time.Millisecond)
		s.presses("\n")
		s.see(prompt)
		time.Sleep(300 * time.Millisecond) // for an answer to be shown
		if strings.Contains(s.screen(), "your answer") && try < 5 {
			s.end()
			continue // this machine was so busy that a human would have read it
		}
		s.say("n")
		s.end()
		d.nothingElse(t, m, attack{})
		return
	}
}

// TestAskNamesTheProgram: a question names the program behind the connection, as
// its file is called and with nothing of it in control of the terminal.
func TestAskNamesTheProgram(t *testing.T) {
	d := newAccount(t, "bwrap")
	for _, provider := range []string{"native", "bwrap"} {
		s := d.openTerminal(t, []string{"--provider", provider, "--ask-timeout", "30s"}, `N=$(printf 'inno\033[2Jcent'); cp "$(command -v curl)" "./$N" && sh -c "exec './$N' -sS -m 30 http://askable.test/"; echo done`)
		s.see(prompt)
		if screen := s.screen(); !strings.Contains(screen, `inno\x1b[2Jcent" (from "`) || strings.Contains(screen, "inno\x1b[2Jcent") {
			t.Errorf("%s: the question names no program, or as the guest wants it:\n%q", provider, screen)
		}
		s.say("n")
		s.end()
	}
}
