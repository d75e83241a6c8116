package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/grants"
	"github.com/bawn-dev/bawn/internal/policy"
)

// grantsFile is where what was answered "always" and "never" is kept.
func grantsFile(e *Env) (*grants.File, error) {
	dir, err := stateDir(e)
	if err != nil {
		return nil, err
	}
	return grants.In(dir), nil
}

// approvedRules reads it; none where there is no place for it.
func approvedRules(e *Env) ([]bawn.Rule, error) {
	f, err := grantsFile(e)
	if err != nil {
		return nil, nil // no state: nobody has answered
	}
	rules, err := f.Rules()
	if err != nil {
		return nil, grantsError(err)
	}
	return rules, nil
}

// grantsError says what to do about a file that is not as it was written.
func grantsError(err error) error {
	var tampered *grants.TamperedError
	if errors.As(err, &tampered) {
		return &Error{Code: ExitUsage, Err: err, Hint: visible(tampered.Remedy())}
	}
	return &Error{Code: ExitInternal, Err: err}
}

func newPolicyApproved(e *Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "approved",
		Short: "See or forget the rules made of your answers \"always\" and \"never\"",
		Long: `An answer "always" or "never" to a question becomes a rule of yours, in a file of
Bawn's own beside the files that you write. A rule that denies, of anybody and
of any priority, wins over an approved one; "bawn policy show" lists all.`,
		Example: "  bawn policy approved\n  bawn policy approved forget approved:3f2a91c05d",
		Args:    onlyCommands,
		RunE: func(c *cobra.Command, _ []string) error {
			rules, err := approvedRules(e)
			if err != nil {
				return err
			}
			return showRules(c, e, rules, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line")
	c.AddCommand(newApprovedForget(e))
	return c
}

func newApprovedForget(e *Env) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:     "forget [RULE]",
		Short:   "Forget a rule by its name, as \"bawn policy approved\" shows it, or all",
		Example: "  bawn policy approved forget approved:3f2a91c05d\n  bawn policy approved forget --all",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			rule := strings.Join(args, "")
			if all == (rule != "") {
				return usageError("see \"bawn policy approved\" for what there is", "want either a rule or --all")
			}
			return forgetApproved(c, e, rule)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return approvedIDs(e), cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().BoolVar(&all, "all", false, "forget all, also where the file can't be read")
	return c
}

func approvedIDs(e *Env) (ids []string) {
	rules, _ := approvedRules(e) // there is nothing to complete then
	for _, r := range rules {
		ids = append(ids, r.ID+"\t"+r.Verdict.String()+" "+visible(r.Pattern))
	}
	return ids
}

func forgetApproved(c *cobra.Command, e *Env, rule string) error {
	f, err := grantsFile(e)
	if err != nil {
		return err
	}
	if rule == "" {
		if err := f.Clear(); err != nil {
			return &Error{Code: ExitInternal, Err: err}
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), "all forgotten")
		return err
	}
	if !strings.HasPrefix(rule, policy.Approved) {
		rule = policy.Approved + rule
	}
	n, err := f.Forget(rule)
	switch {
	case err != nil:
		return grantsError(err)
	case n == 0:
		return usageError("see \"bawn policy approved\"", "there is no approved rule %q", rule)
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%d forgotten\n", n)
	return err
}
