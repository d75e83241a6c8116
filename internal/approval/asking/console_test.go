package asking

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/terminal"
)

// A quietConsole is a terminal at which nobody answers.
type quietConsole struct{}

func (*quietConsole) Converse(ctx context.Context, _ func(terminal.Conversation) error) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// A failingConsole fails at first, and speaks with nobody then.
type failingConsole struct{ fails, tried int }

func (c *failingConsole) Converse(ctx context.Context, _ func(terminal.Conversation) error) error {
	if c.tried++; c.tried <= c.fails {
		return errors.New("takes nothing")
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestTerminalFails: a question that could not be shown is shown again, and the
// human's log has one line of it.
func TestTerminalFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var notes []string
		d := New(Options{Session: "s", Note: func(text string) { notes = append(notes, text) }})
		defer d.Close()
		tty := &failingConsole{fails: 3}
		leave := d.Sit(tty)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if a, err := d.Approver(normal).Approve(ctx, command("git push"), decision(t, "git push")); err == nil || a.Verdict == bawn.Allow {
			t.Errorf("answered %+v, %v", a, err)
		}
		leave()
		if tty.tried != tty.fails+1 || len(notes) != 1 || !strings.Contains(notes[0], "takes nothing") {
			t.Errorf("tried %d times, noted %q", tty.tried, notes)
		}
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
