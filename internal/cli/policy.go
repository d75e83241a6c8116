package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/policy"
)

func newPolicyCommand(e *Env) *cobra.Command {
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
		Args: onlyCommands,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newPolicyDecide(e), newPolicyExplain(e), newPolicyShow(e), newPolicyCheck(e), newPolicyTest(e), newPolicyDiff(e), newPolicyInit(e), newPolicySchema(e), newPolicyImport(e), newPolicyLearned(e), newPolicyApproved(e))
	return c
}

// policyFile is the name of a policy in a directory of configuration.
const (
	policyFile    = "policy.toml"
	managedPolicy = "/etc/bawn/" + policyFile
)

// A policySource is a file of the policy and who wrote it.
type policySource struct {
	path   string
	source bawn.Source
}

// policyFiles are the files of the policy with their sources, the most
// trusted first.
func policyFiles(e *Env, workspace string) []policySource {
	return []policySource{
		{managedPolicy, bawn.Managed},
		{userPolicy(e), bawn.User},
		{filepath.Join(workspace, ".bawn", policyFile), bawn.Project},
	}
}

// userPolicy is the file of the user's own rules.
func userPolicy(e *Env) string {
	return filepath.Join(baseDir(e, "XDG_CONFIG_HOME", ".config"), "bawn", policyFile)
}

// policies are the policies in force, by workspace: the rules of the machine
// and of the user are shared, those of a project are its own.
type policies struct {
	e      *Env
	shared []bawn.Rule
	opts   policy.Options
	only   *policy.Policy // decides everything, where it is not nil
	base   *policy.Policy // without a project's rules
	loaded map[string]*policy.Policy
}

// policiesInForce reads all files of the policy. A missing file counts as empty. A
// file with mistakes is an error that names all of them.
func policiesInForce(e *Env, workspace string) (*policies, error) {
	rules, err := loadRules(e, workspace)
	if err != nil {
		return nil, err
	}
	p := &policies{e: e, opts: policy.Options{Resolve: resolveLinks}, loaded: map[string]*policy.Policy{}}
	learned, err := openLearned(e)
	if err != nil {
		return nil, err
	}
	if learned != nil {
		p.opts.Memory = learned
	}
	p.shared = slices.DeleteFunc(slices.Clone(rules), func(r bawn.Rule) bool { return r.Source == bawn.Project })
	if p.base, err = newPolicy(p.shared, p.opts); err != nil {
		return nil, err
	}
	return p, p.add(workspace, rules[len(p.shared):])
}

// add keeps the policy of a workspace with its own rules.
func (p *policies) add(workspace string, own []bawn.Rule) (err error) {
	of := p.base
	if len(own) > 0 {
		if of, err = newPolicy(slices.Concat(p.shared, own), p.opts); err != nil {
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
	files := policyFiles(p.e, workspace)
	own, err := readRules(files[len(files)-1:])
	if err == nil {
		err = p.add(workspace, own)
	}
	return p.loaded[workspace], err
}

// loadPolicy is the policy in force where the command was started.
func loadPolicy(e *Env) (*policy.Policy, error) {
	workspace := workspaceOf(e.Dir, e.Getenv("HOME"))
	p, err := policiesInForce(e, workspace)
	if err != nil {
		return nil, err
	}
	return p.of(workspace)
}

func newPolicy(rules []bawn.Rule, o policy.Options) (*policy.Policy, error) {
	p, err := policy.New(rules, o)
	if err != nil {
		return nil, &Error{Code: ExitUsage, Err: err, Hint: "mend the rule; nothing is decided by half a policy"}
	}
	return p, nil
}

// homeAndWorkspace refuses to look for files where nobody said where they are.
func homeAndWorkspace(e *Env, workspace string) (err error) {
	home := e.Getenv("HOME")
	switch {
	case !filepath.IsAbs(home):
		err = usageError("set HOME to your home directory", "HOME is %q; want an absolute path", home)
	case !filepath.IsAbs(workspace):
		err = usageError("change to a directory that exists", "the working directory does not exist")
	}
	return err
}

// loadRules reads all files, the project's last. What has been answered
// "always" and "never" stands beside the user's own rules.
func loadRules(e *Env, workspace string) ([]bawn.Rule, error) {
	if err := homeAndWorkspace(e, workspace); err != nil {
		return nil, err
	}
	files := policyFiles(e, workspace)
	written, err := readRules(files[:len(files)-1])
	own, err2 := readRules(files[len(files)-1:])
	given, err3 := approvedRules(e)
	if err := firstError(err, err2, err3); err != nil {
		return nil, err
	}
	return slices.Concat(written, given, own), nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func readRules(files []policySource) (rules []bawn.Rule, err error) {
	var wrong []error
	for _, f := range files {
		list, err := readFile(f)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			wrong = append(wrong, err)
		}
		rules = append(rules, list...)
	}
	if len(wrong) > 0 {
		return nil, &Error{Code: ExitUsage, Err: errors.Join(wrong...), Hint: "mend what is named; \"bawn policy check\" tries the files again, and nothing is decided by half a policy"}
	}
	return rules, nil
}

func readFile(f policySource) ([]bawn.Rule, error) {
	data, err := atomicfile.Read(f.path, policy.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	return policy.ParseFile(f.path, data, f.source)
}

// launchPolicy is the policy for the start of a session: nil where nobody has
// written a rule, since the built-in ones deny no human.
func launchPolicy(e *Env, workspace string) (*policy.Policy, error) {
	rules, err := loadRules(e, workspace)
	if err != nil || len(rules) == 0 {
		return nil, err
	}
	return newPolicy(rules, policy.Options{Resolve: resolveLinks})
}
