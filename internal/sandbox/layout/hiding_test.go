package layout

import (
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// TestHidingOf: which rule hides a place is said by the rules of the request, and the most
// exact one counts.
func TestHidingOf(t *testing.T) {
	req := sandbox.Request{Home: "/home/ada", Hidden: []string{"/home/ada/.local/state/bawn"}, Open: []string{"gh"}}
	req.Session.Isolation.Mounts = []bawn.Mount{
		{Path: "/home/ada/Documents", Access: bawn.Hidden, Why: `profile "closed"`}, {Path: "/home/ada/Documents/shown", Access: bawn.ReadOnly, Why: "--ro"},
		{Path: "/home/ada/p", Access: bawn.ReadWrite, Why: "workspace"}, {Path: "/home/ada/p/**/*.pem", Access: bawn.Hidden, Why: "deny"},
		{Path: "/home/ada/.claude", Access: bawn.ReadWrite, Why: AgentPlace}, {Path: "/home/ada/.local/state/bawn/x", Access: bawn.ReadWrite, Why: "a mistake"},
	}
	for p, want := range map[string]Hiding{
		"/home/ada/Documents":                 {Place: "/home/ada/Documents", Why: `profile "closed"`, Mount: true},
		"/home/ada/Documents/letter":          {Place: "/home/ada/Documents", Why: `profile "closed"`, Mount: true},
		"/home/ada/Documents/shown/letter":    {},
		"/home/ada/Documentsx":                {},
		"/home/ada/.aws/credentials":          {Place: "/home/ada/.aws", Why: "logins of cloud services", Open: "aws"},
		"/home/ada/.claude/settings.json":     {},
		"/home/ada/.codex/auth.json":          {Place: "/home/ada/.codex", Why: "servers, permissions, skills", Open: "codex"},
		"/home/ada/.config/gh/hosts.yml":      {},
		"/home/ada/p/main.go":                 {},
		"/home/ada/p/keys/a.pem":              {Place: "/home/ada/p/keys/a.pem", Why: "deny", Mount: true},
		"/home/ada/p/keys/a.pem/x":            {Place: "/home/ada/p/keys/a.pem", Why: "deny", Mount: true},
		"/home/ada/.local/state/bawn/audit":   {Place: "/home/ada/.local/state/bawn", Why: "Bawn's own"},
		"/home/ada/.local/state/bawn/x/y":     {Place: "/home/ada/.local/state/bawn", Why: "Bawn's own"},
		"/etc/bawn/config.toml":               {Place: "/etc/bawn", Why: "the system's own"},
		"/etc/passwd":                         {},
		"/home/bob/.aws/credentials":          {},
		"/home/ada/.local/state/bawn-is-else": {},
	} {
		got, ok := HidingOf(req, p)
		if ok != (want != Hiding{}) || ok && (got.Place != want.Place || got.Mount != want.Mount || got.Open != want.Open || !want.says(got.Why)) {
			t.Errorf("%s: %+v, %t; want %+v", p, got, ok, want)
		}
	}
}

// AgentPlace is the reason of a mount in these tests.
const AgentPlace = "the state of claude"

// says reports whether a text is the one of the table, which is not copied here.
func (h Hiding) says(why string) bool { return h.Open != "" && why != "" || h.Why == why }
