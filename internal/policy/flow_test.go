package policy

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
)

// sample is a small knowledge of its own, so that these tests judge the flow
// and not the data.
func sample() *knowledge {
	protected := must(parseProtected("protected.txt", `
all | read,write | ~/.ssh/** | keys
all | read,write | /etc/shadow | passwords
all | write | /etc/** | system configuration
linux | write | /usr/** | programs
darwin | write | /System/** | programs
all | write | **/.git/config | names programs that git runs`))
	return &knowledge{
		dangers: dangersOf(`
destroy | rm -r,-R,--recursive | removes whole trees | rm -r x | rm x
destroy | mkfs* | formats a disk | mkfs.ext4 x
destroy | git reset,clean | throws work away | git clean -fd ;; git reset --hard | git log
force | git push -f,--force | rewrites published history | git push -f | git push
force | git push +* | rewrites published history | git push o +main | git push o main
destroy | dd of=* !if=safe | overwrites a file | dd of=x | dd if=x
escalate | sudo | becomes root | sudo x`),
		protected: func() protections { return protected },
		secrets:   func() []string { return []string{"*TOKEN*"} },
	}
}

// withRules is a policy of the sample and of rules.
func withRules(t interface{ Fatal(...any) }, o Options, rules ...bawn.Rule) *Policy {
	p := &Policy{known: sample, memory: o.Memory, resolve: o.Resolve}
	for _, r := range rules {
		c, err := compile(r)
		if err != nil {
			t.Fatal(err)
		}
		p.rules = append(p.rules, c)
	}
	p.table = newTable(p.rules)
	return p
}

// ruleOf reads "ID SOURCE KIND VERDICT PRIORITY PATTERN".
func ruleOf(text string) bawn.Rule {
	f := strings.SplitN(text, " ", 6)
	r := bawn.Rule{ID: f[0], Pattern: f[5], Priority: len(f[4]) * 10}
	for _, err := range []error{r.Source.UnmarshalText([]byte(f[1])), r.Kind.UnmarshalText([]byte(f[2])), r.Verdict.UnmarshalText([]byte(f[3]))} {
		if err != nil {
			panic(err)
		}
	}
	return r
}

func rulesOf(texts ...string) (out []bawn.Rule) {
	for _, t := range texts {
		out = append(out, ruleOf(t))
	}
	return out
}

