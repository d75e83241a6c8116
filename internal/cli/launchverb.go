package cli

import (
	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/plugincli"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newLaunchCommand(e *launch.Env) *cobra.Command {
	return &cobra.Command{
		Use: launch.Verb, Short: "Start a session from its spec (for bawn itself)", Hidden: true, Args: verb.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			spec, err := e.Receive()
			if err != nil {
				return verb.Usage("use \"bawn run\"", "%q is for bawn itself: %v", "bawn "+launch.Verb, err)
			}
			if spec.Gateway != nil {
				return (&plugincli.Serving{Env: e, Parent: spec.Parent}).Run(spec.Gateway.Servers)
			}
			return (&launch.Launch{Spec: *spec}).Run(e)
		},
	}
}
