package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/grants"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/verb"
)

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

func newPolicy(rules []bawn.Rule, o policy.Options) (*policy.Policy, error) {
	p, err := policy.New(rules, o)
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitUsage, Err: err, Hint: "mend the rule; nothing is decided by half a policy"}
	}
	return p, nil
}

// homeAndWorkspace refuses to look for files where nobody said where they are.
func homeAndWorkspace(e *Env, workspace string) (err error) {
	home := e.Getenv("HOME")
	switch {
	case !filepath.IsAbs(home):
		err = verb.Usage("set HOME to your home directory", "HOME is %q; want an absolute path", home)
	case !filepath.IsAbs(workspace):
		err = verb.Usage("change to a directory that exists", "the working directory does not exist")
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
		return nil, &verb.Error{Code: verb.ExitUsage, Err: errors.Join(wrong...), Hint: "mend what is named; \"bawn policy check\" tries the files again, and nothing is decided by half a policy"}
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

// resolveLinks returns where a path leads when links are followed, as far as
// it exists.
func resolveLinks(name string) string {
	rest := ""
	for dir := name; ; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		switch {
		case err == nil:
			return filepath.Join(real, rest)
		case !errors.Is(err, os.ErrNotExist) || dir == "/" || dir == ".":
			return name
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

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
		return &verb.Error{Code: verb.ExitUsage, Err: err, Hint: redact.Visible(tampered.Remedy())}
	}
	return &verb.Error{Code: verb.ExitInternal, Err: err}
}
