package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
)

// anyLine is a line of the corpus, or two of them joined.
func anyLine(t testing.TB) *rapid.Generator[string] {
	lines := append(corpus(t, "benign.tsv"), corpus(t, "dangerous.tsv")...)
	one := rapid.Custom(func(t *rapid.T) string { return rapid.SampledFrom(lines).Draw(t, "line").command })
	return rapid.Custom(func(t *rapid.T) string {
		join := rapid.SampledFrom([]string{"", "", " && ", "; ", " | ", " || "}).Draw(t, "join")
		if join == "" {
			return one.Draw(t, "line")
		}
		return one.Draw(t, "first") + join + one.Draw(t, "second")
	})
}

// anyQuestion is about a command, a path, a host or a tool.
func anyQuestion(lines *rapid.Generator[string]) *rapid.Generator[Question] {
	return rapid.Custom(func(t *rapid.T) Question {
		q := ask4("")
		q.Mode = bawn.Mode(rapid.IntRange(0, int(bawn.ModePermissive)).Draw(t, "mode"))
		q.Autonomy = bawn.Autonomy(rapid.IntRange(0, int(bawn.AutonomyFull)).Draw(t, "autonomy"))
		q.Contained = rapid.SampledFrom([]bawn.Contained{{}, bawn.ContainedFully, {Files: true, Processes: true}, {Network: true}}).Draw(t, "contained")
		q.Covered = rapid.Bool().Draw(t, "covered")
		q.Taint = Taint{rapid.Bool().Draw(t, "untrusted"), rapid.Bool().Draw(t, "private")}
		a := &q.Action
		a.Kind = bawn.Kind(rapid.IntRange(1, 4).Draw(t, "kind"))
		switch a.Kind {
		case bawn.Command:
			a.Resource, a.Operation = lines.Draw(t, "command"), bawn.Exec
		case bawn.Network:
			a.Resource, a.Operation = rapid.SampledFrom([]string{"registry.npmjs.org:443", "x.example", "127.0.0.1:80", "10.0.0.1", "https://a.b/c", "bad host"}).Draw(t, "host"), bawn.Connect
		case bawn.Tool:
			a.Resource, a.Operation = rapid.SampledFrom([]string{"Read", "mcp__x__y", "z"}).Draw(t, "tool"), bawn.Call
		default:
			a.Resource = rapid.SampledFrom([]string{"main.go", "/etc/passwd", "~/.ssh/id_rsa", ".env", "../x", "/tmp/a", ".git/config", "/usr/bin/x", "a/../../b"}).Draw(t, "path")
			a.Operation = rapid.SampledFrom([]bawn.Operation{bawn.Read, bawn.Write, bawn.Create, bawn.Delete, bawn.Exec}).Draw(t, "operation")
		}
		return q
	})
}

// anyRule speaks of something that questions ask about.
func anyRule() *rapid.Generator[bawn.Rule] {
	return rapid.Custom(func(t *rapid.T) bawn.Rule {
		r := bawn.Rule{
			ID:       fmt.Sprintf("r%d", rapid.IntRange(0, 99).Draw(t, "id")),
			Kind:     bawn.Kind(rapid.IntRange(1, 4).Draw(t, "kind")),
			Verdict:  bawn.Verdict(rapid.IntRange(0, 2).Draw(t, "verdict")),
			Priority: rapid.IntRange(0, 300).Draw(t, "priority"),
			Source:   rapid.SampledFrom([]bawn.Source{bawn.Managed, bawn.User, bawn.Project, bawn.SessionSource}).Draw(t, "source"),
		}
		r.Pattern = rapid.SampledFrom(map[bawn.Kind][]string{
			bawn.Command:    {"git *", "rm *", "cat *", "go test *", "npm *", "ls *", "echo *", "sh *", "find *", "curl *", "make"},
			bawn.Filesystem: {"**", "**/.env", "src/**", "/etc/**", "~/**", "*.go"},
			bawn.Network:    {"*", "*.npmjs.org", "x.example", "registry.npmjs.org:443"},
			bawn.Tool:       {"*", "Read", "mcp__*"},
		}[r.Kind]).Draw(t, "pattern")
		return r
	})
}

