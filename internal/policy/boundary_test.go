package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// TestBoundary has the rows about a host that entries name, mode by mode.
func TestBoundary(t *testing.T) {
	for _, row := range []struct {
		what                                   string
		ask                                    string // resource and arguments
		rule                                   string
		plan, strict, safe, normal, permissive bawn.Verdict
	}{
		{"download", "https://api.test/v1/x GET", "isolation:http:api.test GET,HEAD /v1/**", allow, allow, allow, allow, allow},
		{"reading what is not listed", "https://api.test/v2 GET", "isolation:http", deny, ask, ask, ask, ask},
		{"upload", "https://api.test/v1/x PUT", "isolation:http", deny, ask, ask, ask, ask},
		{"an upload that is listed", "https://api.test/v1/run POST", "isolation:http:api.test POST /v1/run", allow, allow, allow, allow, allow},
		{"push", "https://git.test/team/app.git push refs/heads/main", "isolation:git", deny, ask, ask, ask, ask},
		{"a push that is listed", "https://git.test/team/app.git push refs/heads/agent/1 lends=token", "isolation:git:git.test push team/app refs/heads/agent/*", allow, allow, allow, allow, allow},
		{"foreign credential", "https://api.test/v1/x GET credential=authorization#12", RuleForeign, deny, ask, ask, ask, ask},
		{"foreign credential at an open host", "https://plain.test/x GET credential=cookie#12", RuleForeign, deny, ask, ask, ask, ask},
		{"foreign credential for git", "https://git.test/team/x.git fetch credential=authorization#12", RuleForeign, deny, ask, ask, ask, ask},
		{"a secret of the workspace", "https://plain.test/x GET holds=.env:KEY", RuleFound, deny, ask, ask, ask, ask},
		{"lent, reading", "https://api.test/v1/x GET lends=token", RuleLent, deny, ask, allow, allow, allow},
		{"lent, mutating", "https://plain.test/x POST lends=token", RuleLent, deny, ask, ask, ask, ask},
		{"lent, mutating, by name", "https://api.test/v1/run POST lends=token", "isolation:http:api.test POST /v1/run", allow, allow, allow, allow, allow},
		{"over its budget", "https://api.test/v1/x GET over-budget=token", RuleBudget, deny, ask, ask, ask, ask},
		{"the agent's own login", "https://own.test/x POST lends=token credential=cookie#12", RuleHosts + ":own.test", allow, allow, allow, allow, allow},
		{"but no secret of the workspace", "https://own.test/x POST holds=.env:KEY", RuleFound, deny, ask, ask, ask, ask},
	} {
		f := strings.Fields(row.ask)
		for mode, want := range map[bawn.Mode]bawn.Verdict{
			bawn.ModePlan: row.plan, bawn.ModeStrict: row.strict, bawn.ModeSafe: row.safe, bawn.ModeNormal: row.normal, bawn.ModeAuto: row.normal, bawn.ModePermissive: row.permissive,
		} {
			e := egressOf(t)
			e.Rules, e.Own = owned(t, "own.test:443")
			e.Session.Mode, e.Session.Autonomy = mode, bawn.AutonomyFull
			d := e.says(t, reach(f[0], f[1:]...))
			if d.Verdict != want || want != deny && want != allow && d.Rule != row.rule {
				t.Errorf("%s, %v: %v by %q; want %v by %q: %v", row.what, mode, d.Verdict, d.Rule, want, row.rule, d.Trace)
			}
			e.Unattended = true
			if d := e.says(t, reach(f[0], f[1:]...)); want != allow && (d.Verdict != deny || mode != bawn.ModePlan && d.Rule != row.rule) {
				t.Errorf("%s, %v, where nobody can be asked: %v by %q; want a denial by %q", row.what, mode, d.Verdict, d.Rule, row.rule)
			}
		}
	}
}

// owned is the session of egressOf with one more host, at which the agent logs in.
func owned(t *testing.T, host string) (*netrule.Rules, *netrule.Hosts) {
	t.Helper()
	entries := sessionEgress
	entries.Hosts = append(slices.Clone(entries.Hosts), strings.TrimSuffix(host, ":443"))
	rules, err := netrule.Compile(entries)
	if err != nil {
		t.Fatal(err)
	}
	own, err := netrule.ParseHosts([]string{host})
	if err != nil {
		t.Fatal(err)
	}
	return rules, own
}

// TestAdmitted: a request on a host that a human has said yes to needs no second
// yes, and what it carries does.
func TestAdmitted(t *testing.T) {
	e := egressOf(t)
	for arg, want := range map[string][2]bawn.Verdict{
		"GET": {ask, allow}, "POST": {ask, allow}, "GET credential=cookie#1": {ask, ask}, "POST lends=x": {ask, ask}, "GET lends=x": {ask, allow},
	} {
		a := reach("https://unknown.test/x", strings.Fields(arg)...)
		e.Admitted = false
		if d := e.says(t, a); d.Verdict != want[0] {
			t.Errorf("%s: %v", arg, d.Verdict)
		}
		e.Admitted = true
		if d := e.says(t, a); d.Verdict != want[1] {
			t.Errorf("%s, admitted: %v by %s", arg, d.Verdict, d.Rule)
		}
	}
	if d := e.says(t, reach("unknown.test:443")); d.Verdict != ask {
		t.Errorf("a connection: %v", d.Verdict)
	}
}

// TestCarries: what a request carries is read as it was written, and a method
// can't be taken for it.
func TestCarries(t *testing.T) {
	args := append([]string{"POST"}, Carries(Carried{Lent: []string{"a", "b"}, Foreign: []string{"cookie#1"}, Found: []string{".env:K"}, Over: []string{"a"}, Offered: []string{"o"}})...)
	c, rest := readCarries(args)
	if !slices.Equal(rest, []string{"POST"}) || !slices.Equal(c.Lent, []string{"a", "b"}) || len(c.Foreign)+len(c.Found)+len(c.Over)+len(c.Offered) != 4 {
		t.Errorf("%q reads as %+v, %q", args, c, rest)
	}
	if _, rest := readCarries([]string{"lends=a"}); len(rest) != 1 {
		t.Errorf("a method is gone: %q", rest)
	}
}
