//go:build linux || darwin

package asking

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/term"
	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/terminal"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// A window is a tmux in which a bawn asks one question.
type window struct {
	t           *testing.T
	dir, socket string
}

// newWindow opens one, after the guest has written output.
func newWindow(t *testing.T, output string) *window {
	t.Helper()
	testenv.Need(t, "tmux")
	dir, err := os.MkdirTemp("", "typed") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	w := &window{t, dir, filepath.Join(dir, "s")}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ask, err := json.Marshal(order{ID: 1, Action: &bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "git push --force", Dir: "/srv/app"}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "orders"), string(ask))
	script := `printf %b "$1"; { cat "$2/orders"; sleep 300; } | "$0" asks "$2" >"$2/answers"`
	w.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "sh", "-c", script, os.Args[0], output, dir)
	t.Cleanup(func() { w.tmux("kill-server") })
	w.shows("allow it once?")
	return w
}

func (w *window) tmux(args ...string) string {
	w.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", w.socket}, args...)...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("tmux %q: %v %s", args, err, out)
	}
	return string(out)
}

func (w *window) shows(text string) {
	w.t.Helper()
	w.until(text, func(pane string) bool { return strings.Contains(pane, text) })
}

func (w *window) until(what string, ok func(pane string) bool) {
	w.t.Helper()
	var pane string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the window shows\n%s", pane)
		}
	}()
	testenv.Until(w.t, what, func() bool { pane = w.tmux("capture-pane", "-p"); return ok(pane) })
}

// pastes puts text in as tmux does from its clipboard, in brackets if wanted
// and if the terminal's program has asked for them.
func (w *window) pastes(text string, brackets bool) {
	w.t.Helper()
	write(w.t, filepath.Join(w.dir, "clip"), text)
	w.tmux("load-buffer", filepath.Join(w.dir, "clip"))
	paste := []string{"paste-buffer"}
	if brackets {
		paste = append(paste, "-p")
	}
	w.tmux(paste...)
}

// types a key and Enter until the window shows text, with more and more time
// between them: on a busy machine both may be read at once, like a paste.
func (w *window) types(key, text string) {
	w.t.Helper()
	for pause := 4 * apart; ; pause *= 2 {
		w.tmux("send-keys", key)
		time.Sleep(pause)
		w.tmux("send-keys", "Enter")
		for end := time.Now().Add(10 * pause); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if strings.Contains(w.tmux("capture-pane", "-p"), text) {
				return
			}
		}
		if pause > 2*time.Second {
			w.t.Fatalf("the window shows\n%s\nwant %q", w.tmux("capture-pane", "-p"), text)
		}
	}
}

func (w *window) answered() string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, "answers"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// TestPastedIsNoAnswer, whether the guest has switched brackets off or on, or
// the terminal knows none. The control types the same keys.
func TestPastedIsNoAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		output, text string
		brackets     bool
	}{
		"a line":                   {"", "y\n", true},
		"a line, brackets off":     {`\033[?2004l`, "y\n", true},
		"a line, brackets on":      {`\033[?2004h`, "y\n", true},
		"no brackets":              {"", "y\n", false},
		"lines without brackets":   {"", "x\ny\n\ny\n", false},
		"a key, then Enter":        {`\033[?2004l`, "y", true},
		"long, without brackets":   {"", strings.Repeat("x", 250) + "\x15y\n", false},
		"long, the key at an edge": {"", strings.Repeat("x", 254) + "\x15y\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWindow(t, tt.output)
			w.pastes(tt.text, tt.brackets)
			w.shows("what is pasted is no answer")
			asked := strings.Count(w.tmux("capture-pane", "-p"), "allow it once?")
			w.tmux("send-keys", "Enter") // a human who did not see that
			w.until("the question once more", func(pane string) bool { return strings.Count(pane, "allow it once?") > asked })
			if got := w.answered(); got != "" {
				t.Fatalf("what was pasted counted: %s", got)
			}
			w.types("y", "your answer: allowed: git push --force") // control
			testenv.Until(t, "the control's answer: what was typed counts", func() bool { return strings.Contains(w.answered(), `"Verdict":"allow"`) })
		})
	}
}

