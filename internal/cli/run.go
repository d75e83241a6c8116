package cli

import (
	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/shim"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newRunCommand(e *launch.Env) *cobra.Command {
	f := &launch.Flags{}
	c := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...]",
		Short: "Run a command as a guest: in a sandbox the kernel enforces",
		Long: `Run a command as a guest.

The guest reads the system and writes only to the workspace, its own /tmp and
its caches. The workspace is the git repository around the current directory,
or else that directory. Credentials are hidden, files that programs on the host
execute later (.git/hooks, .vscode, .envrc, ...) can't be written. The network
opens by name: to registries of packages, the APIs of models, git repositories
to be read, and to what you say yes to. Everything it started is gone when it
ends.

Of agents that are known ("bawn agents") the guest also has the state, the login,
the keys and the model, and can't change what the agent obeys.

With --split the agent and what it executes have a sandbox each: the agent
reaches its model only, and its shells hand their commands to the policy and the
other one, which has the network, and none of the agent's keys.

--allow, --http, --git, --host-port and --secret say what else the network is
to reach, and make it "allowlist" where --net is not given.`,
		Example: `  bawn run -- sh
  bawn run -- claude
  bawn run -- npm install
  bawn run --allow '*.npmjs.org' --allow db.corp:5432 -- npm test
  bawn run --http 'api.example.org GET,HEAD /v1/**' -- sh
  bawn run --git 'github.com push team/app refs/heads/agent/*' -- claude
  bawn run --host-port 5432 -p 8080:3000 -- npm run dev
  bawn run --secret anthropic-api-key -- claude
  bawn run --split --secret anthropic-api-key -- claude
  bawn run --plan -- make
  bawn run --memory 2g --pids 200 --timeout 10m -- go test ./...
  bawn run --detach -- claude    # in the background; bawn attach comes to it`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return verb.Usage("for example: bawn run -- sh", "no command to run")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return runFrom(f, c, e, args) },
	}
	f.Declare(c.Flags())
	launch.CompleteRun(c, e)
	return c
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
