package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/shim"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newRunCommand(e *launch.Env) *cobra.Command {
	f, all := &launch.Flags{}, false
	c := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...]",
		Short: "Run a command as a guest: in a sandbox the kernel enforces",
		Long: `Run a command as a guest.

The guest reads the system and writes to the workspace, its own /tmp and its
caches. Credentials are hidden. Files that programs on the host execute later
(.git/hooks, .vscode, .envrc, ...) can't be written. The network opens by name.
Everything that the guest started is gone when it ends.

With --split an agent and what it executes have a sandbox each: the agent reaches
its model only, and each of its commands is decided by itself.`,
		Example: `  bawn run -- claude                      # agents that Bawn knows: bawn agents
  bawn run -- npm install                 # or any other program
  bawn run --allow db.corp:5432 -- npm test
  bawn run --host-port 5432 -p 8080:3000 -- npm run dev
  bawn run --split --secret anthropic-api-key -- claude
  bawn run --copy --name fix -- claude    # on a copy: bawn diff fix, bawn apply fix
  bawn run --plan -- make                 # what would be enforced`,
		Args: func(c *cobra.Command, args []string) error {
			if !all && (len(args) == 0 || args[0] == "") {
				return verb.Usage("for example: bawn run -- sh", "no command to run")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if all {
				return c.Help()
			}
			return runFrom(f, c, e, args)
		},
	}
	f.Declare(c.Flags())
	c.Flags().BoolVar(&all, "help-all", false, "help for run, with all flags")
	helpWith(c, everydayFlags, &all)
	launch.CompleteRun(c, e)
	return c
}

// everydayFlags are those that "bawn run --help" shows.
var everydayFlags = []string{
	"allow", "copy", "detach", "docker", "env", "help", "help-all", "host-port", "mode", "name", "net", "plan", "profile", "publish", "quiet", "ro", "rw", "secret", "split", "timeout",
}

// helpWith has the command's help show these flags only, unless all are wanted.
func helpWith(c *cobra.Command, names []string, all *bool) {
	help := c.HelpFunc()
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		var hidden []*pflag.Flag
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !*all && !f.Hidden && !slices.Contains(names, f.Name) {
				f.Hidden = true // for this help only: completion offers it
				hidden = append(hidden, f)
			}
		})
		help(c, args)
		for _, f := range hidden {
			f.Hidden = false
		}
	})
}

func runFrom(f *launch.Flags, c *cobra.Command, e *launch.Env, args []string) error {
	spec, err := f.Spec(c.Flags(), e, args)
	if err != nil {
		return err
	}
	if !f.Plan && e.Guest() {
		return verb.Status(shim.Session(e.Args[1:], e.Environ))
	}
	if wantsHost(f, e) {
		return startHost(f, spec, e)
	}
	return (&launch.Launch{Spec: *spec, Plan: f.Plan}).Run(e)
}
