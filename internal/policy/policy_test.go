package policy

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

func TestMatrixGolden(t *testing.T) {
	var b strings.Builder
	row := func(cells []any) {
		line := fmt.Sprintf(strings.Repeat("%-17s", len(cells)), cells...)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	head := []any{"mode"}
	for _, c := range allClasses() {
		head = append(head, c)
	}
	row(head)
	for m := range bawn.Mode(len(bawn.ModeNames())) {
		cells := []any{m}
		for _, c := range allClasses() {
			cells = append(cells, Matrix(m, c))
		}
		row(cells)
	}
	golden.Compare(t, "testdata/matrix.golden", b.String())
}

func TestMatrixDeniesWhatItDoesNotKnow(t *testing.T) {
	known := func(m bawn.Mode, c Class) bool {
		return int(m) < len(bawn.ModeNames()) && c >= ReadOnly && c <= OutsideProject
	}
	for m := range bawn.Mode(255) {
		for c := range Class(255) {
			if v := Matrix(m, c); !known(m, c) && v != bawn.Deny {
				t.Errorf("Matrix(%d, %d) = %v, want deny", m, c, v)
			}
		}
	}
	if v := Matrix(255, 255); v != bawn.Deny {
		t.Errorf("Matrix(255, 255) = %v, want deny", v)
	}
}

// TestMatrixIsMonotone: what is worse is never allowed more easily.
func TestMatrixIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := bawn.Mode(rapid.IntRange(0, len(bawn.ModeNames())-1).Draw(t, "mode"))
		a := rapid.SampledFrom(allClasses()).Draw(t, "a")
		b := rapid.SampledFrom(allClasses()).Draw(t, "b")
		if a < b && Matrix(m, a) < Matrix(m, b) {
			t.Fatalf("%v: %v is %v, but %v is %v", m, a, Matrix(m, a), b, Matrix(m, b))
		}
	})
}

func TestNoModeIsSilentAboutDestruction(t *testing.T) {
	for m := range bawn.Mode(len(bawn.ModeNames())) {
		for _, c := range []Class{Destructive, OutsideProject} {
			if Matrix(m, c) == bawn.Allow {
				t.Errorf("mode %v allows %v without a question", m, c)
			}
		}
	}
}

func TestClassNames(t *testing.T) {
	if got := len(allClasses()); got != len(classNames)-1 {
		t.Errorf("%d classes for %d names", got, len(classNames)-1)
	}
	for _, c := range []Class{0, OutsideProject + 1, 255} {
		if c.String() != "invalid" {
			t.Errorf("Class(%d) reads %q, want invalid", c, c)
		}
	}
}

func TestLaunch(t *testing.T) {
	run := bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "sh", Args: []string{"sh"}}
	tests := []struct {
		name   string
		in     string
		action bawn.Action
		want   bawn.Verdict
		rule   string
	}{
		{"the human", "", run, bawn.Allow, RuleRun},
		{"a guest", "s1", run, bawn.Deny, RuleNoNesting},
		{"zero action", "", bawn.Action{}, bawn.Deny, RuleUnknown},
		{"no resource", "", bawn.Action{Kind: bawn.Command, Operation: bawn.Exec}, bawn.Deny, RuleUnknown},
		{"a file", "", bawn.Action{Kind: bawn.Filesystem, Operation: bawn.Exec, Resource: "sh"}, bawn.Deny, RuleUnknown},
		{"a read", "", bawn.Action{Kind: bawn.Command, Operation: bawn.Read, Resource: "sh"}, bawn.Deny, RuleUnknown},
		{"a connection", "", bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: "example.com:443"}, bawn.Deny, RuleUnknown},
		{"a guest's connection", "s1", bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: "x:1"}, bawn.Deny, RuleUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := Launch{InSession: tt.in}.Decide(t.Context(), tt.action)
			if err != nil || d.Verdict != tt.want || d.Rule != tt.rule {
				t.Errorf("got %v by %q, %v; want %v by %q", d.Verdict, d.Rule, err, tt.want, tt.rule)
			}
			if d.Source != bawn.Builtin || d.Reason == "" || len(d.Trace) != 1 || d.Trace[0].Verdict != tt.want {
				t.Errorf("the decision %+v does not say why", d)
			}
		})
	}
}

// TestLaunchAllowsNothingElse tries every kind and operation there can be.
func TestLaunchAllowsNothingElse(t *testing.T) {
	for k := range bawn.Kind(255) {
		for o := range bawn.Operation(255) {
			a := bawn.Action{Kind: k, Operation: o, Resource: "x"}
			d, _ := Launch{}.Decide(t.Context(), a)
			if start := k == bawn.Command && o == bawn.Exec; (d.Verdict == bawn.Allow) != start {
				t.Errorf("%v %v is %v", k, o, d.Verdict)
			}
		}
	}
}

// TestPrepare: what is read ahead is what a decision reads by itself.
func TestPrepare(t *testing.T) {
	Prepare()
	q := ask4("cat ~/.ssh/id_ed25519")
	if d := corpusPolicy(t).Decide(&q); d.Verdict != bawn.Deny || len(compiledBuiltins()) != len(Builtins()) {
		t.Errorf("%v by %q, with %d of %d rules", d.Verdict, d.Rule, len(compiledBuiltins()), len(Builtins()))
	}
}

// allClasses lists the classes in order.
func allClasses() []Class {
	return []Class{ReadOnly, RemoteAction, LocalMutation, Destructive, OutsideProject}
}
