package egressd

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/mitm"
	"github.com/bawn-dev/bawn/internal/policy"
)

// TestBudgets: secret_requests and secret_out_mb bound what goes out with one
// secret, apart from others, until a human has said yes.
func TestBudgets(t *testing.T) {
	var b budgets
	b.limit(bawn.Egress{MaxUses: 3, MaxLentMB: 2})
	all := []string{"a", "b"}
	for range 3 {
		b.use([]string{"a"})
		if over := b.over(all); len(over) > 0 {
			t.Errorf("over too soon: %q", over)
		}
		b.send([]string{"a"}, 10)
		b.use([]string{"a"})
		b.back([]string{"a"}) // it was denied
	}
	b.use([]string{"a"})
	b.send([]string{"b"}, 2<<20)
	if over := b.over(all); !slices.Equal(over, all) {
		t.Errorf("over are %q; want both", over)
	}
	b.renew([]string{"a"})
	if over := b.over(all); !slices.Equal(over, []string{"b"}) {
		t.Errorf("after a yes over are %q; want b", over)
	}
	var usual budgets
	usual.send([]string{"a"}, bawn.UsualLentMB<<20-1)
	if usual.over(all) != nil {
		t.Error("the usual limit is lower than it is")
	}
	if usual.send([]string{"a"}, 1); usual.over(all) == nil {
		t.Error("there is no usual limit")
	}
}

// TestOverBudgetIsRefused: without a human to ask, what is more than the budget is
// refused, also where it only reads, and also while those before it are on their way.
func TestOverBudgetIsRefused(t *testing.T) {
	c := config(t, bawn.Egress{Hosts: []string{"api.example"}, MaxUses: 2})
	c.Mode, c.Autonomy = bawn.ModeNormal, bawn.AutonomyModerate
	s, _ := begin(t, c)
	r := newRequests(s)
	req := mitm.Request{Method: "GET", Scheme: "https", Host: "api.example", Port: 443, Path: "/x", Readings: []string{"/x"}, Secrets: []string{"token"}}
	for i, want := range []bawn.Verdict{bawn.Allow, bawn.Allow, bawn.Deny} {
		d := r.decide(t.Context(), req)
		if d.Verdict != want {
			t.Errorf("request %d: %v by %q; want %v", i+1, d.Verdict, d.Rule, want)
		}
	}
}

// TestNoBudgetRenewsItself: a request that needs no yes renews no budget, even if others
// use it up while it is decided on. A request that a human allows does.
func TestNoBudgetRenewsItself(t *testing.T) {
	c := config(t, bawn.Egress{Hosts: []string{"api.example"}, MaxUses: 2})
	c.Mode, c.Autonomy = bawn.ModeNormal, bawn.AutonomyModerate
	s, _ := begin(t, c)
	r := newRequests(s)
	req := mitm.Request{Method: "GET", Scheme: "https", Host: "api.example", Port: 443, Path: "/x", Readings: []string{"/x"}, Secrets: []string{"token"}}
	s.within = deciderFunc(func(context.Context, bawn.Action) (bawn.Decision, error) {
		for range 5 { // of other connections
			s.budgets.use(req.Secrets)
		}
		return bawn.Decision{Verdict: bawn.Allow}, nil
	})
	for want := range 2 {
		d := r.decide(t.Context(), req)
		if over := len(s.budgets.over(req.Secrets)); d.Verdict != bawn.Allow || over != 1-want {
			t.Errorf("request %d: %v, %d budgets are used up; want %d", want+1, d.Verdict, over, 1-want)
		}
		s.within = deciderFunc(func(context.Context, bawn.Action) (bawn.Decision, error) {
			return bawn.Decision{Verdict: bawn.Allow}, nil
		})
	}
}

// TestYesToGitRenewsBudget: after a yes to a fetch that goes beyond a secret's budget,
// the next ones ask only when the budget is used up again.
func TestYesToGitRenewsBudget(t *testing.T) {
	a := newSite(t, bawn.Egress{Git: []string{"forge.example:80,443 fetch team/app"}, MaxUses: 2})
	s := a.requests.session
	s.budgets.limit(s.config.Egress)
	asked := 0
	s.within = deciderFunc(func(_ context.Context, act bawn.Action) (bawn.Decision, error) {
		if slices.Contains(act.Args, policy.Carries(policy.Carried{Over: []string{"token"}})[0]) {
			asked++
		}
		return bawn.Decision{Verdict: bawn.Allow}, nil
	})
	decide := a.requests.server.Decide
	a.requests.server.Decide = func(ctx context.Context, req mitm.Request) bawn.Decision {
		req.Secrets = []string{"token"}
		return decide(ctx, req)
	}
	for range 6 {
		if status, _ := a.ask("GET", "/team/app.git/info/refs?service=git-upload-pack", ""); status != http.StatusOK {
			t.Fatal(status)
		}
	}
	if asked != 2 { // at the third and the fifth
		t.Errorf("%d requests were shown as beyond the budget; want 2", asked)
	}
}
