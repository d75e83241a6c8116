package overlay

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
)

// An asked is an action with a pattern that a rule about it may have.
type asked struct {
	action  bawn.Action
	pattern string
}

func do(kind bawn.Kind, op bawn.Operation, resource, pattern string) asked {
	return asked{bawn.Action{Kind: kind, Operation: op, Resource: resource, Dir: "/p"}, pattern}
}

// actions are of every kind: harmless, unknown, dangerous, opaque, protected.
var actions = []asked{
	do(bawn.Command, bawn.Exec, "ls", "ls"),
	do(bawn.Command, bawn.Exec, "no-such-program x", "no-such-program x"),
	do(bawn.Command, bawn.Exec, "git push --force", "git push --force"),
	do(bawn.Command, bawn.Exec, "cat /home/u/.ssh/id_rsa", "cat /home/u/.ssh/id_rsa"),
	do(bawn.Filesystem, bawn.Write, "/p/a", "/p/a"),
	do(bawn.Filesystem, bawn.Write, "/state/x", "/state/x"),
	do(bawn.Filesystem, bawn.Write, "/opt/x", "/opt/x"),
	do(bawn.Filesystem, bawn.Write, "/p/.git/hooks/pre-commit", "/p/.git/hooks/pre-commit"),
	do(bawn.Filesystem, bawn.Read, "/home/u/.ssh/id_rsa", "/home/u/.ssh/id_rsa"),
	do(bawn.Network, bawn.Connect, "example.org:443", "example.org"),
	do(bawn.Tool, bawn.Call, "x/y", "x/y"),
}

var places = []bawn.Mount{{Path: "/", Access: bawn.ReadOnly}, {Path: "/p", Access: bawn.ReadWrite}, {Path: "/state", Access: bawn.ReadWrite}, {Path: "/state/settings", Access: bawn.ReadOnly}}

func plain(p *policy.Policy, q *policy.Question) bawn.Decision { return p.Decide(q) }

// overlays are all of them, by name.
var overlays = map[string]Decide{
	"Later": Later, "Gateway": Gateway, "Places": Places(places), "Elsewhere": Elsewhere("/q", "/p"),
	"Within":    Within(func(name string) bool { return name == "/p/a" || name == "/p/.git/hooks/pre-commit" }),
	"Container": Container(plain, false), "Container of a split session": Container(plain, true),
}

func question(a bawn.Action, mode bawn.Mode, contained bool) policy.Question {
	c := bawn.Contained{}
	if contained {
		c = bawn.ContainedFully
	}
	return policy.Question{Action: a, Mode: mode, Autonomy: policy.AutonomyOf(mode), Contained: c, Workspace: "/p", Home: "/home/u", System: "linux"}
}

func mustPolicy(t interface{ Fatal(...any) }, rules ...bawn.Rule) *policy.Policy {
	p, err := policy.New(rules, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// No overlay lifts a person's denial, from any source and whatever the built-in
// rules say of the same action.
func TestNothingLiftsADenial(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom(actions).Draw(t, "action")
		source := rapid.SampledFrom([]bawn.Source{bawn.User, bawn.Managed, bawn.Project}).Draw(t, "source")
		mode := rapid.SampledFrom([]bawn.Mode{bawn.ModePlan, bawn.ModeStrict, bawn.ModeSafe, bawn.ModeNormal, bawn.ModeAuto, bawn.ModePermissive}).Draw(t, "mode")
		p := mustPolicy(t, bawn.Rule{ID: "test:1", Kind: a.action.Kind, Pattern: a.pattern, Verdict: bawn.Deny, Priority: 1000, Source: source, Reason: "no"})
		q := question(a.action, mode, rapid.Bool().Draw(t, "contained"))
		if d := p.Decide(&q); d.Verdict != bawn.Deny || d.Source != source {
			t.Fatalf("the rule does not meet %q: %+v", a.action.Resource, d)
		}
		for name, decide := range overlays {
			if d := decide(p, &q); d.Verdict != bawn.Deny {
				t.Errorf("%s made %s of %q, which %s denies: %s", name, d.Verdict, a.action.Resource, source, d.Reason)
			}
		}
	})
}