// A tape plays keys, one read after the other.
type tape struct {
	terminal.Conversation
	reads [][]byte
}

func (p *tape) Read(b []byte) (int, error) {
	if len(p.reads) == 0 {
		return 0, iotest.ErrTimeout
	}
	n := copy(b, p.reads[0])
	p.reads = p.reads[1:]
	return n, nil
}

// TestBracketsAreLeftOut however they are cut, and the line in which they stood
// was not typed.
func TestBracketsAreLeftOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z\r~\[]{0,9}`).Draw(t, "pasted")
		all := []byte("y\x1b[200~" + text + "\x1b[201~")
		now := time.Unix(0, 0)
		p := &tape{}
		for len(all) > 0 {
			n := rapid.IntRange(1, len(all)).Draw(t, "n")
			p.reads, all = append(p.reads, all[:n]), all[n:]
		}
		k := &typed{from: p, now: func() time.Time { now = now.Add(time.Second); return now }}
		var got []byte
		for b := make([]byte, 3); ; {
			n, err := k.Read(b)
			if err != nil {
				break
			}
			got = append(got, b[:n]...)
		}
		if s := strings.TrimLeft(string(got), "y"); s != "\r" || !k.pasted() || k.in || len(k.part) > 0 {
			t.Errorf("came out as %q, in %v, part %q", got, k.in, k.part)
		}
	})
}

// TestRestOfAPaste: what comes soon after something was pasted, as on a slow line, answers
// nothing, however alone each key comes. The controls come after a pause, or after keys
// that a human has typed.
func TestRestOfAPaste(t *testing.T) {
	for name, tt := range map[string]struct {
		reads  []string
		before time.Duration // the second one
		pasted bool
	}{
		"lines":                   {[]string{"x\r", "y", "\r"}, 40 * time.Millisecond, true},
		"control: after a pause":  {[]string{"x\r", "y", "\r"}, settle, false},
		"control: words, by hand": {[]string{"n another way", "\r"}, 40 * time.Millisecond, false},
	} {
		now, n := time.Unix(0, 0), 0
		p := &tape{}
		for _, r := range tt.reads {
			p.reads = append(p.reads, []byte(r))
		}
		k := &typed{from: p, now: func() time.Time {
			now = now.Add(40 * time.Millisecond)
			if n++; n == 2 {
				now = now.Add(tt.before)
			}
			return now
		}}
		last := false
		for b := make([]byte, 64); ; {
			got, err := k.Read(b)
			if err != nil {
				break
			}
			if strings.Contains(string(b[:got]), "\r") {
				last = k.pasted()
			}
		}
		if last != tt.pasted {
			t.Errorf("%s: the last line was pasted: %t; want %t", name, last, tt.pasted)
		}
	}
}

// TestReportsAreNoAnswer: what a terminal says by itself answers nothing, however it is cut
// and although the human types "n" right behind it. For the control the same bytes are
// read without our part: to the title "y" and a human's "n" the line says yes.
func TestReportsAreNoAnswer(t *testing.T) {
	for _, reads := range [][]string{
		{"\x1b]ly\x1b\\n", "\r"}, {"\x1b]ly\x1b\\", "n", "\r"}, {"\x1b", "]ly\x1b\\", "n", "\r"}, {"\x1b]l", "y", "\x1b\\", "n", "\r"},
	} {
		p, raw := &tape{}, &bytes.Buffer{}
		for _, r := range reads {
			p.reads = append(p.reads, []byte(r))
			raw.WriteString(r)
		}
		now := time.Unix(0, 0)
		k := &typed{from: p, now: func() time.Time { now = now.Add(time.Second); return now }}
		var lines []string
		for from := term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{k, io.Discard}, ""); ; {
			line, err := from.ReadLine()
			if err != nil {
				break
			}
			if !k.pasted() && line != "" {
				lines = append(lines, line)
			}
		}
		if len(lines) > 0 && (len(lines) > 1 || lines[0] != "n") {
			t.Errorf("%q: the lines %q were typed", reads, lines)
		}
		control := term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{raw, io.Discard}, "")
		if line, err := control.ReadLine(); err != nil || line != "y" {
			t.Errorf("%q: control: %q, %v", reads, line, err)
		}
	}
}