func mustPolicy(t interface{ Fatal(...any) }, o Options, rules ...bawn.Rule) *Policy {
	p, err := New(rules, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestStricterRuleNeverAllowsMore: adding a rule that denies, of any source
// and priority, never turns a denial into a question, nor a question into
// permission.
func TestDenyRuleNeverAllowsMore(t *testing.T) {
	questions := anyQuestion(anyLine(t))
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfN(anyRule(), 0, 4).Draw(t, "rules")
		deny := anyRule().Draw(t, "deny")
		deny.Verdict = bawn.Deny
		before, after := mustPolicy(t, Options{}, rules...), mustPolicy(t, Options{}, append(rules, deny)...)
		q := questions.Draw(t, "question")
		if a, b := before.Decide(&q), after.Decide(&q); b.Verdict > a.Verdict {
			t.Fatalf("%v was %v and is %v with %v", q.Action.Resource, a.Verdict, b.Verdict, deny)
		}
	})
}

// TestLowerAutonomyNeverAllowsMore compares each autonomy with the one above.
func TestLowerAutonomyNeverAllowsMore(t *testing.T) {
	questions := anyQuestion(anyLine(t))
	rapid.Check(t, func(t *rapid.T) {
		p := mustPolicy(t, Options{}, rapid.SliceOfN(anyRule(), 0, 4).Draw(t, "rules")...)
		q := questions.Draw(t, "question")
		if q.Autonomy == bawn.AutonomyNone {
			return
		}
		lower := q
		lower.Autonomy--
		a, b := p.Decide(&q), p.Decide(&lower)
		if b.Verdict == bawn.Allow && a.Verdict < bawn.Allow {
			t.Fatalf("%q: %v at %v, %v at %v", q.Action.Resource, a.Verdict, q.Autonomy, b.Verdict, lower.Autonomy)
		}
	})
}

// TestNoSandboxNeverAllowsMore: what is allowed without a sandbox, or with less of one, is
// allowed contained.
func TestNoSandboxNeverAllowsMore(t *testing.T) {
	questions := anyQuestion(anyLine(t))
	rapid.Check(t, func(t *rapid.T) {
		p := mustPolicy(t, Options{}, rapid.SliceOfN(anyRule(), 0, 4).Draw(t, "rules")...)
		q := questions.Draw(t, "question")
		q.Contained = bawn.ContainedFully
		bare := q
		bare.Contained = bawn.Contained{}
		if a, b := p.Decide(&q), p.Decide(&bare); b.Verdict > a.Verdict {
			t.Fatalf("%q: %v contained, %v bare", q.Action.Resource, a.Verdict, b.Verdict)
		}
	})
}

// TestEqualQuestionsEqualDecisions: also from the cache, and whatever was
// asked between.
func TestEqualQuestionsEqualDecisions(t *testing.T) {
	questions := anyQuestion(anyLine(t))
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfNDistinct(anyRule(), 0, 4, func(r bawn.Rule) string { return r.ID }).Draw(t, "rules")
		p := mustPolicy(t, Options{}, rules...)
		q := questions.Draw(t, "question")
		first := p.Decide(&q)
		other := questions.Draw(t, "other")
		p.Decide(&other)
		turned := append([]bawn.Rule(nil), rules...)
		for i, j := 0, len(turned)-1; i < j; i, j = i+1, j-1 {
			turned[i], turned[j] = turned[j], turned[i]
		}
		uncached := mustPolicy(t, Options{}, turned...).Decide(&q)
		if diff := cmp.Diff(first, p.Decide(&q)); diff != "" {
			t.Fatalf("from the cache: %s", diff)
		}
		if diff := cmp.Diff(first, uncached); diff != "" {
			t.Fatalf("with the rules in another order: %s", diff)
		}
	})
}

// TestTraceRederivesTheVerdict: nothing decides that is not in the trace.
func TestTraceRederivesTheVerdict(t *testing.T) {
	questions := anyQuestion(anyLine(t))
	rapid.Check(t, func(t *rapid.T) {
		p := mustPolicy(t, Options{Memory: always{}}, rapid.SliceOfN(anyRule(), 0, 4).Draw(t, "rules")...)
		q := questions.Draw(t, "question")
		d := p.Decide(&q)
		if len(d.Trace) > 0 && Replay(d.Trace) != d.Verdict {
			t.Fatalf("%q is %v, its trace says %v: %v", q.Action.Resource, d.Verdict, Replay(d.Trace), d.Trace)
		}
		if d.Reason == "" || d.Rule == "" || d.Source == 0 {
			t.Fatalf("%q: the decision does not say why: %+v", q.Action.Resource, d)
		}
	})
}

