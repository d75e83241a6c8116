package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
)

func newPolicyShow(e *Env) *cobra.Command {
	var kind string
	var asJSON bool
	c := &cobra.Command{
		Use:     "show",
		Short:   "List the rules that are in force, in the order in which they win",
		Example: "  bawn policy show\n  bawn policy show --kind command --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := loadPolicy(e)
			if err != nil {
				return err
			}
			var only bawn.Kind
			if kind != "" {
				if err := only.UnmarshalText([]byte(kind)); err != nil {
					return usageError("for example: --kind command", "--kind: %v", err)
				}
			}
			return showRules(c, p.Rules(), only, asJSON)
		},
	}
	c.Flags().StringVar(&kind, "kind", "", "only rules of a kind: filesystem, network, command, tool")
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line")
	_ = c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"filesystem", "network", "command", "tool"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// A ruleLine is one rule as JSON.
type ruleLine struct {
	ID         string           `json:"id"`
	Kind       bawn.Kind        `json:"kind"`
	Operations []bawn.Operation `json:"operations,omitempty"`
	Pattern    string           `json:"pattern"`
	Verdict    bawn.Verdict     `json:"verdict"`
	Priority   int              `json:"priority"`
	Source     bawn.Source      `json:"source"`
	Reason     string           `json:"reason,omitempty"`
	Match      []string         `json:"match,omitempty"`
	NotMatch   []string         `json:"not_match,omitempty"`
}

func showRules(c *cobra.Command, rules []bawn.Rule, only bawn.Kind, asJSON bool) error {
	out := c.OutOrStdout()
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !asJSON {
		fmt.Fprintln(t, "PRIORITY\tVERDICT\tKIND\tPATTERN\tSOURCE\tRULE\tREASON")
	}
	for _, r := range rules {
		if only != 0 && r.Kind != only {
			continue
		}
		if asJSON {
			if err := enc.Encode(ruleLine(r)); err != nil {
				return err
			}
			continue
		}
		what := r.Kind.String()
		for i, op := range r.Operations {
			what += map[bool]string{true: " ", false: ","}[i == 0] + op.String()
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Priority, r.Verdict, what, visible(r.Pattern), r.Source, visible(r.ID), visible(r.Reason))
	}
	return t.Flush()
}

func newPolicyCheck(e *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Check policy files: their syntax, their patterns and each rule's own examples",
		Long: "Check the named files as files of your own policy, or without names all files that are in force.\n" +
			"Every mistake is printed with its file and line; the exit code is 2 if there is one.",
		Example: "  bawn policy check\n  bawn policy check .bawn/policy.toml",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return checkInForce(c, e)
			}
			for _, name := range args {
				data, err := os.ReadFile(absolute(e, name))
				if err != nil {
					return usageError("name a policy file", "%v", err)
				}
				rules, err := policy.ParseFile(name, data, sourceOf(name))
				if err != nil {
					return &Error{Code: ExitUsage, Err: err}
				}
				fmt.Fprintf(c.OutOrStdout(), "%s: %d rules, in order\n", name, len(rules))
			}
			return nil
		},
	}
}

// sourceOf says as whose file a policy is checked: one in .bawn is a
// project's.
func sourceOf(name string) bawn.Source {
	if strings.HasSuffix(name, ".bawn/"+policyFile) {
		return bawn.Project
	}
	return bawn.User
}

func checkInForce(c *cobra.Command, e *Env) error {
	if _, err := loadPolicy(e); err != nil {
		return err
	}
	for _, f := range policyFiles(e, workspaceOf(e.Dir, e.Getenv("HOME"))) {
		state := "absent"
		if _, err := os.Stat(f.path); err == nil {
			state = "in order"
		}
		fmt.Fprintf(c.OutOrStdout(), "%-8s  %s: %s\n", f.source, f.path, state)
	}
	return nil
}
