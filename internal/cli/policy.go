package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

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
/etc/bawn/policy.toml, of policy.toml in your configuration directory, and of
.bawn/policy.toml in the project, which may only narrow.`,
		Example: `  bawn policy explain 'rm -rf build'
  bawn policy check
  bawn policy show --kind command`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newPolicyDecide(e), newPolicyExplain(e), newPolicyShow(e), newPolicyCheck(e), newPolicyTest(e), newPolicyDiff(e))
	return c
}

// policyFile is the name of a policy in a directory of configuration.
const policyFile = "policy.toml"

// A policySource is a file of the policy and who wrote it.
type policySource struct {
	path   string
	source bawn.Source
}

// policyFiles are the files of the policy with their sources, the most
// trusted first.
func policyFiles(e *Env, workspace string) []policySource {
	return []policySource{
		{filepath.Join("/etc/bawn", policyFile), bawn.Managed},
		{filepath.Join(baseDir(e, "XDG_CONFIG_HOME", ".config"), "bawn", policyFile), bawn.User},
		{filepath.Join(workspace, ".bawn", policyFile), bawn.Project},
	}
}

// loadPolicy reads all files of the policy. A missing file is none; one that
// is wrong is an error that names all that is wrong.
func loadPolicy(e *Env) (*policy.Policy, error) {
	rules, err := loadRules(e, workspaceOf(e.Dir, e.Getenv("HOME")))
	if err != nil {
		return nil, err
	}
	return newPolicy(rules)
}

func newPolicy(rules []bawn.Rule) (*policy.Policy, error) {
	p, err := policy.New(rules, policy.Options{Resolve: resolveLinks})
	if err != nil {
		return nil, &Error{Code: ExitUsage, Err: err, Hint: "mend the rule; nothing is decided by half a policy"}
	}
	return p, nil
}

func loadRules(e *Env, workspace string) ([]bawn.Rule, error) {
	var rules []bawn.Rule
	var wrong []error
	for _, f := range policyFiles(e, workspace) {
		data, err := atomicfile.Read(f.path, policy.MaxFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("read the policy: %w", err))
			continue
		}
		list, err := policy.ParseFile(f.path, data, f.source)
		if err != nil {
			wrong = append(wrong, err)
		}
		rules = append(rules, list...)
	}
	if len(wrong) > 0 {
		return nil, &Error{Code: ExitUsage, Err: errors.Join(wrong...), Hint: "\"bawn policy check\" tries the files again"}
	}
	return rules, nil
}

// launchPolicy is the policy for the start of a session: nil where nobody has
// written a rule, since the built-in ones deny no human.
func launchPolicy(e *Env, workspace string) (*policy.Policy, error) {
	rules, err := loadRules(e, workspace)
	if err != nil || len(rules) == 0 {
		return nil, err
	}
	return newPolicy(rules)
}