// always has learned that everything is fine.
type always struct{}

func (always) Recall(string) (bawn.Verdict, float64, bool) { return bawn.Allow, 1, true }

// TestNothingLearnedAllowsWhatIsDangerous: a memory that says yes to every shape allows
// no line of a program that is dangerous, without a sandbox.
func TestNothingLearnedAllowsWhatIsDangerous(t *testing.T) {
	p := mustPolicy(t, Options{Memory: always{}})
	for _, d := range allDangers(t) {
		lines, _ := d.lines()
		for _, line := range lines {
			q := ask4(line)
			if p.Decide(&q).Verdict == bawn.Allow {
				t.Errorf("%s: %q is allowed by what was learned", d.family, line)
			}
		}
	}
	allowed := 0
	for _, l := range corpus(t, "benign.tsv") {
		q := ask4(l.command)
		with, without := p.Decide(&q), corpusPolicy(t).Decide(&q)
		if with.Verdict > without.Verdict {
			allowed++
		}
	}
	if allowed == 0 {
		t.Error("the memory changed nothing: this test can't fail")
	}
}

// TestStricterModeNeverAllowsMore: strict ≤ safe ≤ normal ≤ permissive, auto ≤ permissive
// and plan ≤ normal, for any question and rules.
func TestStricterModeNeverAllowsMore(t *testing.T) {
	questions := anyQuestion(anyLine(t))
	pairs := [][2]bawn.Mode{
		{bawn.ModeStrict, bawn.ModeSafe}, {bawn.ModeSafe, bawn.ModeNormal}, {bawn.ModeNormal, bawn.ModePermissive}, {bawn.ModeAuto, bawn.ModePermissive}, {bawn.ModePlan, bawn.ModeNormal},
	}
	rapid.Check(t, func(t *rapid.T) {
		p := mustPolicy(t, Options{}, rapid.SliceOfN(anyRule(), 0, 4).Draw(t, "rules")...)
		q := questions.Draw(t, "question")
		for _, pair := range pairs {
			a, b := q, q
			a.Mode, b.Mode = pair[0], pair[1]
			a.Autonomy, b.Autonomy = AutonomyOf(a.Mode), AutonomyOf(b.Mode)
			if x, y := p.Decide(&a), p.Decide(&b); x.Verdict == bawn.Allow && y.Verdict < bawn.Allow {
				t.Fatalf("%q: %v in %v by %s, %v in %v by %s", q.Action.Resource, x.Verdict, a.Mode, x.Rule, y.Verdict, b.Mode, y.Rule)
			}
		}
	})
}

// TestNothingLiftsAPersonsNo: a denial of a manager or a project stands whatever else is
// said, whatever contains the session and whatever a checkpoint covers.
func TestNothingLiftsAPersonsNo(t *testing.T) {
	lines := anyLine(t)
	rapid.Check(t, func(t *rapid.T) {
		q := ask4(lines.Draw(t, "line"))
		q.Mode = bawn.Mode(rapid.IntRange(0, int(bawn.ModePermissive)).Draw(t, "mode"))
		q.Autonomy, q.Contained, q.Covered = AutonomyOf(q.Mode), bawn.ContainedFully, true
		rules := slices.DeleteFunc(rapid.SliceOfN(anyRule(), 0, 4).Draw(t, "rules"), func(r bawn.Rule) bool { return r.Source == bawn.Managed || r.Source == bawn.Project })
		for _, c := range commandsOf(q.Action.Resource) {
			if strings.ContainsAny(c.program, ",*! ") || c.program == "" || c.program[0] == '-' {
				continue
			}
			sources := []bawn.Source{bawn.Managed, bawn.Project}
			if len(rules) == 0 {
				sources = append(sources, bawn.User) // against the built-in rules alone
			}
			for _, source := range sources {
				no := bawn.Rule{ID: "no", Kind: bawn.Command, Pattern: c.program + " *", Verdict: bawn.Deny, Priority: -9, Source: source}
				if d := mustPolicy(t, Options{}, append(slices.Clone(rules), no)...).Decide(&q); d.Verdict != bawn.Deny {
					t.Fatalf("%q is %v by %q in %v mode, against %v of %v", q.Action.Resource, d.Verdict, d.Rule, q.Mode, no.Pattern, source)
				}
			}
		}
	})
}
