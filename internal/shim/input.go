//go:build linux || darwin

package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/syntax"

	"github.com/bawn-dev/bawn/internal/shell"
	"github.com/bawn-dev/bawn/internal/shell/invocation"
)

// endPatience is how long a writer of commands may take to say that there are
// no more, before they are taken for a conversation.
const endPatience = 30 * time.Millisecond

// maxStatement bounds a statement that does not end, in bytes.
const maxStatement = 1 << 20

// A reader reads commands from standard input, and never more than it needs:
// what follows a statement may be the input of its commands.
type reader struct {
	kind   uint32 // of the file
	talks  bool   // prompts are wanted
	shown  bool   // by a terminal, whose human sees them
	ended  bool
	signal <-chan os.Signal
}

func (s *front) newReader() *reader {
	var st unix.Stat_t
	r := &reader{signal: s.signals}
	if unix.Fstat(0, &st) == nil {
		r.kind = uint32(st.Mode) & unix.S_IFMT
	}
	_, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
	r.shown = err == nil
	r.talks = r.shown || s.call.Interactive
	return r
}

// input is the shell that reads its commands.
func (s *front) input() int {
	r := s.newReader()
	defer s.hangUp()
	last := end{}
	for !last.over {
		text, err := s.statements(r)
		switch {
		case errors.Is(err, io.EOF):
			return last.code
		case err != nil:
			s.say(err.Error())
			last = end{code: codeUsage, over: !r.talks}
			continue
		}
		last = s.text(text, r, last)
		if last.signal != 0 && r.talks && s.talk != nil {
			last.signal, last.over = 0, false // an interrupt ends what runs, and not who is talked to
		}
	}
	return s.finish(last)
}

// text has the text of one or more statements executed.
func (s *front) text(text string, r *reader, last end) end {
	call := s.call
	call.Source, call.Text = invocation.Text, text
	if r.ended {
		if len(call.Params) > 0 {
			call.Params = append([]string{s.call.Zero}, call.Params...) // $0 stands before them
		}
		return s.whole(call)
	}
	if last.code != 0 && strings.Contains(text, "$?") {
		text = "(exit " + strconv.Itoa(last.code) + ")\n" + text
	}
	e := s.command(call.Argv(s.call.Zero, text), true)
	if e.state != nil && !e.state.Ended {
		s.dir, s.environ = e.state.Dir, e.state.Env
	}
	return e
}

// whole runs a script that has been read to its end. Its commands get no part
// of it as their input.
func (s *front) whole(call invocation.Invocation) end {
	if null, err := os.Open(os.DevNull); err == nil {
		_ = dup(int(null.Fd()), 0) // else they read the end of what was there
		null.Close()
	}
	e := s.command(call.Argv(s.call.Zero, call.Text), false)
	e.over = true
	return e
}

// statements reads as many whole statements as are there, at least one. Where they
// are the rest of the input, reader.ended is true. It returns io.EOF at the end of
// the input.
func (s *front) statements(r *reader) (string, error) {
	var text strings.Builder
	for {
		r.prompt(text.Len() == 0)
		line, err := r.line()
		if errors.Is(err, errInterrupted) {
			_, _ = os.Stderr.WriteString("\n")
			text.Reset()
			continue
		}
		text.WriteString(line)
		done, perr := complete(text.String())
		switch {
		case err != nil && strings.TrimSpace(text.String()) == "":
			return "", io.EOF
		case perr != nil || err != nil && !done:
			return "", fmt.Errorf("syntax error: %w", errors.Join(perr, ifNot(done)))
		case text.Len() > maxStatement:
			return "", fmt.Errorf("a statement of more than %d bytes", maxStatement)
		case done && strings.TrimSpace(text.String()) != "" && (err != nil || !r.more(text.String())):
			return text.String(), nil
		case done && text.Len() > 0 && strings.TrimSpace(text.String()) == "":
			text.Reset()
		}
	}
}

// prompt asks for a statement, or for the rest of one.
func (r *reader) prompt(first bool) {
	text := "> "
	switch {
	case first && r.shown:
		text = "(bawn) $ "
	case first:
		text = "$ "
	}
	if r.talks {
		_, _ = os.Stderr.WriteString(text) // where nobody sees it, it is not missed
	}
}

func ifNot(done bool) error {
	if done {
		return nil
	}
	return errors.New("the input ends within a statement")
}

// complete reports whether a text is whole statements, or why it never can be.
func complete(text string) (bool, error) {
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	switch {
	case err == nil:
		return !strings.HasSuffix(text, "\\\n"), nil
	case syntax.IsIncomplete(err):
		return false, nil
	}
	return false, err
}

// more reports whether more input is to be read before the text is run: the end
// of a script, or input that is there already and can't be meant for a command
// of the text.
func (r *reader) more(text string) bool {
	switch {
	case r.talks || takes(text):
		return false
	case r.ended || r.closing():
		return true
	}
	return waiting(0) && r.kind != unix.S_IFREG
}

// closing reports whether nobody writes to the input any more.
func (r *reader) closing() bool {
	switch r.kind {
	case unix.S_IFREG:
		r.ended = true
	case unix.S_IFIFO, unix.S_IFSOCK:
		r.ended = closed(0, endPatience)
	}
	return r.ended
}

// takes reports whether a text runs what reads lines that may be meant for it.
func takes(text string) bool {
	for _, c := range shell.Read(text, shell.Context{}).Commands {
		if len(c.Words) == 0 || c.Stdin.From != shell.Inherited {
			continue
		}
		switch c.Words[0].Text {
		case "read", "mapfile", "readarray", "cat", "head", "select":
			return true
		}
	}
	return false
}

var errInterrupted = errors.New("interrupted")

// line reads up to and with a line feed, a byte at a time. It returns io.EOF
// with what is before the end.
func (r *reader) line() (string, error) {
	var line []byte
	b := make([]byte, 1)
	for {
		if err := r.wait(); err != nil {
			return "", err
		}
		n, err := unix.Read(0, b)
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
		case err != nil || n == 0:
			return string(line), io.EOF
		default:
			if line = append(line, b[0]); b[0] == '\n' {
				return string(line), nil
			}
		}
	}
}

// wait waits for input or for a signal, of which an interrupt ends a line and
// others the shell, unless somebody talks to it.
func (r *reader) wait() error {
	for !waiting(0) {
		if waitFor(0, signalPause) {
			return nil
		}
		select {
		case sig := <-r.signal:
			switch {
			case sig == syscall.SIGINT && r.talks:
				return errInterrupted
			case sig == syscall.SIGTSTP && !r.talks:
				stopSelf()
			case sig == syscall.SIGHUP, !r.talks && sig != syscall.SIGCONT && sig != syscall.SIGWINCH:
				die(sig.(syscall.Signal))
			}
		default:
		}
	}
	return nil
}

// signalPause is how long a signal may wait while the shell waits for input.
const signalPause = 50 * time.Millisecond
