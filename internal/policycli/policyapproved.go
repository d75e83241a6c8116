package policycli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newPolicyApproved(e *launch.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "approved",
		Short: "See or forget the rules made of your answers \"always\" and \"never\"",
		Long: `An answer "always" or "never" to a question becomes a rule of yours, in a file of
Bawn's own beside the files that you write. A rule that denies, of anybody and
of any priority, wins over an approved one; "bawn policy show" lists all.`,
		Example: "  bawn policy approved\n  bawn policy approved forget approved:3f2a91c05d",
		Args:    verb.OnlyCommands,
		RunE: func(c *cobra.Command, _ []string) error {
			rules, err := settings.ApprovedRules(&e.World)
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

func newApprovedForget(e *launch.Env) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:     "forget [RULE]",
		Short:   "Forget a rule by its name, as \"bawn policy approved\" shows it, or all",
		Example: "  bawn policy approved forget approved:3f2a91c05d\n  bawn policy approved forget --all",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			rule := strings.Join(args, "")
			if all == (rule != "") {
				return verb.Usage("see \"bawn policy approved\" for what there is", "want either a rule or --all")
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

func approvedIDs(e *launch.Env) (ids []string) {
	rules, _ := settings.ApprovedRules(&e.World) // there is nothing to complete then
	for _, r := range rules {
		ids = append(ids, r.ID+"\t"+r.Verdict.String()+" "+verb.Visible(r.Pattern))
	}
	return ids
}

func forgetApproved(c *cobra.Command, e *launch.Env, rule string) error {
	f, err := settings.GrantsFile(&e.World)
	if err != nil {
		return err
	}
	if rule == "" {
		if err := f.Clear(); err != nil {
			return &verb.Error{Code: verb.ExitInternal, Err: err}
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
		return settings.GrantsError(err)
	case n == 0:
		return verb.Usage("see \"bawn policy approved\"", "there is no approved rule %q", rule)
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%d forgotten\n", n)
	return err
}