// TestPrecedence: priority, then deny before ask before allow; a less trusted
// source only tightens. The priority is ten times the number of bars.
func TestPrecedence(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rules []string
		line  string
		want  bawn.Verdict
		rule  string
	}{
		{"no rule", nil, "frob x", bawn.Ask, "builtin:default"},
		{"a rule allows what is not known", []string{"a user command allow | frob *"}, "frob x", bawn.Allow, "a"},
		{"a closed rule", []string{"a user command allow | frob x"}, "frob x", bawn.Allow, "a"},
		{"a closed rule and one word more", []string{"a user command allow | frob x"}, "frob x y", bawn.Ask, "builtin:default"},
		{"a closed rule and a word that is not known", []string{"a user command allow | frob x"}, "frob $(x)", bawn.Ask, ""},
		{"a rule denies what reads", []string{"a user command deny | cat *"}, "cat x", bawn.Deny, "a"},
		{"the higher priority allows", []string{"a user command allow || frob *", "b user command deny | frob *"}, "frob x", bawn.Allow, "a"},
		{"the higher priority denies", []string{"a user command allow | frob *", "b user command deny || frob *"}, "frob x", bawn.Deny, "b"},
		{"deny beats allow", []string{"a user command allow | frob *", "b user command deny | frob *"}, "frob x", bawn.Deny, "b"},
		{"deny beats allow, whichever is first", []string{"a user command deny | frob *", "b user command allow | frob *"}, "frob x", bawn.Deny, "a"},
		{"deny beats ask", []string{"a user command ask | frob *", "b user command deny | frob *"}, "frob x", bawn.Deny, "b"},
		{"ask beats allow", []string{"a user command allow | frob *", "b user command ask | frob *"}, "frob x", bawn.Ask, "b"},
		{"equal rules, the first name", []string{"b user command allow | frob *", "a user command allow | frob x"}, "frob x", bawn.Allow, "a"},
		{"a managed rule stands against a stronger one of the user", []string{"m managed command deny | frob *", "u user command allow ||| frob *"}, "frob x", bawn.Deny, "m"},
		{"a managed question too", []string{"m managed command ask | frob *", "u user command allow ||| frob *"}, "frob x", bawn.Ask, "m"},
		{"the user tightens a managed rule", []string{"m managed command allow | frob *", "u user command deny || frob *"}, "frob x", bawn.Deny, "u"},
		{"a managed rule beats a built-in one", []string{"b builtin command deny | frob *", "m managed command allow || frob *"}, "frob x", bawn.Allow, "m"},
		{"a user's rule beats a built-in one", []string{"b builtin command deny | frob *", "u user command allow || frob *"}, "frob x", bawn.Allow, "u"},
		{"a built-in rule lifts no person's denial", []string{"b builtin command allow ||| frob *", "u user command deny | frob *"}, "frob x", bawn.Deny, "u"},
		{"a project never allows", []string{"p project command allow ||| frob *"}, "frob x", bawn.Ask, "builtin:default"},
		{"a project denies", []string{"u user command allow ||| frob *", "p project command deny | frob *"}, "frob x", bawn.Deny, "p"},
		{"a learned rule is no more than a project's", []string{"l learned command allow ||| frob *"}, "frob x", bawn.Ask, "builtin:default"},
		{"the session's rule counts like the user's", []string{"u user command deny | frob *", "s session command allow || frob *"}, "frob x", bawn.Allow, "s"},
		{"the strictest part of a line", []string{"a user command allow | frob *", "b user command deny | bad"}, "frob x && bad", bawn.Deny, "b"},

		{"no rule silences danger", []string{"a managed command allow ||| rm *", "b user command allow ||| rm *"}, "rm -r x", bawn.Ask, "builtin:destroy:rm"},
		{"nor in a wrapper", []string{"a user command allow ||| rm *", "b user command allow | env *"}, "env A=b nice rm -fr x", bawn.Ask, "builtin:destroy:rm"},
		{"nor abbreviated", []string{"a user command allow ||| rm *"}, "rm --recurs x", bawn.Ask, "builtin:destroy:rm"},
		{"a pattern of a program", []string{"a user command allow ||| mkfs.ext4 *"}, "mkfs.ext4 /x", bawn.Ask, "builtin:destroy:mkfs*"},
		{"an operand", []string{"a user command allow ||| dd *"}, "dd if=a of=b", bawn.Ask, "builtin:destroy:dd"},
		{"a condition that must not hold", []string{"a user command allow ||| dd *"}, "dd if=safe of=b", bawn.Allow, "a"},
		{"words that could be a danger", []string{"a user command allow ||| git *"}, "git $(cat x) -d", bawn.Ask, "builtin:unknown-words"},
		{"half a word", []string{"a user command allow ||| git *"}, "git cle$(cat x) -d", bawn.Ask, "builtin:unknown-words"},
		{"a pattern that could be a danger", []string{"a user command allow ||| git *"}, "git c[l]ean -d", bawn.Ask, "builtin:unknown-words"},
		{"a denial beats danger", []string{"a user command deny | rm *"}, "rm -r x", bawn.Deny, "a"},
		{"no rule silences what can't be read", []string{"a user command allow ||| let *"}, "let x", bawn.Ask, "builtin:opaque"},
		{"no rule silences a protected path", []string{"a user filesystem allow ||| ~/.ssh/**", "b user command allow ||| cat *"}, "cat ~/.ssh/id", bawn.Deny, "builtin:protected:~/.ssh/**"},
		{"nor in a command of which nothing is known", []string{"b user command allow ||| frob *"}, "frob --key=~/.ssh/id", bawn.Deny, "builtin:protected:~/.ssh/**"},
		{"nor a secret", []string{"b user command allow ||| frob *"}, `frob "$GH_TOKEN"`, bawn.Ask, "builtin:secret-variable"},
		{"a secret in an assignment", []string{"b user command allow ||| true"}, `a=$GH_TOKEN; true`, bawn.Ask, ""},
		{"a secret in a redirection", nil, `cat <<<"$GH_TOKEN"`, bawn.Ask, "builtin:secret-variable"},
		{"nor a setting", []string{"b user command allow ||| frob *"}, "PATH=/x frob", bawn.Ask, "builtin:variable"},

		{"a file rule for a command's path", []string{"f user filesystem deny | **/x"}, "cat d/x", bawn.Deny, "f"},
		{"a file rule for a redirection", []string{"f user filesystem deny | out/**", "b user command allow | echo *"}, "echo a > out/x", bawn.Deny, "f"},
		{"the shell connects", []string{"b user command allow | echo *"}, "echo x > /dev/tcp/x.example/80", bawn.Ask, "builtin:opaque"},
		{"a loop in the background", []string{"b user command allow | frob *"}, "while true; do frob x & done", bawn.Ask, "builtin:loop"},
		{"nothing at all", nil, "", bawn.Deny, "builtin:invalid-action"},
		{"a comment", nil, "# x", bawn.Allow, "builtin:default"},
	} {
		q := ask4(tt.line)
		d := withRules(t, Options{}, rulesOf(tt.rules...)...).Decide(&q)
		if d.Verdict != tt.want || d.Rule != tt.rule && tt.rule != "" {
			t.Errorf("%s: %q is %v by %q (%s); want %v by %q", tt.name, tt.line, d.Verdict, d.Rule, d.Reason, tt.want, tt.rule)
		}
		if len(d.Trace) > 0 && Replay(d.Trace) != d.Verdict {
			t.Errorf("%s: the trace says %v", tt.name, Replay(d.Trace))
		}
	}
}

