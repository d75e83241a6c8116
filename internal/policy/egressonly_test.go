package policy

import (
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestEgressOnlyEntries: what no entry names is denied and never asked about,
// although a rule of the user's and the freest mode would allow it.
func TestEgressOnlyEntries(t *testing.T) {
	e := egressOf(t, bawn.Rule{ID: "mine", Kind: bawn.Network, Pattern: "other.test", Verdict: bawn.Allow, Source: bawn.User, Reason: "mine"})
	e.Session.Mode, e.Session.Autonomy = bawn.ModePermissive, bawn.AutonomyFull
	if d := e.says(t, reach("other.test:443")); d.Verdict != allow {
		t.Fatalf("control: %v, %s", d.Verdict, d.Rule)
	}
	e.Only = true
	for _, to := range []string{"other.test:443", "nobody.test:443", "plain.test:22", "10.9.9.9:443", "localhost:80"} {
		if d := e.says(t, reach(to)); d.Verdict != deny || d.Rule != RuleZone {
			t.Errorf("%s: %v, %s", to, d.Verdict, d.Rule)
		}
	}
	if d := e.says(t, reach("plain.test:443")); d.Verdict != allow {
		t.Errorf("an entry: %v, %s", d.Verdict, d.Rule)
	}
}

// TestEgressSealed is the same of a session that has exactly what it was given.
func TestEgressSealed(t *testing.T) {
	e := egressOf(t, bawn.Rule{ID: "mine", Kind: bawn.Network, Pattern: "other.test", Verdict: bawn.Allow, Source: bawn.User, Reason: "mine"})
	e.Session.Mode, e.Session.Autonomy = bawn.ModePermissive, bawn.AutonomyFull
	if d := e.says(t, reach("other.test:443")); d.Verdict != allow {
		t.Fatalf("control: %v, %s", d.Verdict, d.Rule)
	}
	e.Sealed = true
	for _, to := range []string{"other.test:443", "nobody.test:443", "10.9.9.9:443", "localhost:80"} {
		if d := e.says(t, reach(to)); d.Verdict != deny || d.Rule != RuleSealed {
			t.Errorf("%s: %v, %s", to, d.Verdict, d.Rule)
		}
	}
	if d := e.says(t, reach("plain.test:443")); d.Verdict != allow {
		t.Errorf("an entry: %v, %s", d.Verdict, d.Rule)
	}
}

// TestUnlistedRequestsWithoutHuman: a request that no entry of its host lists is
// denied, and not asked about, in a session that asks nobody.
func TestUnlistedRequestsWithoutHuman(t *testing.T) {
	unlisted := reach("https://api.test/v1/x", "PUT")
	e := egressOf(t)
	if d := e.says(t, unlisted); d.Verdict != ask {
		t.Fatalf("control: %v, %s", d.Verdict, d.Rule)
	}
	for rule, e := range map[string]Egress{
		RuleZone:   {Policy: e.Policy, Session: e.Session, Rules: e.Rules, Only: true},
		RuleSealed: {Policy: e.Policy, Session: e.Session, Rules: e.Rules, Sealed: true},
	} {
		if d := e.says(t, unlisted); d.Verdict != deny || d.Rule != rule {
			t.Errorf("%v by %q; want a denial by %q", d.Verdict, d.Rule, rule)
		}
		if d := e.says(t, reach("https://api.test/v1/x", "GET")); d.Verdict != allow {
			t.Errorf("%s: a request that is listed: %v by %q", rule, d.Verdict, d.Rule)
		}
	}
}
