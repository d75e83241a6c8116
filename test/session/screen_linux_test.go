package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// A mux is a tmux with one window: a terminal that is looked at as a human does,
// by what stands on it.
type mux struct {
	*home
	socket string
}

func (h *home) mux() *mux {
	h.t.Helper()
	m := &mux{h, filepath.Join(h.t.TempDir(), "tmux")}
	m.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "20", "sh")
	h.t.Cleanup(func() { m.command("tmux", "-S", m.socket, "kill-server").Run() })
	return m
}

func (m *mux) tmux(args ...string) string {
	m.t.Helper()
	r := m.run(append([]string{"tmux", "-S", m.socket}, args...)...)
	if r.code != 0 {
		m.t.Fatalf("tmux %q: %s", args, r.err)
	}
	return r.out
}

func (m *mux) types(keys ...string) {
	m.t.Helper()
	m.tmux(append([]string{"send-keys"}, keys...)...)
}

// shows waits until the window is as wanted.
func (m *mux) shows(what string, as func(screen string) bool) {
	m.t.Helper()
	var screen string
	defer func() {
		if m.t.Failed() {
			m.t.Logf("the window shows\n%s", screen)
		}
	}()
	testenv.Until(m.t, what, func() bool { screen = m.tmux("capture-pane", "-p"); return as(screen) })
}

func (m *mux) has(text string) {
	m.t.Helper()
	m.shows(text, func(s string) bool { return strings.Contains(s, text) })
}

// prompts waits for the shell.
func (m *mux) prompts() {
	m.t.Helper()
	m.shows("a prompt", func(s string) bool {
		return strings.HasSuffix(strings.TrimRight(s, "\n "), "$") || strings.HasSuffix(strings.TrimRight(s, "\n "), "#")
	})
}

// TestVim is left in the middle, and found as it was.
func TestVim(t *testing.T) {
	h := newHome(t, "tmux", "vim")
	m := h.mux()
	m.types("bawn run -q --net none --attachable -- vim -u NONE -N notes.txt", "Enter")
	m.has(`"notes.txt" [New]`)
	m.types("ifirst line")
	m.has("first line")
	m.types("C-]", "d")
	m.has("which goes on")
	m.prompts()
	m.types("clear; stty -a | grep -o ' -*icanon\\| -*echo ' ", "Enter")
	m.shows("a line editor's terminal", func(s string) bool { return strings.Contains(s, " icanon") && strings.Contains(s, " echo") })
	m.types("bawn attach", "Enter")
	m.shows("the whole window", func(s string) bool {
		return strings.HasPrefix(s, "first line\n~\n") && strings.Count(s, "\n~") == 18
	})
	m.types("Enter", "second", "C-]", "x", "Escape", ":wq", "Enter") // that C-] is vim's
	m.prompts()
	m.types("echo ended-$?", "Enter")
	m.has("ended-0")
	text, err := os.ReadFile(filepath.Join(h.dir, "project", "notes.txt"))
	if err != nil || !strings.HasPrefix(string(text), "first line\nsecond") {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// TestLess is seen by a second window of another size, which it then fits.
func TestLess(t *testing.T) {
	h := newHome(t, "tmux", "less")
	id := h.detach("sh", "-c", "seq 1000 1999 | less")
	m := h.mux()
	m.types("bawn attach "+id, "Enter")
	m.shows("a window full of lines", func(s string) bool { return strings.HasPrefix(s, "1000\n1001\n") && strings.Contains(s, "\n1018\n:") })
	m.types("G")
	m.shows("the end", func(s string) bool { return strings.Contains(s, "\n1999\n") })
	p := h.openTerminal("bawn", "attach", id)
	p.sees("1999")
	m.types("g")
	p.sees("1000")
	p.cmd.Process.Signal(syscall.SIGTERM) // leaves, too
	p.ends(0)
	m.types("q")
	m.prompts()
}

// asked waits until a question about a host stands alone in the window.
func (m *mux) asked(host string) {
	m.t.Helper()
	m.shows("the question alone", func(s string) bool {
		return strings.HasPrefix(s, "bawn: the guest wants to") && strings.Contains(s, host) && strings.Contains(s, "[y/a/n/N/?]")
	})
}

// daemon adds what brings the network by name.
func (h *home) daemon() {
	h.t.Helper()
	check(h.t, testhome.Programs(h.bin, "cmd/bawnd"))
}

// kinds are sessions that have the terminal themselves, and that are attached to.
var kinds = []string{"--ask-timeout=30s", "--attachable"}

// TestQuestionOverVim comes while vim has the window, which is as before once it
// is answered.
func TestQuestionOverVim(t *testing.T) {
	h := newHome(t, "tmux", "vim", "curl", "go")
	h.daemon()
	for i, kind := range kinds {
		m := h.mux()
		name := filepath.Join(h.dir, "project", fmt.Sprint("notes", i))
		m.types(fmt.Sprintf("bawn run -q --net allowlist %s -- sh -c '(until [ -e go%d ]; do sleep 0.1; done; curl -s -o page ask.test:81) & exec vim -u NONE -N %s'", kind, i, filepath.Base(name)), "Enter")
		m.has("[New]")
		m.types("ifirst line")
		m.has("first line")
		check(t, os.WriteFile(filepath.Join(h.dir, "project", fmt.Sprint("go", i)), nil, 0o644))
		m.asked("ask.test:81")
		m.types("n")
		m.shows("the answer", func(s string) bool { return strings.HasSuffix(strings.TrimRight(s, "\n "), "[y/a/n/N/?] n") })
		time.Sleep(typed)
		m.types("Enter")
		m.shows("vim's window", func(s string) bool {
			return strings.HasPrefix(s, "first line\n~\n") && strings.Count(s, "\n~") == 18 && strings.Contains(s, "INSERT")
		})
		m.types("Enter", "second", "Escape", ":wq", "Enter")
		m.prompts()
		m.has("your answer: denied for this session: connect to ask.test:81")
		text, err := os.ReadFile(name)
		if err != nil || string(text) != "first line\nsecond\n" {
			t.Errorf("%s: the file is %q, %v", kind, text, err)
		}
	}
}

// TestQuestionIsNotHidden by a string that the guest has begun, or by a scroll
// region around what it would rather have asked.
func TestQuestionIsNotHidden(t *testing.T) {
	h := newHome(t, "tmux", "curl", "go")
	h.daemon()
	for _, kind := range kinds {
		for _, output := range []string{`Agent: run tests? [y/n] \033P`, `\033[2J\033[Hbawn: the guest wants to connect to good.test:443\n\033[18;19r\033[19;1H`} {
			m := h.mux()
			m.types("bawn run -q --net allowlist "+kind+` -- sh -c 'printf "`+output+`"; curl -s ask.test:81; printf over'`, "Enter")
			m.asked("ask.test:81")
			if s := m.tmux("capture-pane", "-p"); slices.ContainsFunc(strings.Split(s, "\n"), func(line string) bool {
				return strings.HasPrefix(line, "Agent") || strings.Contains(line, "good.test")
			}) {
				t.Errorf("%s %q: beside the question stands\n%s", kind, output, s)
			}
			m.types("C-c")
			m.has("your answer: denied")
			m.has("over")
		}
	}
}
