package session

import (
	"context"
	"fmt"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
	"github.com/bawn-dev/bawn/internal/policy"
)

// policies decide on what no entry names: one by asking, one by a rule that
// allows it.
var policies = func() []*policy.Policy {
	asks, err1 := policy.New(nil, policy.Options{})
	allows, err2 := policy.New([]bawn.Rule{
		{ID: "r1", Kind: bawn.Network, Pattern: "*.a.org", Verdict: bawn.Allow, Source: bawn.User, Reason: "r"},
		{ID: "r2", Kind: bawn.Network, Pattern: "d.org", Verdict: bawn.Allow, Source: bawn.User, Reason: "r"},
	}, policy.Options{})
	if err1 != nil || err2 != nil {
		panic(fmt.Sprint(err1, err2))
	}
	return []*policy.Policy{asks, allows}
}()

var attempts = func() []bawn.Action {
	var out []bawn.Action
	add := func(resource string, args ...string) {
		out = append(out, bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: resource, Args: args})
	}
	for _, host := range []string{"a.org", "x.a.org", "b.a.org", "x.b.a.org", "c.b.a.org", "x.c.b.a.org", "d.org", "e.org", "10.0.0.1", "10.0.0.2"} {
		for _, port := range []string{"443", "80", "22", "9"} {
			add(host + ":" + port)
		}
		for _, path := range []string{"/v1/x", "/v1/y", "/z"} {
			add("https://"+host+path, "GET")
			add("https://"+host+path, "PUT")
		}
		add("http://"+host+"/v1/x", "GET")
		add("https://"+host+"/t/app/git-upload-pack", "POST")
		for _, repo := range []string{"t/app", "t/b", "u/app"} {
			add("https://"+host+"/"+repo+".git", "fetch")
			add("ssh://"+host+"/"+repo+".git", "fetch")
			for _, ref := range []string{"refs/heads/x/1", "refs/heads/x/2", "refs/heads/main"} {
				add("https://"+host+"/"+repo+".git", "push", ref)
			}
		}
	}
	return out
}()

// network tries everything, behind each proxy, and lets the real policy judge.
func network(iso bawn.Isolation) []bawn.Verdict {
	var out []bawn.Verdict
	e := iso.Egress
	rules, err := netrule.Compile(e)
	if err != nil {
		panic(err)
	}
	for _, p := range policies {
		decider := policy.Egress{Policy: p, Session: policy.Question{Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate, Contained: bawn.ContainedFully}, Rules: rules}
		for _, a := range attempts {
			v := bawn.Allow
			if iso.Network == bawn.NetworkAllowlist {
				d, _ := decider.Decide(context.Background(), a)
				v = d.Verdict
			}
			for _, proxy := range drawnProxies[2:] {
				if iso.Network == bawn.NetworkNone || iso.Network == bawn.NetworkAllowlist && (proxy != e.Proxy || v == bawn.Ask && e.Ask == 0) {
					out = append(out, bawn.Deny)
				} else {
					out = append(out, v)
				}
			}
		}
	}
	return out
}

// deeds are what trust is tried with.
var deeds = func() []bawn.Action {
	var out []bawn.Action
	for _, l := range []string{"ls", "touch a", "rm -rf .", "make", "npm install x", "git push", "git push --force", "curl https://example.org", "sudo ls", "unknown x", "cat /etc/passwd", "touch /etc/x"} {
		out = append(out, bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: l, Dir: "/w"})
	}
	for _, p := range []string{"/w/a", "/etc/x", "/w/.git/hooks/x"} {
		for _, o := range []bawn.Operation{bawn.Read, bawn.Write, bawn.Delete} {
			out = append(out, bawn.Action{Kind: bawn.Filesystem, Operation: o, Resource: p, Dir: "/w"})
		}
	}
	return append(out, bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: "example.org:443", Dir: "/w"},
		bawn.Action{Kind: bawn.Tool, Operation: bawn.Call, Resource: "x/y", Dir: "/w"})
}()

// behaviour is what a policy says to every deed, with rules of each sort.
func behaviour(t *testing.T, mode bawn.Mode, autonomy bawn.Autonomy) []bawn.Verdict {
	t.Helper()
	var out []bawn.Verdict
	for _, verdict := range []bawn.Verdict{bawn.Deny, bawn.Ask, bawn.Allow} {
		var rules []bawn.Rule
		for i, pattern := range []string{"ls", "touch a", "git push", "make", "unknown x"} {
			rules = append(rules, bawn.Rule{ID: fmt.Sprint("c", i), Kind: bawn.Command, Pattern: pattern, Verdict: verdict, Source: bawn.User, Reason: "r"})
		}
		for i, pattern := range []string{"/w/**", "/etc/x"} {
			rules = append(rules, bawn.Rule{ID: fmt.Sprint("f", i), Kind: bawn.Filesystem, Pattern: pattern, Verdict: verdict, Source: bawn.User, Reason: "r"})
		}
		for _, rs := range [][]bawn.Rule{nil, rules} {
			p, err := policy.New(rs, policy.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range deeds {
				for _, contained := range []bawn.Contained{{}, bawn.ContainedFully} {
					q := policy.Question{Action: a, Mode: mode, Autonomy: autonomy, Contained: contained, Workspace: "/w", Home: "/home/u", System: "linux"}
					v := p.Decide(&q).Verdict
					if bare := q; mode == bawn.ModePlan && a.Kind == bawn.Command && v == bawn.Allow {
						bare.Contained = bawn.Contained{}
						v = p.Decide(&bare).Verdict // the kernel refuses what it would change
					}
					out = append(out, v)
				}
			}
		}
	}
	return out
}

// TestTrustIsWhatThePolicyDoes compares the order of modes and autonomies with
// what the policy makes of them, for every pair: a parent in mode strict, say,
// must not get a child in mode plan, which looks without asking.
func TestTrustIsWhatThePolicyDoes(t *testing.T) {
	var all []bawn.Session
	does := map[string][]bawn.Verdict{}
	for m := bawn.ModePlan; m <= bawn.ModePermissive; m++ {
		for a := bawn.AutonomyNone; a <= bawn.AutonomyFull; a++ {
			s := bawn.Session{Mode: m, Autonomy: a}
			all, does[trust(s)] = append(all, s), behaviour(t, m, a)
		}
	}
	noMore := func(a, b bawn.Session) bool {
		for i, v := range does[trust(a)] {
			if v > does[trust(b)][i] {
				return false
			}
		}
		return true
	}
	none := 0
	for _, a := range all {
		for _, b := range all {
			mode, autonomy, err := meetTrust(a, b)
			if m := (bawn.Session{Mode: mode, Autonomy: autonomy}); err == nil && (!noMore(m, a) || !noMore(m, b)) {
				t.Errorf("%s and %s give %s", trust(a), trust(b), trust(m))
			}
			for _, c := range all {
				if err != nil && noMore(c, a) && noMore(c, b) {
					t.Errorf("%v: but %s is below both", err, trust(c))
				}
			}
			if err != nil {
				none++
			}
		}
	}
	if none == 0 {
		t.Error("every two modes have something in common: the test tries nothing")
	}
}
