package approval

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/bawn-dev/bawn"
)

// TestChoices: a question offers no answer that would be taken for less or more than its
// words say. The legend and the line about its reach agree.
func TestChoices(t *testing.T) {
	rule := []bawn.Rule{{ID: "r"}}
	for name, tt := range map[string]struct {
		q      Question
		legend string
		reach  string
	}{
		"a command":         {Question{Action: bawn.Action{Kind: bawn.Command}, Always: rule}, "y yes, once; s for this session; a always; n no; N never", ""},
		"without a rule":    {Question{Action: bawn.Action{Kind: bawn.Command}}, "y yes, once; s for this session; n no; N never", ""},
		"a single use":      {Question{Action: bawn.Action{Kind: bawn.Command}, Single: true}, "y yes, once; n no; N never", "this one time, whatever comes again"},
		"for a workspace":   {Question{Action: bawn.Action{Kind: bawn.Command}, Holds: "destroying"}, "y yes, for this session; n no; N never", "destroying, in this session"},
		"a connection":      {Question{Action: bawn.Action{Kind: bawn.Network}, Always: rule}, "y yes, for this session; a always; n no; N never", ""},
		"a push":            {Question{Action: bawn.Action{Kind: bawn.Network, Args: []string{"push", "refs/heads/fix"}}}, "y yes, once; s for this session; n no; N never", ""},
		"a push that lends": {Question{Action: bawn.Action{Kind: bawn.Network, Args: []string{"push", "refs/*"}}, Holds: "pushing"}, "y yes, for this session; n no; N never", "pushing, in this session"},
		"a single request":  {Question{Action: bawn.Action{Kind: bawn.Network}, Single: true}, "y yes, once; n no; N never", "this one time, whatever comes again"},
	} {
		choices := tt.q.Choices()
		if got := Legend(choices, "? help"); got != tt.legend+"; ? help" {
			t.Errorf("%s: the legend is %q, want %q", name, got, tt.legend)
		}
		if got := tt.q.Reach(); got != tt.reach {
			t.Errorf("%s: a yes is for %q, want %q", name, got, tt.reach)
		}
		for _, c := range choices {
			said := strings.Contains(c.Words, "session")
			if c.Verdict == bawn.Allow && said != (c.Scope == bawn.ForSession) {
				t.Errorf("%s: %q stands for the scope %v", name, c.Words, c.Scope)
			}
			a := bawn.Answer{Verdict: c.Verdict, Scope: c.Scope, By: "x"}
			if err := checkAnswer(&tt.q, a); err != nil {
				t.Errorf("%s: offers %q, and refuses it: %v", name, c.Words, err)
			}
		}
	}
}

// TestSingleUseInTheQueue: who answers past the frontends gets no more than once either.
// The control is the same answer to a question that may be answered for the session.
func TestSingleUseInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue(t, Options{})
		single := ask("s", "git push --force")
		single.Single = true
		p, control := begin(q, single), begin(q, ask("s", "make"))
		synctest.Wait()
		wide := yes
		for _, wide.Scope = range []bawn.Scope{bawn.ForSession, bawn.Always} {
			if _, err := q.Answer(t.Context(), p.ID, wide); err == nil || !strings.Contains(err.Error(), "once") {
				t.Errorf("a yes with the scope %v: %v", wide.Scope, err)
			}
		}
		wide.Scope = bawn.ForSession
		if _, err := q.Answer(t.Context(), control.ID, wide); err != nil {
			t.Errorf("control: %v", err)
		}
		wide.Scope = bawn.Once
		if _, err := q.Answer(t.Context(), p.ID, wide); err != nil {
			t.Errorf("a yes once: %v", err)
		}
	})
}

// TestDigestOfKind: what is alike in one zone is not in another, and not an action.
func TestDigestOfKind(t *testing.T) {
	d := DigestOfKind("execution", "destroying")
	a := bawn.Action{Kind: bawn.Command, Resource: "destroying"}
	if d != DigestOfKind("execution", "destroying") || d == DigestOfKind("network", "destroying") || d == DigestOfKind("execution", "pushing") || d == DigestOf("execution", &a, "") {
		t.Error("two kinds are one, or one is two")
	}
}
