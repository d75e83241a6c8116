package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/plugincli"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newTrustCommand(e *launch.Env) *cobra.Command {
	var list, forget, yes, asJSON bool
	c := &cobra.Command{
		Use:   "trust [FILE]",
		Short: "Let a project's configuration widen what its sessions may do",
		Long: "Show what the project's file asks for beyond your own configuration, ask, and permit it from now on.\n" +
			"This holds for exactly the bytes that were read: any change ends it. Without FILE it is .bawn/config.toml\nof the workspace: the git repository around the working directory, or else that directory.",
		Args:    verb.OneFile,
		Example: "  bawn trust\n  bawn trust project/.bawn/config.toml\n  bawn trust --list\n  bawn trust --forget",
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case list && (forget || len(args) > 0):
				return verb.Usage("give --list alone", "--list takes neither --forget nor a file")
			case asJSON && !list:
				return verb.Usage("add --list", "--json goes with --list")
			case list:
				return listTrust(e, asJSON)
			}
			file, err := projectFile(e, args)
			if err != nil {
				return err
			}
			if forget {
				return forgetTrust(e, file)
			}
			return addTrust(e, file, yes)
		},
	}
	c.Flags().BoolVar(&list, "list", false, "print what is trusted")
	c.Flags().BoolVar(&forget, "forget", false, "end the trust in the file")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&asJSON, "json", false, "with --list: write JSON")
	return c
}

// projectFile returns the file that args name, or else that of the workspace a
// session would have here.
func projectFile(e *launch.Env, args []string) (string, error) {
	if len(args) == 1 {
		return settings.Absolute(&e.World, args[0]), nil
	}
	in, err := settings.InputsHere(&e.World)
	return filepath.Join(in.Workspace, config.ProjectFile), err
}

// addTrust trusts the bytes that were shown, even if the file changes before
// the answer.
func addTrust(e *launch.Env, file string, yes bool) error {
	workspace, ok := strings.CutSuffix(file, "/"+config.ProjectFile)
	if !ok {
		return verb.Usage("only a project's file needs trust", "%q is not a project's file; want one named %s", file, config.ProjectFile)
	}
	in, err := settings.ConfigInputs(&e.World, workspace, config.Flags{})
	if err != nil {
		return err
	}
	t, err := config.Examine(in)
	switch {
	case errors.Is(exists(file), fs.ErrNotExist):
		return verb.Usage("without such a file there is nothing to trust", "%q does not exist", file)
	case err != nil:
		return settings.ConfigError(err)
	}
	if len(t.Widens) == 0 {
		_, err := fmt.Fprintf(e.Stdout, "%s widens nothing and needs no trust\n", t.Path)
		return err
	}
	fmt.Fprintf(e.Stderr, "%s asks for\n", redact.Visible(t.Path))
	for _, widens := range t.Widens {
		fmt.Fprintf(e.Stderr, "  %s\n", redact.Visible(widens))
	}
	if err := plugincli.Confirm(e, "Trust it?", yes); err != nil {
		return err
	}
	t.At = time.Now().UTC().Truncate(time.Second)
	if err := t.Add(in); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	_, err = fmt.Fprintf(e.Stdout, "trusted %s (sha256 %s)\nany change of the file ends this; so does \"bawn trust --forget\"\n", t.Path, t.SHA256)
	return err
}

func exists(file string) error {
	_, err := os.Lstat(file)
	return err
}

func listTrust(e *launch.Env, asJSON bool) error {
	in, err := settings.InputsHere(&e.World)
	if err != nil {
		return err
	}
	trusted, err := config.Trusted(in)
	if err != nil {
		return settings.ConfigError(err)
	}
	if asJSON {
		return verb.WriteJSON(e.Stdout, map[string]any{"trusted": append([]config.Trust{}, trusted...)})
	}
	if len(trusted) == 0 {
		fmt.Fprintln(e.Stderr, "bawn: note: no project's file is trusted")
	}
	for _, t := range trusted {
		if _, err := fmt.Fprintf(e.Stdout, "%s  %s  %s\n  %s\n", t.At.Format(time.RFC3339), t.SHA256, t.Path, strings.Join(t.Widens, "\n  ")); err != nil {
			return err
		}
	}
	return nil
}

// forgetTrust works also where the file is gone by now.
func forgetTrust(e *launch.Env, file string) error {
	in, err := settings.InputsHere(&e.World)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(filepath.Dir(file))); err == nil {
		file = filepath.Join(real, config.ProjectFile)
	}
	found, err := config.Forget(in, file)
	switch {
	case err != nil:
		return settings.ConfigError(err)
	case !found:
		return verb.Usage("see \"bawn trust --list\"", "%q is not trusted", file)
	}
	_, err = fmt.Fprintf(e.Stdout, "%s is no longer trusted\n", file)
	return err
}
