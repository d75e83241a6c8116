package policy

import (
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestParseFileNamesTheMistake gives one mistake at a time and wants its place
// and what would be right.
func TestParseFileNamesTheMistake(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"[[rule]]\npriority = \"x\"", `f:2:12: "rule.priority" has a value of another type; want a whole number`},
		{"[[rule]]\npriority = 1.5", `f:2:12: "rule.priority" has a value of another type; want a whole number`},
		{"[[rule]]\nmatch = \"x\"", `f:2:9: "rule.match" has a value of another type; want a list of strings`},
		{"[[rule]]\nid = 3", `f:2:6: "rule.id" has a value of another type; want a string`},
		{"rule = 3", `f:1:8: "rule" has a value of another type; want tables [[rule]]`},
		{"[[rules]]\nx = 1", `f:1:3: unknown key "rules"; want [[rule]]`},
		{"[[rule]]\nx = 1", `f:2:1: unknown key "x" in "[[rule]]"; want id, kind,`},
		{"[[rule]]\nkind = \"network\"\npattern = \"http://x/\"\nverdict = \"deny\"", `f:1: rule 1: rule "user:1": the port "//x/" of the host "http"; want NAME`},
		{"# \x00", `f:1:3: the file has a NUL byte; want TOML text`},
		{"[[rule]\n", `f:1:7: expected ']]' to close array table name`},
		{"[[rule]]\nkind = \"comand\"", `f:2:8: unknown kind "comand"; want one of ["filesystem" "network" "command" "tool"]`},
		{"[[rule]]\nkind = \"tool\"\noperations = [\"exec\"]\npattern = \"x\"\nverdict = \"deny\"", `f:1: rule 1: the operation "exec" is not of the kind tool; want one of [call]`},
		{"[[rule]]\nkind = \"command\"\noperations = [9]\npattern = \"x\"\nverdict = \"deny\"", `f:1: rule 1: the operation "invalid" is not of the kind command`},
	} {
		if _, err := ParseFile("f", []byte(tt.text), bawn.User); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q: %v; want %s", tt.text, err, tt.want)
		}
	}
	if rules, err := ParseFile("f", []byte("[[rule]]\nkind = \"tool\"\noperations = [\"call\"]\npattern = \"x\"\nverdict = \"deny\""), bawn.User); err != nil || len(rules) != 1 {
		t.Errorf("%v, %v; want one rule", rules, err)
	}
}

// TestExplain: the parts and the decision say the same, and each command
// stands with its own steps.
func TestExplain(t *testing.T) {
	p := corpusPolicy(t)
	q := ask4("timeout 5 make; eval \"$X\"")
	d, parts := p.Explain(&q)
	if d.Verdict != bawn.Ask || len(parts) != 4 || parts[0].Command != nil || parts[2].Command.Words[0].Text != "make" || parts[2].Command.Via[0] != "timeout" {
		t.Errorf("%v: %+v", d.Verdict, parts)
	}
	var trace []bawn.Step
	least := bawn.Allow
	for _, part := range parts {
		trace = append(append(trace, bawn.Step{Stage: stagePart, Why: part.Text}), part.Steps...)
		least = min(least, part.Verdict)
	}
	if least != d.Verdict || Replay(trace) != d.Verdict || len(trace) != len(d.Trace) {
		t.Errorf("the parts say %v, %v; the decision is %v", least, Replay(trace), d.Verdict)
	}
	q.Action = bawn.Action{Kind: bawn.Tool, Operation: bawn.Call, Resource: "x"}
	if d, parts := p.Explain(&q); len(parts) != 1 || parts[0].Verdict != d.Verdict || parts[0].Text != "call x" {
		t.Errorf("a tool: %+v", parts)
	}
	q.Action = bawn.Action{}
	if d, parts := p.Explain(&q); d.Verdict != bawn.Deny || parts != nil {
		t.Errorf("no action: %v, %+v", d.Verdict, parts)
	}
}
