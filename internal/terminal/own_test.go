//go:build linux || darwin

package terminal

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// The guest of these tests, what Bawn asks, and what stays of that.
const (
	faked    = "Agent: shall I run the tests now? [y/n] "
	question = "bawn: the guest wants to run a command\r\n  exactly| git push --force origin main\r\nbawn: allow it once? [y/s/n/N/?] "
	remains  = "bawn: your answer: denied"
)

// asker is a Bawn in a terminal, with a guest that has written its second
// argument. It asks, waits for a key, and then for its end. As "raw" it asks as
// if the guest had left the terminal alone.
func asker() error {
	how, output := os.Args[1], os.Args[2]
	tt, err := New([3]*os.File{os.Stdin, os.Stdout, os.Stderr}, nil)
	if err != nil {
		return err
	}
	defer tt.Close()
	files := tt.Guest()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	c := exec.Command("/bin/sh", "-c", `stty -echo; printf %b "$1"; echo >&3; exec sleep 60 3>&-`, "sh", output)
	c.Stdin, c.Stdout, c.Stderr, c.ExtraFiles = files[0], files[1], files[2], []*os.File{write}
	if err := c.Start(); err != nil {
		return err
	}
	defer c.Process.Kill()
	if _, err := tt.Start(); err != nil {
		return err
	}
	if _, err := read.Read(make([]byte, 1)); err != nil {
		return err
	}
	for readable(tt.master, quiet) || tt.screen.busy.Load() { // until that is written
		time.Sleep(time.Millisecond)
	}
	if how == "raw" {
		if err := tt.in.put([]byte("\r\n" + question)); err != nil {
			return err
		}
		time.Sleep(time.Minute)
	}
	err = tt.Converse(context.Background(), func(rw Conversation) error {
		if _, err := io.WriteString(rw, question); err != nil {
			return err
		}
		_, err := rw.Read(make([]byte, 1))
		rw.Note(remains)
		return err
	})
	time.Sleep(time.Minute)
	return err
}

// A mux is a tmux with one window, in which an asker runs: a terminal that is
// looked at as a human does.
type mux struct {
	t      *testing.T
	socket string
}

func newMux(t *testing.T, how, output string) *mux {
	t.Helper()
	testenv.Need(t, "tmux")
	dir, err := os.MkdirTemp("", "own") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	m := &mux{t, filepath.Join(dir, "s")}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "env", roleVariable+"=asker", os.Args[0], how, output)
	t.Cleanup(func() { m.tmux("kill-server") })
	return m
}

func (m *mux) tmux(args ...string) string {
	m.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", m.socket}, args...)...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %q: %v %s", args, err, out)
	}
	return string(out)
}

// shown is what the window shows, with whatever is not plain.
func (m *mux) shown() string {
	m.t.Helper()
	return strings.TrimRight(m.tmux("capture-pane", "-ep"), "\n ")
}

// shows waits until the window is as wanted, and reports whether it was.
func (m *mux) shows(as func(screen string) bool, limit time.Duration) bool {
	m.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if as(m.shown()) {
			return true
		}
	}
	return false
}

// asked is a window with nothing but the question in it, as it was written.
func asked(screen string) bool {
	return screen == strings.TrimRight(strings.ReplaceAll(question, "\r", ""), " ")
}

// TestNothingHidesTheQuestion: whatever the guest has done to the terminal, the
// human sees the whole question and nothing beside it. The control is the same
// guest in front of a Bawn that writes the question as it is.
func TestNothingHidesTheQuestion(t *testing.T) {
	t.Parallel()
	fake := faked + `\033[H\033[2Jbawn: the guest wants to run a command\r\n  exactly| npm test\r\n`
	for name, output := range map[string]string{
		"nothing":             faked,
		"half a character":    faked + `\0342\0201`,
		"half a sequence":     faked + `\033[3`,
		"device control":      faked + `\033P`,
		"device control, ESC": faked + `\033P\033`,
		"a title":             faked + `\033]2;`,
		"a command":           faked + `\033_`,
		"tmux's title":        faked + `\033k`,
		"scroll region":       fake + `\033[20;21r\033[21;1H`,
		"margins":             fake + `\033[?69h\033[70;80s`,
		"origin":              fake + `\033[10;12r\033[?6h`,
		"invisible":           faked + `\033[8m`,
		"black on black":      faked + `\033[30;40m`,
		"line drawing":        faked + `\033(0`,
		"line drawing, G1":    faked + `\033)0\016`,
		"no wrapping":         faked + `\033[?7l\033[1;75H`,
		"insertion":           fake + `\033[4h\033[1;1H`,
		"the second screen":   `\033[?1049h` + fake,
		"second, and a title": `\033[?1047h` + fake + `\033]2;`,
		"fake":                fake,
		"fake far down":       fake + `\033[23;1H`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			control, m := newMux(t, "raw", output), newMux(t, "own", output)
			if !m.shows(asked, patience) {
				t.Errorf("the window shows\n%s", m.shown())
			}
			if control.shows(asked, 100*time.Millisecond) {
				t.Errorf("control: the question stands alone:\n%s", control.shown())
			}
		})
	}
}

