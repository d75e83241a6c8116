package policycli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

func NewPolicyShow(e *launch.Env) *cobra.Command {
	var kind, source string
	var asJSON bool
	c := &cobra.Command{
		Use:   "show",
		Short: "List the rules that are in force, in the order in which they win",
		Long: `List the rules in force here: the built-in ones and those of the files that
"bawn policy check" names. Dangerous commands and protected paths
are not rules: "bawn policy explain" names them where they count.`,
		Example: "  bawn policy show --source user\n  bawn policy show --kind command --json",
		Args:    verb.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := loadPolicy(e)
			if err != nil {
				return err
			}
			f, err := newRuleFilter(kind, source)
			if err != nil {
				return err
			}
			return showRules(c, e, f.of(p.Rules()), asJSON)
		},
	}
	c.Flags().StringVar(&kind, "kind", "", "only rules of a kind: "+strings.Join(kindWords, ", "))
	c.Flags().StringVar(&source, "source", "", "only rules of a source: "+strings.Join(sourceWords, ", "))
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line")
	verb.CompleteFlags(c, map[string]func() []string{"kind": verb.Fixed(kindWords...), "source": verb.Fixed(sourceWords...)})
	return c
}

var sourceWords = []string{"builtin", "managed", "user", "project"}

// A ruleFilter chooses rules; its zero fields choose all.
type ruleFilter struct {
	kind   bawn.Kind
	source bawn.Source
}

func newRuleFilter(kind, source string) (f ruleFilter, err error) {
	if kind != "" {
		if err := f.kind.UnmarshalText([]byte(kind)); err != nil {
			return f, verb.Usage("for example: --kind command", "--kind: %w", nearly(err, kind, kindWords))
		}
	}
	if source != "" {
		if err := f.source.UnmarshalText([]byte(source)); err != nil {
			return f, verb.Usage("for example: --source user", "--source: %w", nearly(err, source, sourceWords))
		}
	}
	return f, nil
}

func (f ruleFilter) of(rules []bawn.Rule) (out []bawn.Rule) {
	for _, r := range rules {
		if (f.kind == 0 || r.Kind == f.kind) && (f.source == 0 || r.Source == f.source) {
			out = append(out, r)
		}
	}
	return out
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
	When       bawn.When        `json:"when"`
}

func showRules(c *cobra.Command, e *launch.Env, rules []bawn.Rule, asJSON bool) error {
	out := c.OutOrStdout()
	if asJSON {
		enc := verb.JSONLines(out)
		for _, r := range rules {
			if err := enc.Encode(ruleLine(r)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rules) == 0 {
		_, err := fmt.Fprintln(e.Stderr, "bawn: note: there is no such rule")
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PRIORITY\tVERDICT\tKIND\tSOURCE\tWHEN\tRULE\tREASON\tPATTERN")
	for _, r := range rules {
		what := r.Kind.String()
		for i, op := range r.Operations {
			what += map[bool]string{true: " ", false: ","}[i == 0] + op.String()
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Priority, r.Verdict, what, r.Source, r.When, verb.Visible(r.ID), cmp.Or(verb.Visible(r.Reason), "-"), verb.Visible(r.Pattern))
	}
	return t.Flush()
}

func NewPolicyCheck(e *launch.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Check policy files: their syntax, their patterns and each rule's own examples",
		Long: `Check the named files, or without names all that are in force here. A file
.bawn/policy.toml is checked as a project's, which may only narrow, and
/etc/bawn/policy.toml as the machine's; every other one as yours.

Every mistake is printed with its file and line; the exit code is 2 if there is
one.`,
		Example: "  bawn policy check\n  bawn policy check .bawn/policy.toml",
		RunE: func(c *cobra.Command, args []string) error {
			list, err := checked(e, args)
			if printErr := printChecked(c, list, asJSON); printErr != nil {
				return printErr
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a file")
	c.ValidArgsFunction = policyCompletion
	return c
}

// A checkLine is the state of one file as JSON.
type checkLine struct {
	File   string      `json:"file"`
	Source bawn.Source `json:"source"`
	State  string      `json:"state"` // absent, in order, wrong
	Rules  int         `json:"rules"`
	Error  string      `json:"error,omitempty"`
}

// checked tries the named files, or those in force; the error names all
// mistakes.
func checked(e *launch.Env, names []string) (out []checkLine, err error) {
	files := make([]settings.PolicySource, len(names))
	for i, name := range names {
		files[i] = settings.PolicySource{Path: name, Source: sourceOf(e, name)}
	}
	if len(names) == 0 {
		workspace := settings.WorkspaceOf(e.Dir, e.Getenv("HOME"))
		if err := settings.HomeAndWorkspace(&e.World, workspace); err != nil {
			return nil, err
		}
		files = settings.PolicyFiles(&e.World, workspace)
	}
	var wrong []error
	for _, f := range files {
		l := checkLine{File: f.Path, Source: f.Source, State: "in order"}
		rules, err := checkFile(e, f)
		switch l.Rules = len(rules); {
		case errors.Is(err, fs.ErrNotExist) && len(names) == 0:
			l.State = "absent"
		case err != nil:
			l.State, l.Error = "wrong", err.Error()
			wrong = append(wrong, err)
		}
		out = append(out, l)
	}
	if len(wrong) > 0 {
		return out, &verb.Error{Code: verb.ExitUsage, Err: errors.Join(wrong...), Hint: "mend what is named; nothing is decided by half a policy"}
	}
	return out, nil
}

// checkFile reads one file, and makes a policy of its rules.
func checkFile(e *launch.Env, f settings.PolicySource) ([]bawn.Rule, error) {
	data, err := os.ReadFile(settings.Absolute(&e.World, f.Path))
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	rules, err := policy.ParseFile(f.Path, data, f.Source)
	if err != nil {
		return nil, err
	}
	_, err = policy.New(rules, policy.Options{})
	return rules, err
}

func printChecked(c *cobra.Command, list []checkLine, asJSON bool) (err error) {
	enc := verb.JSONLines(c.OutOrStdout())
	for _, l := range list {
		if asJSON {
			err = enc.Encode(l)
		} else {
			what := l.State
			if l.State == "in order" {
				what = count1(l.Rules, "rule", "rules") + ", " + what
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%-8s  %s: %s\n", l.Source, verb.Visible(l.File), what)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sourceOf says as whose file a policy is checked.
func sourceOf(e *launch.Env, name string) bawn.Source {
	switch path := settings.Absolute(&e.World, name); {
	case path == settings.ManagedPolicy:
		return bawn.Managed
	case strings.HasSuffix(path, "/.bawn/"+settings.PolicyFile):
		return bawn.Project
	}
	return bawn.User
}

// policyCompletion completes names of policy files.
func policyCompletion(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
}
