package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
)

func newPolicyExplain(e *Env) *cobra.Command {
	var s situation
	var kind, operation string
	c := &cobra.Command{
		Use:   "explain [flags] [--] ACTION",
		Short: "Show each step of a decision, and what would change it",
		Long: `Print how the policy decides an action: every command that a line would run,
what is known of it, which rules speak, and under which modes, autonomies and
containment the answer would be another one.`,
		Example: `  bawn policy explain 'rm -rf build'
  bawn policy explain --contained 'make test | tee log.txt'
  bawn policy explain --kind filesystem --operation write .git/hooks/pre-commit
  bawn policy explain --kind network registry.npmjs.org:443`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := loadPolicy(e)
			if err != nil {
				return err
			}
			d := decider{e: e, policy: p}
			q, err := d.question(&actionLine{situation: s, Kind: kind, Operation: operation, Resource: args[0]})
			if err != nil {
				return usageError("see \"bawn policy explain --help\"", "%v", err)
			}
			return explain(c.OutOrStdout(), p, q)
		},
	}
	s.declare(c)
	c.Flags().StringVar(&kind, "kind", "command", "kind of the action: filesystem, network, command, tool")
	c.Flags().StringVar(&operation, "operation", "", "operation: read, write, create, delete, exec, connect, call")
	_ = c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"filesystem", "network", "command", "tool"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// explain writes the decision with its trace as a tree.
func explain(w io.Writer, p *policy.Policy, q *policy.Question) error {
	d := p.Decide(q)
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n  by %s (%s), in %s mode, %s autonomy, %s\n\n", d.Verdict, visible(d.Reason), d.Rule, d.Source, q.Mode, q.Autonomy, containment(q.Contained))
	for _, s := range d.Trace {
		if s.Stage == "part" {
			fmt.Fprintf(&b, "%s\n", visible(s.Why))
			continue
		}
		fmt.Fprintf(&b, "  %-5s  %-14s  %s\n", s.Verdict, s.Stage, visible(s.Why))
	}
	if d.Canonical != "" && d.Canonical != q.Action.Resource {
		fmt.Fprintf(&b, "\nwhat would be executed is\n  %s\n", strings.ReplaceAll(visible(d.Canonical), "\n", "\n  "))
	}
	if len(d.Env) > 0 {
		fmt.Fprintf(&b, "\nwith the variables\n  %s\n", strings.Join(d.Env, "\n  "))
	}
	if others := alternatives(p, q, d.Verdict); len(others) > 0 {
		fmt.Fprintf(&b, "\nit would be\n  %s\n", strings.Join(others, "\n  "))
	} else {
		b.WriteString("\nno mode, autonomy or sandbox changes this\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func containment(is bool) string {
	if is {
		return "contained by a sandbox"
	}
	return "without a sandbox"
}

// alternatives lists what else would lead to another verdict.
func alternatives(p *policy.Policy, q *policy.Question, v bawn.Verdict) (out []string) {
	try := func(what string, change func(*policy.Question)) {
		other := *q
		change(&other)
		if d := p.Decide(&other); d.Verdict != v {
			out = append(out, fmt.Sprintf("%-5s  %s", d.Verdict, what))
		}
	}
	try(containment(!q.Contained), func(o *policy.Question) { o.Contained = !q.Contained })
	for m := bawn.ModePlan; m <= bawn.ModePermissive; m++ {
		if m != q.Mode {
			try("in "+m.String()+" mode", func(o *policy.Question) { o.Mode, o.Autonomy = m, policy.AutonomyOf(m) })
		}
	}
	if q.Taint.Any() {
		try("in a session that has read nothing untrusted or private", func(o *policy.Question) { o.Taint = policy.Taint{} })
	}
	return out
}

// visible escapes what a terminal would obey or hide.
func visible(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c >= ' ' && c != 0x7f && (c < 0x80 || c > 0x9f) && c != 0x200b && !(c >= 0x200e && c <= 0x202e) && !(c >= 0x2060 && c <= 0x206f) {
			return c
		}
		return '�'
	}, s)
}