// TestLaunchHeedsDenials: what a rule of the human's denies is not started;
// what only the built-in rules deny was typed by the human.
func TestLaunchHeedsDenials(t *testing.T) {
	l := Launch{Policy: withRules(t, Options{}, rulesOf("a user command deny | frob *", "b managed command ask | bar *")...), Session: ask4("")}
	for line, want := range map[string]bawn.Verdict{"frob x": bawn.Deny, "bar x": bawn.Allow, "ls": bawn.Allow, "rm -r x": bawn.Allow, "cat ~/.ssh/x": bawn.Allow} {
		if d, err := l.Decide(t.Context(), ask4(line).Action); err != nil || d.Verdict != want {
			t.Errorf("%q: %v by %q, %v; want %v", line, d.Verdict, d.Rule, err, want)
		}
	}
	l = Launch{Policy: withRules(t, Options{}, rulesOf("a project command deny | rm *")...), Session: ask4("")}
	l.Session.Mode = bawn.ModePlan // which denies it too
	for line, want := range map[string]bawn.Verdict{"rm x": bawn.Deny, "mv x y": bawn.Allow} {
		if d, err := l.Decide(t.Context(), ask4(line).Action); err != nil || d.Verdict != want {
			t.Errorf("%q in mode plan: %v by %q, %v; want %v", line, d.Verdict, d.Rule, err, want)
		}
	}
}

