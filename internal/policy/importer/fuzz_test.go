package importer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
)

// fuzz feeds a format: whatever is read is a policy, and no rule that allows
// covers everything.
func fuzz(f *testing.F, format, file string, seeds ...string) {
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		if filepath.Ext(name) == filepath.Ext(file) {
			f.Add(string(data))
		}
	}
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data string) {
		im, err := Read(format, file, []byte(data), false)
		if err != nil {
			if !strings.HasPrefix(err.Error(), file+":") {
				t.Fatalf("the error names no place: %v", err)
			}
			return
		}
		res, err := Merge([]*Import{im})
		if err != nil {
			t.Fatal(err)
		}
		rules, err := policy.ParseFile(file, []byte(res.Policy()), bawn.User)
		if err != nil || len(rules) != len(res.Rules) {
			t.Fatalf("%d rules, read as %d: %v\n%s", len(res.Rules), len(rules), err, res.Policy())
		}
		opensEverything(t, rules)
	})
}

// opensEverything fails if something that nobody can have named is allowed.
func opensEverything(t *testing.T, rules []bawn.Rule) {
	t.Helper()
	for i := range rules {
		if rules[i].Verdict != bawn.Allow {
			rules[i].Verdict = bawn.Ask // an allowance must not hide behind a denial
		}
	}
	p, err := policy.New(rules, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []bawn.Action{
		{Kind: bawn.Command, Operation: bawn.Exec, Resource: "bash -c nobody-named-this"},
		{Kind: bawn.Command, Operation: bawn.Exec, Resource: "rm -rf /srv/nobody-named-this"},
		{Kind: bawn.Filesystem, Operation: bawn.Write, Resource: "/srv/nobody/named/this"},
		{Kind: bawn.Network, Operation: bawn.Connect, Resource: "nobody-named.this.example"},
		{Kind: bawn.Tool, Operation: bawn.Call, Resource: "mcp__nobody-named__this"},
	} {
		a.Dir = "/proj"
		q := policy.Question{Action: a, Workspace: "/proj", Home: "/home/user", Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate}
		if d := p.Decide(&q); d.Verdict == bawn.Allow {
			t.Fatalf("%s is allowed: %s", a.Resource, d.Reason)
		}
	}
}

func FuzzClaude(f *testing.F) {
	fuzz(f, "claude", "settings.json", `{"permissions":{"allow":["Bash(a *)","Edit(/**/x)","Read(//a/**)"],"defaultMode":"plan"}}`, `{"permissions":[1]}`)
}

func FuzzCodexConfig(f *testing.F) {
	fuzz(f, "codex", "config.toml", "sandbox_workspace_write = 1", "approval_policy = {granular = {}}")
}

func FuzzCodexRules(f *testing.F) {
	fuzz(f, "codex", "default.rules", `prefix_rule(pattern=["a",["b","c"]],match=[["a","b"]])`, `x('''y'''`, `f(a="\n")`)
}

func FuzzGeminiPolicy(f *testing.F) {
	fuzz(f, "gemini", "policy.toml", "[[rule]]\ntoolName='*'\ndecision='deny'", "rule = 1", "[[rule]]\ncommandPrefix=['a','b *']\ndecision='allow'")
}

func FuzzGeminiSettings(f *testing.F) {
	fuzz(f, "gemini", "settings.json", `{"tools":{"allowed":["run_shell_command(ls:*)"]}} // x`, `{"excludeTools":"x","a":/*`)
}

func FuzzCadre(f *testing.F) {
	fuzz(f, "cadre", "cadre.config.json", `{"isolation":{"mounts":[{"path":1}],"resources":{"timeoutMs":1e99}}}`, `{"policy":{"policy":{}}}`,
		`{"policies":{"strict":{"networkAllowlist":["a.b:1"],"secrets":[{"name":"A","value":"v"}]},"p":{}},"policyProfile":"strict","dockerOptions":{"image":"a@b","extraArgs":["-v","/:/","--x","--privileged","--init"]}}`)
}
