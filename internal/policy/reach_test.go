package policy

import (
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// TestReach: what a yes is for follows from the cell of the table, and only where nothing
// else asks.
func TestReach(t *testing.T) {
	p := corpusPolicy(t)
	ws := `destroying what no checkpoint covers in "` + ask4("x").Workspace + `"`
	for _, tt := range []struct {
		line   string
		mode   bawn.Mode
		inside bool
		holds  string
		single bool
	}{
		{"rm -rf build", bawn.ModeNormal, true, ws, false}, {"rm -rf build; git reset --hard", bawn.ModePermissive, true, ws, false}, {"make && rm -rf build", bawn.ModeNormal, true, ws, false},
		{"rm -rf build", bawn.ModeSafe, true, "", false}, {"rm -rf build", bawn.ModeStrict, true, "", false}, {"rm -rf build", bawn.ModeNormal, false, "", false},
		{"rm -rf build; git push", bawn.ModeNormal, true, "", false}, {"git push", bawn.ModeNormal, true, "", false}, {"make", bawn.ModeNormal, true, "", false},
		{"git push --force", bawn.ModeNormal, true, "", true}, {"git push --force", bawn.ModeNormal, false, "", true}, {"git push -f", bawn.ModeStrict, true, "", true},
		{"rm -rf build; git push --force", bawn.ModeNormal, true, "", true}, {"ls; git push --force", bawn.ModeSafe, true, "", true}, {"git push --force", bawn.ModePlan, true, "", false},
	} {
		q := ask4(tt.line)
		q.Mode, q.Autonomy, q.Contained = tt.mode, AutonomyOf(tt.mode), within(tt.inside)
		if d := p.Decide(&q); d.Holds != tt.holds || d.Single != tt.single {
			t.Errorf("%q in %v, inside %t: %v holds for %q, single %t; want %q, %t", tt.line, tt.mode, tt.inside, d.Verdict, d.Holds, d.Single, tt.holds, tt.single)
		}
	}
	q := ask4("rm -rf build")
	q.Contained = bawn.ContainedFully
	asks, err := New([]bawn.Rule{{ID: "corp", Kind: bawn.Command, Pattern: "rm *", Verdict: bawn.Ask, Priority: 5, Source: bawn.Managed}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := asks.Decide(&q); d.Verdict != ask || d.Holds != "" {
		t.Errorf("a manager's question: %v, holds for %q", d.Verdict, d.Holds)
	}
}

// TestReachOfALentSecret: a yes is for the secret and the operation, unless the request
// carries more than that.
func TestReachOfALentSecret(t *testing.T) {
	h, err := netrule.Compile(bawn.Egress{Hosts: []string{"api.example"}})
	if err != nil {
		t.Fatal(err)
	}
	holds := func(mode bawn.Mode, args ...string) string {
		e := Egress{Policy: corpusPolicy(t), Rules: h, Session: Question{Mode: mode, Autonomy: AutonomyOf(mode), Contained: bawn.ContainedFully}}
		d, err := e.Decide(t.Context(), bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: "https://api.example/issues/*", Args: args})
		if err != nil || d.Verdict != ask {
			t.Errorf("%v %v: %v, %v", mode, args, d.Verdict, err)
		}
		return d.Holds
	}
	lent := func(lent, foreign, found, over []string) []string {
		return append([]string{"POST"}, Carries(Carried{Lent: lent, Foreign: foreign, Found: found, Over: over})...)
	}
	one := []string{"gh"}
	if got, want := holds(bawn.ModeNormal, lent(one, nil, nil, nil)...), `POST "/issues/*" at api.example:443 with the secret "gh"`; got != want {
		t.Errorf("holds for %q; want %q", got, want)
	}
	for _, args := range [][]string{lent(one, one, nil, nil), lent(one, nil, one, nil), lent(one, nil, nil, one), lent(nil, one, nil, nil)} {
		if got := holds(bawn.ModeNormal, args...); got != "" {
			t.Errorf("%q holds for %q", args, got)
		}
	}
	for _, mode := range []bawn.Mode{bawn.ModeSafe, bawn.ModeStrict} {
		if got := holds(mode, lent(one, nil, nil, nil)...); got != "" {
			t.Errorf("in %v it holds for %q", mode, got)
		}
	}
}

// TestOfferedSecret: a secret that the session was not lent asks in every mode but plan,
// also where an entry names the operation, and says which it is.
func TestOfferedSecret(t *testing.T) {
	h, err := netrule.Compile(bawn.Egress{Git: []string{"forge.example push team/* refs/heads/**"}, HTTP: []string{"api.example POST /**"}})
	if err != nil {
		t.Fatal(err)
	}
	offered := Carries(Carried{Offered: []string{"tok"}})
	for mode := bawn.ModePlan; mode <= bawn.ModePermissive; mode++ {
		for _, a := range []bawn.Action{
			{Resource: "https://forge.example/team/app.git", Args: append([]string{"push", "refs/*"}, offered...)},
			{Resource: "https://forge.example/team/app.git", Args: append([]string{"push", "refs/heads/x"}, offered...)},
			{Resource: "https://api.example/x", Args: append([]string{"POST"}, offered...)}, {Resource: "https://api.example/x", Args: append([]string{"GET"}, offered...)},
		} {
			a.Kind, a.Operation = bawn.Network, bawn.Connect
			e := Egress{Policy: corpusPolicy(t), Rules: h, Session: Question{Mode: mode, Autonomy: AutonomyOf(mode), Contained: bawn.ContainedFully}}
			d, err := e.Decide(t.Context(), a)
			want, once := ask, mode == bawn.ModeNormal || mode == bawn.ModeAuto || mode == bawn.ModePermissive
			if mode == bawn.ModePlan {
				want = deny
			}
			if err != nil || d.Verdict != want || once != (d.Holds != "") || want == ask && d.Rule != RuleOffer && mode != bawn.ModeStrict {
				t.Errorf("%v %q in %v: %v by %q, holds for %q, %v", a.Args, a.Resource, mode, d.Verdict, d.Rule, d.Holds, err)
			}
			if e.Unattended = true; err == nil {
				if d, _ := e.Decide(t.Context(), a); d.Verdict != deny {
					t.Errorf("%v %q in %v, with nobody to ask: %v", a.Args, a.Resource, mode, d.Verdict)
				}
			}
		}
	}
}