// Each overlay changes what it is for, and nothing else.
func TestOverlays(t *testing.T) {
	const ask, allow, deny = bawn.Ask, bawn.Allow, bawn.Deny
	for _, c := range []struct {
		overlay, resource string
		mode              bawn.Mode
		contained         bool
		without, with     bawn.Verdict
		rule              string
	}{
		{"Later", "example.org:443", bawn.ModeNormal, true, ask, allow, RuleLater},
		{"Later", "cat /home/u/.ssh/id_rsa", bawn.ModeNormal, true, deny, deny, ""},
		{"Later", "ls", bawn.ModeNormal, true, allow, allow, ""},
		{"Gateway", "x/y", bawn.ModeNormal, true, ask, allow, RuleLater},
		{"Gateway", "/home/u/.ssh/id_rsa", bawn.ModeNormal, true, deny, deny, ""},
		{"Gateway", "ls", bawn.ModeNormal, true, allow, allow, ""},
		{"Places", "/state/x", bawn.ModeNormal, true, ask, allow, policy.RulePath},
		{"Places", "/opt/x", bawn.ModeNormal, true, ask, deny, policy.RulePath},
		{"Places", "/opt/x", bawn.ModeStrict, true, ask, ask, ""},
		{"Places", "/p/a", bawn.ModeNormal, true, allow, allow, ""},
		{"Elsewhere", "ls", bawn.ModePermissive, true, allow, deny, RuleElsewhere},
		{"Within", "/p/a", bawn.ModeNormal, false, ask, allow, ""},
		{"Within", "/p/a", bawn.ModeStrict, false, ask, ask, ""},
		{"Within", "/opt/x", bawn.ModeNormal, false, ask, ask, ""},
		{"Within", "/p/.git/hooks/pre-commit", bawn.ModeNormal, false, deny, deny, ""},
		{"Container", "no-such-program x", bawn.ModeNormal, false, ask, allow, RuleContainer},
		{"Container", "example.org:443", bawn.ModeNormal, true, ask, ask, ""},
		{"Container of a split session", "no-such-program x", bawn.ModeNormal, false, ask, ask, ""},
	} {
		p := mustPolicy(t)
		for _, a := range actions {
			if a.action.Resource != c.resource {
				continue
			}
			q := question(a.action, c.mode, c.contained)
			without, with := p.Decide(&q), overlays[c.overlay](p, &q)
			if without.Verdict != c.without || with.Verdict != c.with || c.rule != "" && with.Rule != c.rule || with.Reason == "" {
				t.Errorf("%s of %q, mode %s: %s without, %+v with; want %s, %s", c.overlay, c.resource, c.mode, without.Verdict, with, c.without, c.with)
			}
		}
	}
}

// The deepest place around a path counts.
func TestDeepestPlace(t *testing.T) {
	p := mustPolicy(t)
	for name, want := range map[string]bawn.Verdict{"/state/x": bawn.Allow, "/state/settings/x": bawn.Deny, "/state/../opt": bawn.Deny} {
		q := question(bawn.Action{Kind: bawn.Filesystem, Operation: bawn.Write, Resource: name, Dir: "/p"}, bawn.ModeNormal, true)
		if d := Places(places)(p, &q); d.Verdict != want {
			t.Errorf("%q: %+v, want %s", name, d, want)
		}
	}
}

type says struct {
	verdict bawn.Verdict
	err     error
}

func (s says) Decide(context.Context, bawn.Action) (bawn.Decision, error) {
	return bawn.Decision{Verdict: s.verdict}, s.err
}

// Insist asks where another would allow, and changes nothing else.
func TestInsist(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		says   says
		reason string
		want   bawn.Verdict
	}{
		{says{bawn.Allow, nil}, "", bawn.Allow},
		{says{bawn.Allow, nil}, "changed", bawn.Ask},
		{says{bawn.Ask, nil}, "changed", bawn.Ask},
		{says{bawn.Deny, nil}, "changed", bawn.Deny},
		{says{bawn.Allow, broken}, "changed", bawn.Ask},
	} {
		d, err := Insist(c.says, "builtin:x", c.reason).Decide(t.Context(), bawn.Action{})
		if d.Verdict != c.want || !errors.Is(err, c.says.err) {
			t.Errorf("%+v, because %q: %+v, %v", c.says, c.reason, d, err)
		}
		if lowered := c.says.verdict == bawn.Allow && c.want == bawn.Ask; lowered != (d.Rule == "builtin:x" && d.Reason == "changed" && d.Source == bawn.Builtin) {
			t.Errorf("%+v, because %q: %+v", c.says, c.reason, d)
		}
	}
}
