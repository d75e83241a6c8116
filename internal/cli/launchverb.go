package cli

import (
	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/verb"
)

func newLaunchCommand(e *Env) *cobra.Command {
	return &cobra.Command{
		Use: launchVerb, Short: "Start a session from its spec (for bawn itself)", Hidden: true, Args: verb.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			spec, err := e.receive()
			if err != nil {
				return verb.Usage("use \"bawn run\"", "%q is for bawn itself: %v", "bawn "+launchVerb, err)
			}
			if spec.Gateway != nil {
				return (&mcpServe{env: e, parent: spec.Parent}).run(spec.Gateway.Servers)
			}
			return (&launch{Spec: *spec}).run(e)
		},
	}
}
