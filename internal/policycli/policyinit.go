package policycli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newPolicyInit(e *launch.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "init",
		Short:   "Write a first policy file with an example of each kind commented out",
		Args:    verb.NoArgs,
		Example: "  bawn policy init && $EDITOR ~/.config/bawn/policy.toml",
		RunE: func(c *cobra.Command, _ []string) error {
			workspace := settings.WorkspaceOf(e.Dir, e.Getenv("HOME"))
			if err := settings.HomeAndWorkspace(&e.World, workspace); err != nil {
				return err
			}
			file := settings.UserPolicy(&e.World)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				return &verb.Error{Code: verb.ExitInternal, Err: err, Hint: "set HOME or XDG_CONFIG_HOME to a directory that you may write"}
			}
			err := atomicfile.Create(file, policy.Starter(), 0o600)
			switch {
			case errors.Is(err, fs.ErrExist):
				return verb.Usage("edit it, or move it away first", "%q exists already and is left as it is", file)
			case err != nil:
				return &verb.Error{Code: verb.ExitInternal, Err: err}
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), file)
			return err
		},
	}
}

func newPolicySchema(e *launch.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of a policy file",
		Args:    verb.NoArgs,
		Example: "  bawn policy schema > policy.schema.json",
		RunE: func(*cobra.Command, []string) error {
			_, err := e.Stdout.Write(policy.Schema())
			return err
		},
	}
}
