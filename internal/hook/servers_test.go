package hook

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

// resources are what rules are asked about for a tool of a server; "denied"
// where it can't be read, nil where it is left to others.
func resources(t testing.TB, tool, server string) (out []string, later bool) {
	t.Helper()
	m := map[string]any{"hook_event_name": "PreToolUse", "cwd": "/p", "tool_name": tool, "tool_input": map[string]any{"path": "x"}}
	if server != "" {
		m["mcp_server"] = map[string]any{"name": server, "source": "project"}
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Read("claude", text)
	if err != nil {
		return []string{"denied"}, false
	}
	for _, a := range c.Actions {
		out = append(out, a.Resource)
	}
	return out, c.Later
}

// TestToolsOfServers reads names, also of servers that were called so that their
// tools look like those of others.
func TestToolsOfServers(t *testing.T) {
	long := "mcp" + strings.Repeat("__a", 9)
	for _, c := range []struct {
		tool, server string
		want         []string
		later        bool
	}{
		{"mcp__fs__read", "", []string{"fs/read"}, false},
		{"mcp__fs__read", "fs", []string{"fs/read"}, false},
		{"mcp__bawn__fs__read", "", []string{"fs/read"}, true},
		{"mcp__bawn__fs__read", "bawn", []string{"fs/read"}, true},
		{"mcp__bawn__fs__read__x_0123abcd", "", []string{"fs/read__x_0123abcd"}, true},
		{"mcp__bawn__fs___x", "", []string{"fs/_x"}, true},
		{"mcp__bawn__bawn__servers", "", nil, false},
		{"mcp__bawn__exec", "", nil, false},
		// A server beside the gateway whose name goes on as the gateway's tools do.
		{"mcp__bawn__fs__read", "bawn__fs", []string{"denied"}, false},
		{"mcp__bawn__fs__read", "bawn::fs", []string{"denied"}, false},
		{"mcp__bawn__exec", "other", []string{"denied"}, false},
		{"mcp__bawn__Fs__read", "", []string{"denied"}, false},
		{"mcp__bawn__f_s__read", "", []string{"denied"}, false},
		{"mcp__bawn__bawn__evil", "", []string{"denied"}, false},
		{"mcp__bawn____read", "", []string{"denied"}, false},
		{"mcp__bawn__", "", []string{"denied"}, false},
		// Whose tool it is is not said: a rule about each of them counts.
		{"mcp__a__b__c", "", []string{"a/b__c", "a__b/c"}, false},
		{"mcp__a___b", "", []string{"a/_b", "a_/b"}, false},
		{"mcp__a__b__c", "a", []string{"a/b__c"}, false},
		{"mcp__a__b__c", "a__b", []string{"denied"}, false},
		{"mcp__a__b", "c", []string{"a/b"}, false}, // a name that the agent has shortened
		{"mcp__a__b__c", "d", []string{"a/b__c", "a__b/c"}, false},
		{"mcp__x__bawn__fs__read", "", []string{"x/bawn__fs__read", "x__bawn/fs__read", "x__bawn__fs/read"}, false},
		{"mcp__a b__c", "a b", []string{"a b/c"}, false},
		{"mcp__a_b__c", "a b", []string{"a_b/c"}, false},
		{"mcp__", "", []string{"denied"}, false}, {"mcp____a", "", []string{"denied"}, false}, {"mcp__a__", "", []string{"denied"}, false}, {long, "", []string{"denied"}, false},
	} {
		got, later := resources(t, c.tool, c.server)
		if d := cmp.Diff(c.want, got); d != "" || later != c.later {
			t.Errorf("%s of %q: later %t: %s", c.tool, c.server, later, d)
		}
	}
}

// TestGatewayToolsAreLeftToTheAgent: a tool behind the gateway is denied at the
// hook where a rule denies it, and never allowed there: a server of another's may
// have been called "bawn".
func TestGatewayToolsAreLeftToTheAgent(t *testing.T) {
	for tool, silent := range map[string]bool{"mcp__bawn__fs__read": true, "mcp__fs__read": false} {
		c, err := Read("claude", []byte(`{"hook_event_name":"PreToolUse","cwd":"/p","tool_name":"`+tool+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		if out := Answer(c, Outcome{Verdict: bawn.Allow}); (len(out.Stdout) == 0) != silent {
			t.Errorf("%s: allowed with %q", tool, out.Stdout)
		}
		if out := Answer(c, Outcome{Reason: "no"}); !denies("claude", out) {
			t.Errorf("%s: denied with %q", tool, out.Stdout)
		}
	}
}

// FuzzToolsOfServers shows that a rule about a server's tool counts, whatever
// the two are called, and that no other server's tool passes for one behind the
// gateway, where the agent says whose it is.
func FuzzToolsOfServers(f *testing.F) {
	f.Add("fs", "read")
	f.Add("bawn__fs", "read")
	f.Add("a__b", "c")
	f.Add("a_", "_b")
	f.Add("bawn", "fs__read")
	f.Fuzz(func(t *testing.T, server, tool string) {
		if server == "" || tool == "" || asShown(server) != server || asShown(tool) != tool || server == own {
			return
		}
		name := ofServers + server + between + tool
		for _, said := range []string{"", server} {
			got, later := resources(t, name, said)
			if said != "" && later {
				t.Errorf("%q of the server %q passes for the gateway's", name, server)
			}
			if !later && got != nil && got[0] != "denied" && !slices.Contains(got, server+"/"+tool) {
				t.Errorf("%q of the server %q (%q) is judged as %q", name, server, said, got)
			}
			if got == nil && said != "" {
				t.Errorf("%q of the server %q is not judged", name, server)
			}
		}
	})
}
