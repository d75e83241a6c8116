package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

func TestParseFile(t *testing.T) {
	rules, err := ParseFile("policy.toml", []byte(`
[[rule]]
id = "x"
kind = "command"
pattern = "go test *"
verdict = "allow"
priority = 30
reason = "tests"
match = ["go test ./...", "env A=b go test"]
not_match = ["go build"]

  [[ rule ]]
kind = "filesystem"
operations = ["read", "write"]
pattern = "secrets/"
verdict = "deny"
match = ["secrets/a", "/proj/secrets/a/b"]
not_match = ["x/secrets/a", "../secrets/a"]
`), bawn.User)
	if err != nil || len(rules) != 2 {
		t.Fatal(rules, err)
	}
	if r := rules[0]; r.ID != "x" || r.Verdict != bawn.Allow || r.Priority != 30 || r.Source != bawn.User || r.Reason != "tests" || len(r.Match) != 2 {
		t.Errorf("the first rule is %+v", r)
	}
	if r := rules[1]; r.ID != "user:2" || r.Verdict != bawn.Deny || len(r.Operations) != 2 || r.Operations[1] != bawn.Write {
		t.Errorf("the second rule is %+v", r)
	}
	if rules, err := ParseFile("p", nil, bawn.Project); err != nil || rules != nil {
		t.Errorf("an empty file: %v, %v", rules, err)
	}
}

// TestParseFileErrors: where it is and what was wanted; all wrong rules at once.
func TestParseFileErrors(t *testing.T) {
	rule := func(lines string) string { return "[[rule]]\n" + strings.ReplaceAll(lines, "; ", "\n") + "\n" }
	for _, tt := range []struct{ data, want string }{
		{"x", "p.toml:1:1: "},
		{"[[rule]]\nid = ", "p.toml:2:"},
		{"rules = 1", `p.toml:1:1: unknown key "rules"; want [[rule]]`},
		{"[[rule]]\nid='a'\nverdct = 'deny'", `p.toml:3:1: unknown key "verdct"`},
		{"[[rule]]\nkind = 'file'", `p.toml:2:8: `},
		{"[[rule]]\nverdict = 'yes'", `p.toml:2:11: `},
		{"[[rule]]\noperations = ['look']", `p.toml:2:`},
		{"[[rule]]\npriority = 'high'", `p.toml:2:`},
		{"rule = 1", "p.toml:1:"},
		{rule("kind='tool'; pattern='x'"), `p.toml:1: rule 1: it lacks verdict`},
		{"\n\n" + rule("kind='tool'; pattern='x'"), `p.toml:3: rule 1: it lacks verdict`},
		{rule("id='a'; kind='tool'; pattern='x'; verdict='deny'") + rule("id='a'; kind='tool'; pattern='y'; verdict='deny'"), `p.toml:6: rule 2: the id "a" is rule 1's already`},
		{"rule = [{kind='tool', pattern='x'}]", `p.toml:1: rule 1: it lacks verdict`},
		{rule("verdict='deny'; pattern='x'"), `p.toml:1: rule 1: rule "user:1": want the kind filesystem`},
		{rule("verdict='deny'; kind='tool'"), `p.toml:1: rule 1: rule "user:1": want a pattern of 1 to 1024`},
		{rule("verdict='deny'; kind='command'; pattern='rm *'; match=['ls']"), `does not match its example "ls"`},
		{rule("verdict='deny'; kind='command'; pattern='rm *'; not_match=['nice rm x']"), `matches "nice rm x", which it must not`},
	} {
		_, err := ParseFile("p.toml", []byte(tt.data), bawn.User)
		if err == nil || !strings.HasPrefix(err.Error(), "p.toml:") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.data, err, tt.want)
		}
	}
	if _, err := ParseFile("p", make([]byte, MaxFile+1), bawn.User); err == nil || !strings.Contains(err.Error(), "want at most") {
		t.Errorf("a large file: %v", err)
	}
	two := rule("kind='tool'; pattern='x'") + rule("kind='tool'; pattern='y'")
	if _, err := ParseFile("p", []byte(two), bawn.User); err == nil || strings.Count(err.Error(), "it lacks verdict") != 2 {
		t.Errorf("two wrong rules: %v", err)
	}
	allow := []byte(rule("kind='tool'; pattern='x'; verdict='allow'"))
	if _, err := ParseFile("p", allow, bawn.Project); err == nil || !strings.Contains(err.Error(), "may only narrow") {
		t.Errorf("a project's rule that allows: %v", err)
	}
	for _, source := range []bawn.Source{bawn.User, bawn.Managed, bawn.SessionSource} {
		if _, err := ParseFile("p", allow, source); err != nil {
			t.Errorf("%v: %v", source, err)
		}
	}
}

