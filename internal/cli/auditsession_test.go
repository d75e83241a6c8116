package cli

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bawn-dev/bawn/internal/verb"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
)

// TestSessionByItsBeginning: a unique beginning names a session, an ambiguous
// one is refused with the candidates, and a whole id is never ambiguous.
func TestSessionByItsBeginning(t *testing.T) {
	named := func(id string) bawn.Event {
		return auditEvent(func(e *bawn.Event) { e.Session, e.Resource = id, "of "+id })
	}
	state := auditLog(t, named("abc1"), named("abd2"), named("abc1"), named("abd2x"), named("zz"))
	for prefix, lines := range map[string]int{"abc": 3, "abc1": 3, "abd2": 2, "z": 2, "zz": 2, "q": 0} {
		code, out, msg := runAudit(t, state, "query", "--session", prefix)
		if got := strings.Count(out, "\n"); code != 0 || got != lines || strings.Contains(msg, "no session") != (lines == 0) {
			t.Errorf("%q: exit code %d, %d lines, %q; want %d lines", prefix, code, got, msg, lines)
		}
	}
	for _, name := range []string{"query", "export"} {
		code, out, msg := runAudit(t, state, name, "--session", "ab")
		if code != verb.ExitUsage || out != "" || !strings.Contains(msg, `--session "ab" is the beginning of 3 ids`) || !strings.Contains(msg, "abd2x  2026") || strings.Contains(msg, "zz") {
			t.Errorf("%s: exit code %d, %q %q; want the candidates", name, code, out, msg)
		}
	}
}

// TestTableFitsTheTerminal: what is too long is cut on a terminal, with the
// number of characters that are missing, and nowhere else.
func TestTableFitsTheTerminal(t *testing.T) {
	huge := strings.Repeat("x", 5000)
	entry := audit.Entry{Event: auditEvent(func(e *bawn.Event) { e.Session, e.Resource, e.Reason = "abcdefghijklmnopqrstuvwxyz", huge, huge })}
	table := func(width int) string {
		var b bytes.Buffer
		p := &tablePrinter{w: bufio.NewWriter(&b), batch: 2, width: width}
		if err := p.print(entry); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, width := range []int{140, 200} {
		out := table(width)
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: a line of %d: %s", width, n, line)
			}
		}
		if strings.Count(out, "x…(+49") != 2 || !strings.Contains(out, " abcdefgh ") {
			t.Errorf("width %d: %s; want two cut texts and a short id", width, out)
		}
	}
	if out := table(0); strings.Count(out, huge) != 2 || strings.Contains(out, "…") {
		t.Error("off a terminal something is cut")
	}
	for n, want := range map[int]string{12: "xxxxxx…(+14)", 19: "xxxxxxxxxxxxxx…(+6)", 20: huge[:20]} {
		if got := cut(huge[:20], n); got != want {
			t.Errorf("cut to %d: %q; want %q", n, got, want)
		}
	}
}