// TestReplay derives verdicts from traces alone.
func TestReplay(t *testing.T) {
	part := bawn.Step{Stage: stagePart}
	step := func(stage string, v bawn.Verdict) bawn.Step { return bawn.Step{Stage: stage, Verdict: v} }
	for _, tt := range []struct {
		trace []bawn.Step
		want  bawn.Verdict
	}{
		{nil, bawn.Deny},
		{[]bawn.Step{step(stageDefault, bawn.Allow)}, bawn.Deny},
		{[]bawn.Step{part}, bawn.Deny},
		{[]bawn.Step{part, step(stageDefault, bawn.Allow)}, bawn.Allow},
		{[]bawn.Step{part, step(stageDefault, bawn.Deny), step(stageRule, bawn.Allow)}, bawn.Allow},
		{[]bawn.Step{part, step(stageRule, bawn.Allow), step(stageDangerous, bawn.Ask)}, bawn.Ask},
		{[]bawn.Step{part, step(stageRule, bawn.Ask), step(stageTighten, bawn.Allow)}, bawn.Ask},
		{[]bawn.Step{part, step(stageRule, bawn.Ask), step(stageLearned, bawn.Allow)}, bawn.Allow},
		{[]bawn.Step{part, step(stageRule, bawn.Allow), part, step(stageRule, bawn.Ask)}, bawn.Ask},
		{[]bawn.Step{part, step(stageRule, bawn.Ask), part, step(stageRule, bawn.Allow)}, bawn.Ask},
		{[]bawn.Step{part, step(stageRule, bawn.Allow), part}, bawn.Deny},
		{[]bawn.Step{part, part, step(stageRule, bawn.Allow)}, bawn.Deny},
		{[]bawn.Step{part, step("a stage of tomorrow", bawn.Allow)}, bawn.Deny},
	} {
		if got := Replay(tt.trace); got != tt.want {
			t.Errorf("%v replays as %v, want %v", tt.trace, got, tt.want)
		}
	}
}

// TestKeysNeverCollide: two questions share a key only if they are the same.
func TestKeysNeverCollide(t *testing.T) {
	word := rapid.SampledFrom([]string{"", "a", "b", "ab", " ", "a b"})
	question := rapid.Custom(func(t *rapid.T) Question {
		return Question{
			Action: bawn.Action{
				Kind: bawn.Kind(rapid.IntRange(1, 2).Draw(t, "kind")), Operation: bawn.Operation(rapid.IntRange(1, 2).Draw(t, "operation")),
				Resource: word.Draw(t, "resource"), Dir: word.Draw(t, "dir"), Args: rapid.SliceOfN(word, 0, 3).Draw(t, "args"),
			},
			Mode: bawn.Mode(rapid.IntRange(0, 1).Draw(t, "mode")), Autonomy: bawn.Autonomy(rapid.IntRange(0, 1).Draw(t, "autonomy")),
			Contained: bawn.Contained{Files: rapid.Bool().Draw(t, "files"), Network: rapid.Bool().Draw(t, "network")}, Covered: rapid.Bool().Draw(t, "covered"), Workspace: word.Draw(t, "workspace"), Home: word.Draw(t, "home"), System: word.Draw(t, "system"),
			Taint: Taint{rapid.Bool().Draw(t, "untrusted"), rapid.Bool().Draw(t, "private")},
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a := question.Draw(t, "a")
		b := a
		other := question.Draw(t, "b")
		switch rapid.IntRange(0, 11).Draw(t, "what differs") {
		case 0:
			b.Action.Kind = other.Action.Kind
		case 1:
			b.Action.Operation = other.Action.Operation
		case 2:
			b.Action.Resource = other.Action.Resource
		case 3:
			b.Action.Dir = other.Action.Dir
		case 4:
			b.Action.Args = other.Action.Args
		case 5:
			b.Mode = other.Mode
		case 6:
			b.Autonomy = other.Autonomy
		case 7:
			b.Contained, b.Covered = other.Contained, other.Covered
		case 8:
			b.Workspace, b.Home = other.Workspace, other.Home
		case 9:
			b.System = other.System
		case 10:
			b.Taint = other.Taint
		default:
			b = other
		}
		same := slices.Equal(a.Action.Args, b.Action.Args)
		x, y := a, b
		x.Action.Args, y.Action.Args = nil, nil
		same = same && x.Action.Kind == y.Action.Kind && x.Action.Operation == y.Action.Operation && x.Action.Resource == y.Action.Resource && x.Action.Dir == y.Action.Dir &&
			x.Mode == y.Mode && x.Autonomy == y.Autonomy && x.Contained == y.Contained && x.Covered == y.Covered && x.Workspace == y.Workspace && x.Home == y.Home && x.System == y.System && x.Taint == y.Taint
		if (a.key() == b.key()) != same {
			t.Fatalf("%+v and %+v: same key %t, same question %t", a, b, a.key() == b.key(), same)
		}
	})
}

// TestKeyOfEachField: no two questions that differ in a field share an answer.
func TestKeyOfEachField(t *testing.T) {
	q := Question{}
	none := q.key()
	v := reflect.ValueOf(&q).Elem()
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Name
		if name == "Action" { // see TestKey
			continue
		}
		switch field.Kind() {
		case reflect.Bool:
			field.SetBool(true)
		case reflect.String:
			field.SetString("x")
		case reflect.Int, reflect.Uint8:
			field.Set(reflect.ValueOf(1).Convert(field.Type()))
		case reflect.Slice:
			field.Set(reflect.ValueOf([]string{"x"}))
		case reflect.Struct:
			field.Field(0).SetBool(true)
		default:
			t.Fatalf("%s is a %v; say here how it differs", name, field.Kind())
		}
		if q.key() == none {
			t.Errorf("%s is not part of the key", name)
		}
		field.SetZero()
	}
}