// FuzzParseFile: no file makes the reader panic; what it accepts makes a
// policy, and a project's file never one that allows more.
func FuzzParseFile(f *testing.F) {
	for _, s := range []string{
		"[[rule]]\nkind='command'\npattern='rm -r *'\nverdict='deny'\nmatch=['rm -r x']", "[[rule]]\nkind='filesystem'\npattern='~/x/**'\nverdict='ask'\npriority=-5",
		"[[rule]]\nkind='network'\npattern='*.x.example:443'\nverdict='allow'", "[[rule]]\nkind='tool'\npattern='mcp__*'\nverdict='deny'\noperations=['call']", "rule=[]", "[rule]\nx=1", "[[rule]]\nid=1",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rules, err := ParseFile("p.toml", data, bawn.Project)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "p.toml:") {
				t.Fatalf("%v does not say where", err)
			}
			return
		}
		p := withRules(t, Options{}, rules...)
		for _, line := range []string{"ls", "cat x", "frob", "rm -r x", "git push", "echo > x"} {
			q := ask4(line)
			if with, without := p.Decide(&q), withRules(t, Options{}).Decide(&q); with.Verdict > without.Verdict {
				t.Fatalf("%q is %v, and %v without the project's file", line, with.Verdict, without.Verdict)
			}
		}
	})
}

func TestCompileRefuses(t *testing.T) {
	ok := ruleOf("a user tool deny | x")
	for _, tt := range []struct {
		change func(*bawn.Rule)
		want   string
	}{
		{func(r *bawn.Rule) { r.Pattern = "" }, "want a pattern"},
		{func(r *bawn.Rule) { r.Pattern = strings.Repeat("x", MaxPattern+1) }, "want a pattern"},
		{func(r *bawn.Rule) { r.Pattern = "a\nb" }, "want a pattern"},
		{func(r *bawn.Rule) { r.Pattern = "a\x7f" }, "want a pattern"},
		{func(r *bawn.Rule) { r.Source = 0 }, "lacks a source"},
		{func(r *bawn.Rule) { r.Source = 99 }, "lacks a source"},
		{func(r *bawn.Rule) { r.Verdict = 3 }, "or a verdict"},
		{func(r *bawn.Rule) { r.Kind = 0 }, "want the kind"},
		{func(r *bawn.Rule) { r.Kind = 99 }, "want the kind"},
		{func(r *bawn.Rule) { r.Kind, r.Pattern = bawn.Command, "   " }, "empty pattern"},
		{func(r *bawn.Rule) { r.Kind, r.Pattern = bawn.Command, "x a,,b" }, "is empty"},
		{func(r *bawn.Rule) { r.Kind, r.Pattern = bawn.Command, "x !a,,b" }, "is empty"},
		{func(r *bawn.Rule) { r.Kind, r.Pattern, r.Verdict = bawn.Command, "*", bawn.Allow }, "must name its programs"},
		{func(r *bawn.Rule) { r.Kind, r.Pattern, r.Verdict = bawn.Command, "py* x", bawn.Allow }, "must name its programs"},
		{func(r *bawn.Rule) { r.Kind, r.Pattern = bawn.Filesystem, "." }, "leaves the workspace"},
		{func(r *bawn.Rule) { r.Kind, r.Pattern = bawn.Filesystem, "a/../../b" }, "leaves the workspace"},
		{func(r *bawn.Rule) { r.Kind, r.Pattern = bawn.Filesystem, ".." }, "leaves the workspace"},
		{func(r *bawn.Rule) { r.Kind, r.Pattern = bawn.Filesystem, "~bob/x" }, "another user's home"},
		{func(r *bawn.Rule) { r.Kind, r.Pattern = bawn.Network, "Example.com" }, "normal form"},
		{func(r *bawn.Rule) { r.Kind, r.Pattern = bawn.Network, "exämple.com" }, "want ASCII"},
		{func(r *bawn.Rule) { r.Kind, r.Pattern = bawn.Network, "a.*.example" }, "not accepted"},
	} {
		r := ok
		tt.change(&r)
		if _, err := compile(r); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `rule "a"`) {
			t.Errorf("%+v: %v, want %q", r, err, tt.want)
		}
	}
	if _, err := compile(ok); err != nil {
		t.Errorf("the control: %v", err)
	}
}

