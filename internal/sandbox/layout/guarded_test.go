package layout

import (
	"slices"
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestGuarded: what is guarded below a writable place is refused by its name,
// existing or not, and where it leads; what exists is mounted read-only too.
// Outside of what is written nothing has to be refused.
func TestGuarded(t *testing.T) {
	m := append(slices.Clone(laptop), "/home/ada/.x/", "/home/ada/.x/settings", "/home/ada/.x/rules/", "/home/ada/.x/led -> /home/ada/.x/data", "/home/ada/.x/data")
	req := plain("/home/ada/p")
	req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: "/home/ada/.x", Access: bawn.ReadWrite, Why: "state"})
	req.Guarded = []string{"/home/ada/.x/settings", "/home/ada/.x/rules", "/home/ada/.x/absent", "/home/ada/.x/led", "/home/ada/.y/settings"}
	req.Owned = []string{"/home/ada/.x/.claude.json"}
	p, err := Layout(req, m.facts(1000))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/home/ada/.x/absent", "/home/ada/.x/data", "/home/ada/.x/led", "/home/ada/.x/rules", "/home/ada/.x/settings"}
	if !slices.Equal(p.Guarded, want) {
		t.Errorf("guarded: %q, want %q", p.Guarded, want)
	}
	for _, target := range []string{"/home/ada/.x/settings", "/home/ada/.x/rules", "/home/ada/.x/data"} {
		if !slices.ContainsFunc(p.Mounts, func(m Mount) bool { return m.Target == target && m.Kind == KindBindRO }) {
			t.Errorf("%s is not mounted read-only", target)
		}
	}

	names := NewProtector(p.Protected, p.ExtraNames, p.OpenNames)
	names.Guarded, names.Owned = p.Guarded, p.Owned
	for path, denied := range map[string]string{
		"/home/ada/.x/settings": RuleGuarded, "/home/ada/.x/absent": RuleGuarded, "/home/ada/.x/absent/below": RuleGuarded, "/home/ada/.x/rules/one": RuleGuarded,
		"/home/ada/.x/conversation": "", "/home/ada/.x/settings2": "", // the control
		"/home/ada/.x/.claude.json": "", "/home/ada/.x/sub/.claude.json": "protected:.claude.json", "/home/ada/.x/.claude.json/below": "protected:.claude.json",
	} {
		for _, op := range []Operation{OpOpen, OpRenameTo, OpLinkTo, OpMknod} {
			if _, rule := names.Rule(op, path, false); rule != denied {
				t.Errorf("operation %d on %s: %q, want %q", op, path, rule, denied)
			}
		}
	}
	if _, rule := names.Rule(OpSymlink, "/home/ada/.x/.claude.json", false); rule == "" {
		t.Error("a link may be put in the place of a file of a protected name")
	}
	if _, rule := names.Rule(OpRenameFrom, "/home/ada/.x", true); rule != RuleGuarded {
		t.Errorf("the directory around it may be moved away: %q", rule)
	}
}
