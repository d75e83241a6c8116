// Package policycli holds "bawn policy": what the policy says, why, and what it would
// say of other rules.
package policycli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// New makes the command.
func New(e *launch.Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "policy",
		Short: "See, test and explain what agents may do",
		Long: `The policy decides what agents may do: built-in rules, the rules of
/etc/bawn/policy.toml, of policy.toml in your configuration directory, those
made of your answers "always" and "never", and those of .bawn/policy.toml in the
project, which may only narrow.`,
		Example: `  bawn policy explain 'rm -rf build'
  bawn policy check
  bawn policy show --kind command`,
		Args: verb.OnlyCommands,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(NewPolicyDecide(e), NewPolicyExplain(e), NewPolicyShow(e), NewPolicyCheck(e), newPolicyTest(e), newPolicyDiff(e), newPolicyInit(e), newPolicySchema(e), NewPolicyImport(e), NewPolicyLearned(e), newPolicyApproved(e))
	return c
}

// policies are the policies in force, by workspace: the rules of the machine
// and of the user are shared, those of a project are its own.
type policies struct {
	e      *launch.Env
	shared []bawn.Rule
	opts   policy.Options
	only   *policy.Policy // decides everything, where it is not nil
	base   *policy.Policy // without a project's rules
	loaded map[string]*policy.Policy
}

// policiesInForce reads all files of the policy. A missing file counts as empty. A
// file with mistakes is an error that names all of them.
func policiesInForce(e *launch.Env, workspace string) (*policies, error) {
	rules, err := settings.LoadRules(&e.World, workspace)
	if err != nil {
		return nil, err
	}
	p := &policies{e: e, opts: policy.Options{Resolve: settings.ResolveLinks}, loaded: map[string]*policy.Policy{}}
	learned, err := openLearned(e)
	if err != nil {
		return nil, err
	}
	if learned != nil {
		p.opts.Memory = learned
	}
	p.shared = slices.DeleteFunc(slices.Clone(rules), func(r bawn.Rule) bool { return r.Source == bawn.Project })
	if p.base, err = settings.NewPolicy(p.shared, p.opts); err != nil {
		return nil, err
	}
	return p, p.add(workspace, rules[len(p.shared):])
}

// add keeps the policy of a workspace with its own rules.
func (p *policies) add(workspace string, own []bawn.Rule) (err error) {
	of := p.base
	if len(own) > 0 {
		if of, err = settings.NewPolicy(slices.Concat(p.shared, own), p.opts); err != nil {
			return err
		}
	}
	p.loaded[workspace] = of
	return nil
}

// maxWorkspaces is how many workspaces are remembered.
const maxWorkspaces = 1000

// of returns the policy for actions in a workspace.
func (p *policies) of(workspace string) (*policy.Policy, error) {
	if p.only != nil {
		return p.only, nil
	}
	if of := p.loaded[workspace]; of != nil {
		return of, nil
	}
	if len(p.loaded) >= maxWorkspaces {
		clear(p.loaded)
	}
	files := settings.PolicyFiles(&p.e.World, workspace)
	own, err := settings.ReadRules(files[len(files)-1:])
	if err == nil {
		err = p.add(workspace, own)
	}
	return p.loaded[workspace], err
}

// loadPolicy is the policy in force where the command was started.
func loadPolicy(e *launch.Env) (*policy.Policy, error) {
	workspace := settings.WorkspaceOf(e.Dir, e.Getenv("HOME"))
	p, err := policiesInForce(e, workspace)
	if err != nil {
		return nil, err
	}
	return p.of(workspace)
}
