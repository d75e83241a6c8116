package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newConfigCommand(e *launch.Env) *cobra.Command {
	c := &cobra.Command{
		Use:     "config",
		Short:   "Show, check and start the configuration",
		Args:    verb.OnlyCommands,
		Example: "  bawn config show --origin\n  bawn config check",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newConfigShow(e), newConfigCheck(e), newConfigSchema(e), newConfigPath(e), newConfigInit(e))
	return c
}

func newConfigShow(e *launch.Env) *cobra.Command {
	var origin, asJSON bool
	c := &cobra.Command{
		Use:     "show",
		Short:   "Print the effective configuration",
		Args:    verb.NoArgs,
		Example: "  bawn config show\n  bawn config show --origin\n  bawn config show --json",
		RunE: func(*cobra.Command, []string) error {
			in, err := settings.InputsHere(&e.World)
			if err != nil {
				return err
			}
			c, err := config.Load(in)
			switch {
			case err != nil:
				return settings.ConfigError(err)
			case asJSON:
				return verb.WriteJSON(e.Stdout, map[string]any{"values": c.Origins()})
			}
			return writeTOML(e.Stdout, c.Origins(), origin)
		},
	}
	c.Flags().BoolVar(&origin, "origin", false, "say where each value comes from")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON, always with the origins")
	return c
}

// writeTOML writes the values as a file that could be read again. The entries
// of a list follow each other in origins.
func writeTOML(w io.Writer, origins []config.Origin, withOrigin bool) error {
	var b strings.Builder
	for len(origins) > 0 {
		o := origins[0]
		n := 1
		for n < len(origins) && origins[n].Key == o.Key {
			n++
		}
		if o.Entry {
			writeList(&b, origins[:n], withOrigin)
		} else {
			fmt.Fprintf(&b, "%s = %s%s\n", o.Key, o.Show(), comment(o, withOrigin))
		}
		origins = origins[n:]
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeList(b *strings.Builder, entries []config.Origin, withOrigin bool) {
	fmt.Fprintf(b, "%s = [\n", entries[0].Key)
	for _, o := range entries {
		fmt.Fprintf(b, "  %s,%s\n", o.Show(), comment(o, withOrigin))
	}
	b.WriteString("]\n")
}

func comment(o config.Origin, withOrigin bool) string {
	if !withOrigin {
		return ""
	}
	place := o.Place.String()
	if o.Via != "" && o.Via != place {
		place += ", " + o.Via
	}
	return "  # " + place
}

func newConfigCheck(e *launch.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Look for mistakes in the configuration",
		Long: "Without FILE, check all files that a session started in the working directory would read;\n" +
			"the project's is that of the git repository around it, as with bawn run.\n" +
			"FILE is checked as a project's file if it is named .bawn/config.toml, as the user's otherwise.",
		Args:    verb.OneFile,
		Example: "  bawn config check\n  bawn config check ./new-config.toml\n  bawn config check project/.bawn/config.toml",
		RunE: func(_ *cobra.Command, args []string) error {
			in, err := settings.InputsHere(&e.World)
			if err == nil && len(args) == 1 {
				in, err = checkedFile(e, in, args[0])
			}
			if err != nil {
				return err
			}
			c, err := config.Load(in)
			if err == nil {
				err = c.Check(layout.CredentialNames)
			}
			if err != nil {
				return settings.ConfigError(err)
			}
			if err := checkDocker(e, c, in.Workspace); err != nil {
				return e.Elsewhere(err)
			}
			_, err = fmt.Fprintln(e.Stdout, "the configuration is valid")
			return err
		},
	}
}

// checkDocker refuses options that a start with provider "docker" refuses; only
// bawnd can tell.
func checkDocker(e *launch.Env, c *config.Config, workspace string) error {
	o := c.Docker()
	if o.Image == "" && len(o.ExtraArgs) == 0 {
		return nil // no session has that provider
	}
	if e.CheckDocker == nil {
		if err := e.Absent(launch.DockerName); !errors.As(err, &launch.AbsentProvider{}) {
			return err
		}
		return launch.AbsentProvider{Part: "the check of isolation.docker_options"}
	}
	if o.Image == "" {
		return verb.Usage(`set image = "name@sha256:…" under [isolation.docker_options], or leave them out`, "isolation.docker_options.extra_args are for an image, and none is configured")
	}
	if err := e.CheckDocker(o, c.Isolation(workspace).Resources); err != nil {
		return verb.Usage("\"bawn config show --origin\" says which file has it", "isolation.docker_options: %w", err)
	}
	return nil
}

// checkedFile puts a file in the place of the one that would be read.
func checkedFile(e *launch.Env, in config.Inputs, file string) (config.Inputs, error) {
	path := settings.Absolute(&e.World, file)
	if _, err := os.Stat(path); err != nil {
		return in, verb.Usage("name a file that exists", "configuration file: %w", err)
	}
	if workspace, ok := strings.CutSuffix(path, "/"+config.ProjectFile); ok {
		return settings.ConfigInputs(&e.World, workspace, config.Flags{})
	}
	in.UserPath = path
	return in, nil
}

func newConfigSchema(e *launch.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of a configuration file",
		Args:    verb.NoArgs,
		Example: "  bawn config schema > config.schema.json",
		RunE: func(*cobra.Command, []string) error {
			_, err := e.Stdout.Write(config.Schema())
			return err
		},
	}
}

func newConfigPath(e *launch.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "path",
		Short:   "Print where the configuration files are",
		Args:    verb.NoArgs,
		Example: "  bawn config path",
		RunE: func(*cobra.Command, []string) error {
			in, err := settings.InputsHere(&e.World)
			if err != nil {
				return err
			}
			for _, f := range [][2]string{{"managed", config.ManagedFile}, {"user", in.User()}, {"project", filepath.Join(in.Workspace, config.ProjectFile)}} {
				if _, err := fmt.Fprintf(e.Stdout, "%-8s %s%s\n", f[0], f[1], missing(f[1])); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func missing(path string) string {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return " (missing)"
	}
	return ""
}

func newConfigInit(e *launch.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "init",
		Short:   "Write a first configuration file with every key commented out",
		Args:    verb.NoArgs,
		Example: "  bawn config init && $EDITOR ~/.config/bawn/config.toml",
		RunE: func(*cobra.Command, []string) error {
			in, err := settings.InputsHere(&e.World)
			if err != nil {
				return err
			}
			switch err := in.WriteStarter(); {
			case errors.Is(err, fs.ErrExist):
				return verb.Usage("edit it, or move it away first", "%q exists already and is left as it is", in.User())
			case err != nil:
				return &verb.Error{Code: verb.ExitInternal, Err: err, Hint: "set HOME or XDG_CONFIG_HOME to a directory that you may write"}
			}
			_, err = fmt.Fprintln(e.Stdout, in.User())
			return err
		},
	}
}
