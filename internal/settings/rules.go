package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/grants"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/verb"
)

// PolicyFile is the name of a policy in a directory of configuration.
const (
	PolicyFile    = "policy.toml"
	ManagedPolicy = "/etc/bawn/" + PolicyFile
)

// A policySource is a file of the policy and who wrote it.
type PolicySource struct {
	Path   string
	Source bawn.Source
}

// PolicyFiles are the files of the policy with their sources, the most
// trusted first.
func PolicyFiles(w *verb.World, workspace string) []PolicySource {
	return []PolicySource{
		{ManagedPolicy, bawn.Managed},
		{UserPolicy(w), bawn.User},
		{filepath.Join(workspace, ".bawn", PolicyFile), bawn.Project},
	}
}

// UserPolicy is the file of the user's own rules.
func UserPolicy(w *verb.World) string {
	return filepath.Join(BaseDir(w, "XDG_CONFIG_HOME", ".config"), "bawn", PolicyFile)
}

// NewPolicy makes a policy of rules; the error says what to do about a bad one.
func NewPolicy(rules []bawn.Rule, o policy.Options) (*policy.Policy, error) {
	p, err := policy.New(rules, o)
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitUsage, Err: err, Hint: "mend the rule; nothing is decided by half a policy"}
	}
	return p, nil
}

// HomeAndWorkspace refuses to look for files where nobody said where they are.
func HomeAndWorkspace(w *verb.World, workspace string) (err error) {
	home := w.Getenv("HOME")
	switch {
	case !filepath.IsAbs(home):
		err = verb.Usage("set HOME to your home directory", "HOME is %q; want an absolute path", home)
	case !filepath.IsAbs(workspace):
		err = verb.Usage("change to a directory that exists", "the working directory does not exist")
	}
	return err
}

// LoadRules reads all files, the project's last. Answers of "always" and
// "never" stand beside the user's own rules.
func LoadRules(w *verb.World, workspace string) ([]bawn.Rule, error) {
	if err := HomeAndWorkspace(w, workspace); err != nil {
		return nil, err
	}
	files := PolicyFiles(w, workspace)
	written, err := ReadRules(files[:len(files)-1])
	own, err2 := ReadRules(files[len(files)-1:])
	given, err3 := ApprovedRules(w)
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

// ReadRules reads files of rules; one that is not there counts as empty. The error
// names all mistakes.
func ReadRules(files []PolicySource) (rules []bawn.Rule, err error) {
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

func readFile(f PolicySource) ([]bawn.Rule, error) {
	data, err := atomicfile.Read(f.Path, policy.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	return policy.ParseFile(f.Path, data, f.Source)
}

// StartPolicy is the policy for the start of a session: nil where nobody has
// written a rule, since the built-in ones deny no human.
func StartPolicy(w *verb.World, workspace string) (*policy.Policy, error) {
	rules, err := LoadRules(w, workspace)
	if err != nil || len(rules) == 0 {
		return nil, err
	}
	return NewPolicy(rules, policy.Options{Resolve: ResolveLinks})
}

// ResolveLinks returns where a path leads when links are followed, as far as
// it exists.
func ResolveLinks(name string) string {
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

// GrantsFile holds the answers of "always" and "never".
func GrantsFile(w *verb.World) (*grants.File, error) {
	dir, err := StateDir(w)
	if err != nil {
		return nil, err
	}
	return grants.In(dir), nil
}

// ApprovedRules reads it; it returns nil without a place for it.
func ApprovedRules(w *verb.World) ([]bawn.Rule, error) {
	f, err := GrantsFile(w)
	if err != nil {
		return nil, nil // no state: nobody has answered
	}
	rules, err := f.Rules()
	if err != nil {
		return nil, GrantsError(err)
	}
	return rules, nil
}

// GrantsError says what to do about a file that is not as it was written.
func GrantsError(err error) error {
	var tampered *grants.TamperedError
	if errors.As(err, &tampered) {
		return &verb.Error{Code: verb.ExitUsage, Err: err, Hint: redact.Visible(tampered.Remedy())}
	}
	return &verb.Error{Code: verb.ExitInternal, Err: err}
}
