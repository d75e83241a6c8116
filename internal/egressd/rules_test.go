package egressd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/policy"
)

// A book is bawn's part: it answers with the rules of a test.
type book struct {
	current *currentPolicy
	rules   egress.Rules
	asked   int
	silent  bool
}

func (b *book) send(m egress.Message) error {
	b.asked++
	if m.Stale && !b.silent {
		b.current.take(b.rules)
	}
	return nil
}

// TestRulesWhileItRuns: a rule that is added to a file holds for the next connection;
// nothing is asked as long as no file changes.
func TestRulesWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "policy.toml")
		never := egress.Rules{Rules: []bawn.Rule{{ID: "r:1", Kind: bawn.Network, Pattern: "a.example", Verdict: bawn.Deny, Priority: 100, Source: bawn.User}}}
		b := &book{}
		var err error
		b.current, err = newCurrentPolicy(&egress.Config{Watch: []egress.Watched{{Path: file, Stamp: atomicfile.StampOf(file)}}}, b.send)
		if err != nil {
			t.Fatal(err)
		}
		d := b.current.decider(policy.Egress{Session: policy.Question{Mode: bawn.ModePermissive, Autonomy: bawn.AutonomyFull, Contained: bawn.ContainedFully}})
		says := func(what string, verdict bawn.Verdict, rule string, asked int) {
			t.Helper()
			got, err := d.Decide(context.Background(), bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: "a.example:443"})
			if err != nil || got.Verdict != verdict || !strings.HasPrefix(got.Rule, rule) || b.asked != asked {
				t.Errorf("%s: %+v, %v, asked %d times; want %v by %q, %d", what, got, err, b.asked, verdict, rule, asked)
			}
		}
		changed := func(text string, r egress.Rules) {
			t.Helper()
			b.rules = r
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		says("control", bawn.Ask, "", 0)
		says("again", bawn.Ask, "", 0)
		changed("1", never)
		says("a rule that is new", bawn.Deny, "r:1", 1)
		says("again", bawn.Deny, "r:1", 1)
		changed("22", egress.Rules{Rules: never.Rules, Settling: true})
		says("while files settle", bawn.Deny, "r:1", 2)
		b.rules = egress.Rules{}
		says("and have", bawn.Ask, "", 3)
		says("again", bawn.Ask, "", 3)
		changed("333", egress.Rules{Failed: "the file of answers was changed"})
		says("rules that can't be had", bawn.Deny, ruleNoRules, 4)
		b.rules = egress.Rules{}
		says("and now can", bawn.Ask, "", 5)
		b.silent = true
		changed("4444", egress.Rules{})
		says("a bawn that says nothing", bawn.Deny, ruleNoRules, 6)
		b.silent = false
		says("and speaks again", bawn.Ask, "", 7)
	})
}
