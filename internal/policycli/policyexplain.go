package policycli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/policy/suggest"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

func NewPolicyExplain(e *launch.Env) *cobra.Command {
	var s situation
	var kind, operation string
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain [flags] ACTION | -- COMMAND ARG...",
		Short: "Show each step of a decision, and what would change it",
		Long: `Print how the policy decides an action: every command that a line would run,
the form that proves it harmless or why none does, which rules and entries apply,
and what would change the answer: a rule, the containment, a mode. A rule is
suggested only after it was tried.

ACTION is a command line or, with --kind, a path, a host or a tool. Several
arguments are one command with its arguments. Nothing is run or recorded.`,
		Example: `  bawn policy explain 'rm -rf build'
  bawn policy explain --contained 'make test | tee log.txt'
  bawn policy explain --kind filesystem --operation write .git/hooks/pre-commit
  bawn policy explain --kind network registry.npmjs.org:443
  bawn policy explain --json -- git push`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return verb.Usage("for example: bawn policy explain 'rm -rf build'", "no action to explain")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			d, err := newDecider(e, s)
			if err != nil {
				return err
			}
			x, err := d.explain(kind, operation, args)
			switch {
			case err != nil:
				return asUsage(err, "see \"bawn policy explain --help\"")
			case asJSON:
				return verb.WriteJSON(c.OutOrStdout(), x.json())
			}
			_, err = io.WriteString(c.OutOrStdout(), x.text(width(e)))
			return err
		},
	}
	s.declare(c)
	c.SetFlagErrorFunc(lineFlagError)
	c.Flags().StringVar(&kind, "kind", "command", "kind of the action: "+strings.Join(kindWords, ", "))
	c.Flags().StringVar(&operation, "operation", "", "operation: "+strings.Join(operationWords, ", ")+" (default: the kind's usual one)")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	verb.CompleteFlags(c, map[string]func() []string{"kind": verb.Fixed(kindWords...), "operation": verb.Fixed(operationWords...)})
	return c
}

// An explanation is a decision with its reasons.
type explanation struct {
	question *policy.Question
	decision bawn.Decision
	parts    []policy.Part
	others   []alternative
	advice   advice
}

// An alternative is what else would lead to another verdict.
type alternative struct {
	Verdict bawn.Verdict `json:"verdict"`
	Change  string       `json:"change"`
}

func (d *decider) explain(kind, operation string, args []string) (*explanation, error) {
	a, err := d.given(kind, args)
	if err != nil {
		return nil, err
	}
	a.Operation = operation
	q, err := d.question(a)
	if err != nil {
		return nil, err
	}
	p, err := d.policies.of(q.Workspace)
	if err != nil {
		return nil, err
	}
	x := &explanation{question: q}
	x.decision, x.parts = p.Explain(q)
	x.others = alternatives(p, q, x.decision.Verdict)
	x.advice = advise(p, d.policies.opts, x)
	x.advice.file = settings.UserPolicy(&d.e.World)
	return x, nil
}

func containment(c bawn.Contained) string {
	missing := c.Missing(bawn.ContainedFully)
	switch len(missing) {
	case 0:
		return "contained by a sandbox"
	case 3:
		return "without a sandbox"
	}
	return "contained by a sandbox but for its " + strings.Join(missing, " and ")
}

// other is the containment that is tried instead of one.
func other(c bawn.Contained) bawn.Contained {
	if c == bawn.ContainedFully {
		return bawn.Contained{}
	}
	return bawn.ContainedFully
}

// alternatives lists what else would lead to another verdict: one change, or
// where none allows, a mode together with a sandbox.
func alternatives(p *policy.Policy, q *policy.Question, v bawn.Verdict) (out []alternative) {
	try := func(what string, change func(*policy.Question)) {
		other := *q
		change(&other)
		if d := p.Decide(&other); d.Verdict != v {
			out = append(out, alternative{d.Verdict, what})
		}
	}
	try(containment(other(q.Contained)), func(o *policy.Question) { o.Contained = other(q.Contained) })
	modes(q, try, "", func(*policy.Question) {})
	if q.Taint.Any() {
		try("in a session that has read nothing untrusted or private", func(o *policy.Question) { o.Taint = policy.Taint{} })
	}
	if v < bawn.Allow && q.Contained != bawn.ContainedFully && !slices.ContainsFunc(out, func(a alternative) bool { return a.Verdict == bawn.Allow }) {
		before := len(out)
		modes(q, try, ", "+containment(bawn.ContainedFully), func(o *policy.Question) { o.Contained = bawn.ContainedFully })
		out = slices.Concat(out[:before], slices.DeleteFunc(out[before:], func(a alternative) bool { return a.Verdict < bawn.Allow }))
	}
	return out
}

// modes tries each other mode with its autonomy.
func modes(q *policy.Question, try func(string, func(*policy.Question)), and string, also func(*policy.Question)) {
	for m := bawn.ModePlan; m <= bawn.ModePermissive; m++ {
		if m != q.Mode || q.Autonomy != policy.AutonomyOf(m) {
			try("in "+m.String()+" mode"+and, func(o *policy.Question) {
				o.Mode, o.Autonomy = m, policy.AutonomyOf(m)
				also(o)
			})
		}
	}
}

// An explanationLine is an explanation as JSON.
type explanationLine struct {
	decisionLine
	Mode         bawn.Mode     `json:"mode"`
	Autonomy     bawn.Autonomy `json:"autonomy"`
	Contained    bool          `json:"contained"`
	Cwd          string        `json:"cwd"`
	Workspace    string        `json:"workspace"`
	Parts        []partLine    `json:"parts"`
	Alternatives []alternative `json:"alternatives"`
	Rules        []ruleLine    `json:"suggested_rules"`
	Advice       string        `json:"advice,omitempty"`
}

type partLine struct {
	Text    string       `json:"text"`
	Via     []string     `json:"via,omitempty"`
	Effect  string       `json:"effect,omitempty"`
	Verdict bawn.Verdict `json:"verdict"`
	Reason  string       `json:"reason"`
	Rule    string       `json:"rule"`
	Source  bawn.Source  `json:"source"`
	Steps   []stepLine   `json:"steps"`
}

func (x *explanation) json() explanationLine {
	q := x.question
	l := explanationLine{
		decisionLine: newDecisionLine(nil, x.decision), Mode: q.Mode, Autonomy: q.Autonomy, Contained: q.Contained == bawn.ContainedFully, Cwd: q.Action.Dir, Workspace: q.Workspace,
		Parts: []partLine{}, Alternatives: append([]alternative{}, x.others...), Rules: []ruleLine{}, Advice: x.advice.text(),
	}
	for _, p := range x.parts {
		pl := partLine{Text: suggest.Text(&p), Verdict: p.Verdict, Reason: p.Reason, Rule: p.Rule, Source: p.Source, Steps: stepLines(p.Steps)}
		if c := p.Command; c != nil {
			pl.Via, pl.Effect = c.Via, p.Effect.String()
		}
		l.Parts = append(l.Parts, pl)
	}
	for _, r := range x.advice.rules {
		l.Rules = append(l.Rules, ruleLine(r))
	}
	return l
}

// count1 writes a number with its noun.
func count1(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