// TestNewRefusesWrongRules: all of them are named, and there is no policy.
func TestNewRefusesWrongRules(t *testing.T) {
	rules := rulesOf("a user tool deny | x", "b user network deny | X", "c user command deny | rm *")
	rules[2].Match = []string{"ls"}
	p, err := New(rules, Options{})
	if p != nil || err == nil || !strings.Contains(err.Error(), `rule "b"`) || !strings.Contains(err.Error(), `rule "c"`) || strings.Contains(err.Error(), `rule "a"`) {
		t.Errorf("%v, %v", p, err)
	}
}

// TestRulesAreListedAsTheyWin, the built-in ones with their examples.
func TestRulesAreListedAsTheyWin(t *testing.T) {
	p, err := New(rulesOf("a user tool deny | x", "b user tool deny ||| x", "c user tool deny || x"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	list, got := p.Rules(), ""
	for i, r := range list {
		switch {
		case r.Source == bawn.User:
			got += r.ID
		case len(r.Match) == 0:
			t.Errorf("%s has lost its examples", r.ID)
		}
		if i > 0 && r.Priority > list[i-1].Priority {
			t.Errorf("%s stands behind %s", r.ID, list[i-1].ID)
		}
	}
	if got != "bca" || len(list) != len(Builtins())+3 {
		t.Errorf("got %q among %d rules", got, len(list))
	}
}

func TestRuleExamples(t *testing.T) {
	for _, tt := range []struct {
		rule, example string
		want          bool
	}{
		{"a user command deny | rm -r *", "rm -fr x", true},
		{"a user command deny | rm -r *", "x | xargs rm -vr", true},
		{"a user command deny | rm -r *", "echo rm -r", false},
		{"a user command deny | rm x", "rm x", true},
		{"a user command deny | rm x", "rm x y", false},
		{"a user command deny | rm x", "$X", false},
		{"a user filesystem deny | ~/a/**", "~/a/b", true},
		{"a user filesystem deny | ~/a/**", "/home/user/a/b", true},
		{"a user filesystem deny | ~", "~", true},
		{"a user filesystem deny | **/x", "deep/down/x", true},
		{"a user filesystem deny | /x/*", "/x/y/z", false},
		{"a user filesystem deny | x", "", false},
		{"a user network deny | *.b.example", "https://a.b.example/", true},
		{"a user network deny | *.b.example:80", "https://a.b.example/", false},
		{"a user network deny | *", "10.0.0.1", true},
		{"a user network deny | *", "a b", false},
		{"a user tool deny | mcp__*", "mcp__x", true},
		{"a user tool deny | mcp__*", "mcp_x", false},
	} {
		c, err := compile(ruleOf(tt.rule))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.matchesExample(tt.example); got != tt.want {
			t.Errorf("%q matches %q: %t, want %t", tt.rule, tt.example, got, tt.want)
		}
		c.Match, c.NotMatch = []string{tt.example}, nil
		if err := c.check(); (err == nil) != tt.want {
			t.Errorf("%q with the example %q: %v", tt.rule, tt.example, err)
		}
		c.Match, c.NotMatch = nil, []string{tt.example}
		if err := c.check(); (err != nil) != tt.want {
			t.Errorf("%q with the counterexample %q: %v", tt.rule, tt.example, err)
		}
	}
}

func TestPathPatternsNeedTheirRoot(t *testing.T) {
	for pattern, text := range map[string]string{"~/x": "/x", "x": "/x"} {
		r := rule{path: pattern}
		if r.matchesPath(&Question{}, text) {
			t.Errorf("%q matches %q though there is no such root", pattern, text)
		}
	}
}

// TestDataErrors: broken data name file and line.
func TestDataErrors(t *testing.T) {
	for _, tt := range []struct {
		parse func(file, data string) error
		data  string
		want  string
	}{
		{dangerErr, "a | b | c", "d.txt:1: want FAMILY"},
		{dangerErr, "# x\n\nmachine | b x,, | c | d", `d.txt:3: the condition "x,," is empty`},
		{protectedErr, "a | b | c", "d.txt:1: want SYSTEM"},
		{protectedErr, "all | look | /x | r", `d.txt:1: unknown operations "look"`},
		{protectedErr, "beos | write | /x | r", `d.txt:1: unknown system "beos"`},
		{ruleErr, "a | b", "d.txt:1: want 10 fields"},
		{ruleErr, "a | file | - | x | deny | 1 | always | r | - | -", "d.txt:1: unknown kind"},
		{ruleErr, "a | tool | look | x | deny | 1 | always | r | - | -", "d.txt:1: unknown operation"},
		{ruleErr, "a | tool | call | x | no | 1 | always | r | - | -", "d.txt:1: unknown verdict"},
		{ruleErr, "a | tool | call,read | x | deny | many | always | r | - | -", "d.txt:1: strconv.Atoi"},
		{ruleErr, "a | tool | call | x | deny | 1 | never | r | - | -", "d.txt:1: unknown when"},
	} {
		if err := tt.parse("d.txt", tt.data); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.data, err, tt.want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("broken embedded data do not panic")
		}
	}()
	must(parseDanger(entry{text: "a"}))
}

func dangerErr(file, data string) (err error) {
	for e := range entries(file, data) {
		_, err = parseDanger(e)
	}
	return err
}

func protectedErr(file, data string) error {
	_, err := parseProtected(file, data)
	if _, all := allProtected(data); (all == nil) != (err == nil) {
		return fmt.Errorf("%w, and with the table of names %w", err, all)
	}
	return err
}

func ruleErr(file, data string) (err error) {
	for e := range entries(file, data) {
		_, err = parseRule(&e)
	}
	return err
}

// TestBuiltinDataHoldTheirExamples tries every example of the dangers.
func TestBuiltinDataHoldTheirExamples(t *testing.T) {
	n := 0
	for _, d := range allDangers(t) {
		examples, counter := d.lines()
		for _, e := range examples {
			n++
			if !foundIn(e, d) {
				t.Errorf("%s: %q does not find %q", d.family, d.pattern, e)
			}
		}
		for _, e := range counter {
			if foundIn(e, d) {
				t.Errorf("%s: %q finds %q", d.family, d.pattern, e)
			}
		}
	}
	if got := len(Examples()); n == 0 || got == 0 {
		t.Errorf("%d examples, %d lines", n, got)
	}
	if len(Builtins()) == 0 {
		t.Error("there are no built-in rules")
	}
	for _, r := range Builtins() { // New takes them as they are
		if err := Check(r); err != nil {
			t.Error(err)
		}
	}
}

func foundIn(line string, d danger) bool {
	for _, a := range commandsOf(line) {
		if d.shape.matches(&a) {
			return true
		}
	}
	return false
}

func TestModes(t *testing.T) {
	for m, want := range map[bawn.Mode]bawn.Autonomy{
		bawn.ModePlan: bawn.AutonomyLimited, bawn.ModeStrict: bawn.AutonomyNone, bawn.ModeSafe: bawn.AutonomyModerate, bawn.ModeNormal: bawn.AutonomyModerate,
		bawn.ModeAuto: bawn.AutonomyModerate, bawn.ModePermissive: bawn.AutonomyFull, 99: bawn.AutonomyNone,
	} {
		if got := AutonomyOf(m); got != want {
			t.Errorf("%v stands for %v, want %v", m, got, want)
		}
	}
	for a, want := range map[bawn.Autonomy]bawn.Mode{
		bawn.AutonomyNone: bawn.ModePlan, bawn.AutonomyLimited: bawn.ModePlan, bawn.AutonomyModerate: bawn.ModeNormal, bawn.AutonomyFull: bawn.ModePermissive, 99: bawn.ModePlan,
	} {
		if got := ModeOf(a); got != want {
			t.Errorf("%v is granted by %v, want %v", a, got, want)
		}
	}
}