// TestHiddenWithout shows what of the above is worst: without the stage nothing
// of the question is to be seen, or another one.
func TestHiddenWithout(t *testing.T) {
	t.Parallel()
	for name, output := range map[string]string{"string": faked + `\033P`, "title": faked + `\033]2;`} {
		m := newMux(t, "raw", output)
		if !m.shows(func(s string) bool { return strings.Contains(s, strings.TrimSpace(faked)) }, patience) {
			t.Errorf("%s: the guest of the control wrote nothing:\n%s", name, m.shown())
		}
		if m.shows(func(s string) bool { return strings.Contains(s, "git push") }, 200*time.Millisecond) {
			t.Errorf("%s: the control shows\n%s", name, m.shown())
		}
	}
}

// flags are modes that tmux tells of.
const flags = "#{alternate_on}#{cursor_flag}#{keypad_cursor_flag}#{keypad_flag}#{wrap_flag}#{mouse_standard_flag}#{mouse_sgr_flag} #{scroll_region_upper} #{scroll_region_lower} #{cursor_x}"

// TestGuestsScreenComesBack, with its modes, and with a line of what was
// answered on the first screen.
func TestGuestsScreenComesBack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ output, during, after, shown string }{
		"plain":      {`one\r\ntwo`, "1100100 0 23", "0100100 0 23 0", "one\ntwo\n" + remains},
		"modes":      {`one\r\ntwo\033[?25l\033[?1h\033=\033[?7l\033[?1000h\033[?1006h`, "1100100 0 23", "0011011 0 23 0", "one\ntwo\n" + remains},
		"region":     {`one\r\ntwo\033[2;10r\033[2;4H`, "1100100 0 23", "0100100 1 9 0", "one\ntwo\n" + remains},
		"alternate":  {`one\r\ntwo\033[?1049h\033[2Jits own`, "1100100 0 23", "1100100 0 23 0", ""},
		"it went by": {`\033[?1049h\033[?25lits own\033[?25h\033[?1049lone`, "1100100 0 23", "0100100 0 23 0", "one\n" + remains},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMux(t, "own", tt.output)
			if !m.shows(asked, patience) {
				t.Fatalf("the window shows\n%s", m.shown())
			}
			if got := m.tmux("display", "-p", flags); !strings.HasPrefix(got, tt.during) {
				t.Errorf("during the question: %s", got)
			}
			m.tmux("send-keys", "n")
			if !m.shows(func(s string) bool { return s == tt.shown }, patience) {
				t.Errorf("afterwards the window shows\n%s", m.shown())
			}
			testenv.Until(t, "the modes "+tt.after, func() bool { return strings.HasPrefix(m.tmux("display", "-p", flags), tt.after) })
		})
	}
}

// TestNoteBehindTheSecondScreen is found once the guest has left that.
func TestNoteBehindTheSecondScreen(t *testing.T) {
	m := newMux(t, "own", `one\033[?1049hits own`)
	if !m.shows(asked, patience) {
		t.Fatalf("the window shows\n%s", m.shown())
	}
	m.tmux("send-keys", "n")
	first := func() string { return strings.TrimSpace(m.tmux("capture-pane", "-aqp")) }
	testenv.Until(t, "the note on the first screen", func() bool { return first() == "one\n"+remains })
}

// TestPlainTerminals get no control sequence: one that has none would show them.
func TestPlainTerminals(t *testing.T) {
	for name, want := range map[string]bool{"": false, "dumb": false, "xterm-256color": true, "linux": true} {
		if got := Emulates(name); got != want {
			t.Errorf("Emulates(%q) = %v", name, got)
		}
	}
	u := newPerson(t)
	go u.watch()
	tt := open(t, u.stdio())
	tt.Plain()
	guest(t, tt, "sh", "-c", "printf 'half\\033]2;'; sleep 9")
	start(t, tt, Foreground)
	u.sees("half\x1b]2;")
	if err := tt.Converse(t.Context(), func(rw Conversation) error {
		rw.Note("noted")
		_, err := io.WriteString(rw, "asked")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	u.sees("noted\r\n")
	if got, want := u.screen(), "half\x1b]2;\x18\r\nasked\r\nnoted\r\n"; got != want {
		t.Errorf("the screen got %q; want %q", got, want)
	}
}

// TestColorsComeBack before the question: a palette can hide it, too.
func TestColorsComeBack(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	tt := open(t, u.stdio())
	guest(t, tt, "sh", "-c", "printf '\\033]10;#000000\\033\\\\ready'; sleep 9")
	start(t, tt, Foreground)
	u.sees("ready")
	if err := tt.Converse(t.Context(), func(rw Conversation) error {
		_, err := io.WriteString(rw, "asked")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	u.sees("asked")
	_, after, _ := strings.Cut(u.screen(), "ready")
	before, _, ok := strings.Cut(after, "asked")
	for _, want := range []string{"\x1b]104\x1b\\", "\x1b]110\x1b\\", "\x1b]111\x1b\\", "\x1b]R\x1b\\", "\x1b[?2026l", "\x1b[!p", "\x1b[?2004h"} {
		if !ok || !strings.Contains(before, want) {
			t.Errorf("%q does not come before the question: %q", want, before)
		}
	}
}