func TestCache(t *testing.T) {
	p := withRules(t, Options{})
	for i := range maxCached + 10 {
		q := ask4("ls " + strings.Repeat("x", i%50) + strings.Repeat("y", i/50))
		p.Decide(&q)
	}
	if n := len(p.cache.entries); n == 0 || n > maxCached {
		t.Errorf("the cache holds %d decisions, want 1 to %d", n, maxCached)
	}
	nul := ask4("x")
	nul.Action.Args = []string{"ls", "a\x00b"}
	before := len(p.cache.entries)
	if d := p.Decide(&nul); d.Verdict == bawn.Allow || len(p.cache.entries) != before {
		t.Errorf("an argument with a NUL is %v, with %d new entries", d.Verdict, len(p.cache.entries)-before)
	}
	resolving := withRules(t, Options{Resolve: func(s string) string { return s }})
	q := ask4("ls")
	if resolving.Decide(&q); len(resolving.cache.entries) != 0 {
		t.Error("a decision that depends on the disk is cached")
	}
}

// TestArgvAndLine: an argv is no shell text; what is one there is data here.
func TestArgvAndLine(t *testing.T) {
	p := withRules(t, Options{}, rulesOf("a user command allow | frob *")...)
	for _, tt := range []struct {
		args      []string
		line      string
		want      bawn.Verdict
		canonical string
	}{
		{[]string{"cat", "a;b", "$X"}, "x", bawn.Allow, "cat 'a;b' '$X'"},
		{[]string{"rm", "-r", "x"}, "ls", bawn.Ask, "rm -r x"}, // what is executed counts, not what is shown
		{[]string{"sh", "-c", "rm -r x"}, "ls", bawn.Ask, "sh -c 'rm -r x'"},
		{[]string{"git", "status"}, "x", bawn.Allow, "git status"},
		{nil, "cat a;b", bawn.Ask, "cat a\nb"},
		{nil, "cat  'a;b'", bawn.Allow, "cat 'a;b'"},
	} {
		q := ask4(tt.line)
		q.Action.Args = tt.args
		d := p.Decide(&q)
		if d.Verdict != tt.want || d.Canonical != tt.canonical {
			t.Errorf("%q %q: %v, %q; want %v, %q (%s)", tt.args, tt.line, d.Verdict, d.Canonical, tt.want, tt.canonical, d.Reason)
		}
		if git := len(tt.args) > 0 && tt.args[0] == "git"; (d.Env != nil) != git {
			t.Errorf("%q %q: the environment is %q", tt.args, tt.line, d.Env)
		}
	}
	q := ask4("git log | cat; frob git")
	if d := p.Decide(&q); !slices.Contains(d.Env, "GIT_CONFIG_VALUE_0=/dev/null") || d.Verdict != bawn.Allow {
		t.Errorf("git in a pipe: %v, %q", d.Verdict, d.Env)
	}
	q.Action.Operation = bawn.Read
	if d := p.Decide(&q); d.Verdict != bawn.Deny || d.Rule != "builtin:operation" {
		t.Errorf("a command that is read is %v by %s", d.Verdict, d.Rule)
	}
}
