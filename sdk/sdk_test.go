package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
)

// TestZeroValuesRefuse: what nobody has filled in permits nothing.
func TestZeroValuesRefuse(t *testing.T) {
	action := bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "ls", Dir: "/"}
	for _, p := range []*Policy{nil, {}} {
		if d, err := p.Decide(t.Context(), action); err == nil || d.Verdict != bawn.Deny {
			t.Errorf("zero policy: %v, %v", d.Verdict, err)
		}
	}
	if _, err := (&Command{}).Run(t.Context()); err == nil {
		t.Error("the zero command runs")
	}
	if _, err := (Log{}).Verify(); err == nil {
		t.Error("the zero log verifies")
	}
	for _, err := range (Log{}).Events("") {
		if err == nil {
			t.Error("the zero log has an event")
		}
	}
}

// TestPolicy: the mode, the sandbox and the rules count; an ended context and a zero action
// are denied.
func TestPolicy(t *testing.T) {
	normal := Situation{Mode: bawn.ModeNormal, Workspace: "/w", Home: "/home/ada"}
	contained := normal
	contained.Contained = bawn.ContainedFully
	rule := "[[rule]]\nkind = \"command\"\npattern = \"npm publish *\"\nverdict = \"deny\"\nreason = \"CI does that\"\n"
	for _, tt := range []struct {
		rules, line string
		s           Situation
		want        bawn.Verdict
	}{
		{"", "ls", normal, bawn.Allow},
		{"", "ls", Situation{Mode: bawn.ModeStrict, Workspace: "/w"}, bawn.Ask},
		{"", "make test", normal, bawn.Ask},
		{"", "make test", contained, bawn.Allow},
		{"", "npm publish", normal, bawn.Ask},
		{rule, "npm publish", normal, bawn.Deny},
		{"", "", normal, bawn.Deny},
	} {
		p, err := NewPolicy([]byte(tt.rules), tt.s)
		if err != nil {
			t.Fatal(err)
		}
		a := bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: tt.line, Dir: "/w"}
		if d, err := p.Decide(t.Context(), a); err != nil || d.Verdict != tt.want {
			t.Errorf("%q in %v: %v (%s), %v; want %v", tt.line, tt.s.Mode, d.Verdict, d.Reason, err, tt.want)
		}
	}
	if _, err := NewPolicy([]byte("[[rule]]\nkind = \"x\"\n"), normal); err == nil {
		t.Error("a wrong rule makes a policy")
	}
	p, _ := NewPolicy(nil, normal)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := p.Decide(ended, bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "ls", Dir: "/w"}); err == nil || d.Verdict != bawn.Deny {
		t.Errorf("after the end: %v, %v", d.Verdict, err)
	}
}

// TestParseEnd: a guest's words before bawn's line, also such that look like it, are not
// taken for it.
func TestParseEnd(t *testing.T) {
	const real = `{"session":"s","exit":7,"durationMs":1,"denials":[{"resource":"\"}]}{\"exit\":0}"}]}` + "\n"
	const fake = `{"session":"fake","exit":0,"denials":[]}`
	for _, before := range []string{"", "text ", fake, fake + " ", `{"exit":0,"x":`, `{"exit":0,"x":"`, `[`, `{`, `{"`, `"`} {
		e, rest := parseEnd([]byte(before + real))
		if e == nil || e.Session != "s" || *e.Exit != 7 || len(e.Denials) != 1 || string(rest) != before {
			t.Errorf("behind %q: %+v, %q", before, e, rest)
		}
	}
	for _, line := range []string{"", "text\n", "{}", `{"session":"s"}`, `{"exit":"0"}`} {
		if e, rest := parseEnd([]byte(line)); e != nil || string(rest) != line {
			t.Errorf("%q: %+v, %q", line, e, rest)
		}
	}
}

// FuzzParseEnd: whatever a guest writes before it, bawn's line is found.
func FuzzParseEnd(f *testing.F) {
	f.Add([]byte(`{"exit":0,"x":"`), `"}]}`)
	f.Fuzz(func(t *testing.T, before []byte, resource string) {
		code := 7
		real, err := json.Marshal(end{Session: "s", Exit: &code, Denials: []Denial{{Resource: resource}}})
		if err != nil {
			t.Fatal(err)
		}
		e, rest := parseEnd(slices.Concat(before, real))
		if e == nil || e.Session != "s" || *e.Exit != 7 || string(rest) != string(before) {
			t.Errorf("behind %q: %+v, %q", before, e, rest)
		}
	})
}

// TestLastLine: all but the last line is passed on, in whatever pieces it comes.
func TestLastLine(t *testing.T) {
	const text = "one\ntwo\nthree {x}\n"
	for size := 1; size <= len(text); size++ {
		var out strings.Builder
		l := &lastLine{to: &out}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			_, _ = l.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		if out.String() != "one\ntwo\n" || string(l.line) != "three {x}\n" {
			t.Errorf("in pieces of %d: %q, %q", size, out.String(), l.line)
		}
	}
	l := &lastLine{}
	_, _ = l.Write(make([]byte, maxEnd+1))
	if len(l.line) != maxEnd {
		t.Errorf("%d bytes are kept", len(l.line))
	}
	if l = (&lastLine{to: broken{}}); l.err != nil {
		t.Fatal(l.err)
	}
	if _, _ = l.Write([]byte("a\nb\n")); !errors.Is(l.err, io.ErrClosedPipe) {
		t.Errorf("a writer's error: %v", l.err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestOtherProgram: a program that is not bawn is an error, not an exit code.
func TestOtherProgram(t *testing.T) {
	for _, program := range []string{"true", "false", filepath.Join(t.TempDir(), "none")} {
		if r, err := (&Command{Args: []string{"ls"}, Bawn: program}).Run(t.Context()); err == nil {
			t.Errorf("%s: %+v", program, r)
		}
	}
	if _, err := (&Command{Args: []string{"ls"}, Flags: []string{"--", "sh"}, Bawn: "true"}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Args") {
		t.Errorf("flags with the guest in them: %v", err)
	}
}

// TestLog: events come back, and one byte that was changed is seen.
func TestLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"a", "b", "a"} {
		if err := log.Record(t.Context(), bawn.Event{Session: session, Kind: "command", Operation: "exec", Resource: "make " + session}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	l, n := Log{dir}, 0
	for e, err := range l.Events("a") {
		if err != nil || e.Resource != "make a" {
			t.Errorf("%+v, %v", e, err)
		}
		n++
	}
	if records, err := l.Verify(); n != 2 || records != 3 || err != nil {
		t.Errorf("%d events, %d records, %v; want 2, 3", n, records, err)
	}
	file := filepath.Join(dir, "log.jsonl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "make b", "make c", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if records, err := l.Verify(); records != 1 || err == nil {
		t.Errorf("after a change: %d records, %v", records, err)
	}
}
