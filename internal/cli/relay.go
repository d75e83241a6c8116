package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/verb"
)

// The verbs of the relay and its human are bawnd's.

func newServeCommand(e *launch.Env) *cobra.Command {
	return delegate(e, "serve", "Run the relay: what guests ask, on your other screens", "  bawn serve")
}

func newApprovalsCommand(e *launch.Env) *cobra.Command {
	return human(e, "approvals", "See what guests ask, and answer", "  bawn approvals\n  bawn approvals --json")
}

func newApproveCommand(e *launch.Env) *cobra.Command {
	return human(e, "approve", "Say yes to what a guest asks", "  bawn approve 3f2a\n  bawn approve 3f2a --session")
}

func newDenyCommand(e *launch.Env) *cobra.Command {
	return human(e, "deny", "Say no to what a guest asks", "  bawn deny 3f2a --why 'use the staging host'")
}

func newPairCommand(e *launch.Env) *cobra.Command {
	return human(e, "pair", "Let a browser or phone of yours answer, over the web page", "  bawn pair\n  bawn pair --list")
}

// human is a verb that no guest may use. The relay refuses guests by who they
// are; here they are only told.
func human(e *launch.Env, name, short, example string) *cobra.Command {
	return outsideOnly(e, delegate(e, name, short, example), "only the human may answer, from outside of the session", "ask the human; \"bawn request\" asks for more")
}

// outsideOnly tells a guest why the verb is of no use to it.
func outsideOnly(e *launch.Env, c *cobra.Command, why, hint string) *cobra.Command {
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if e.Getenv(launch.SessionVariable) != "" {
			return &verb.Error{Code: verb.ExitDenied, Err: errors.New("this is a guest: " + why), Hint: hint}
		}
		return run(c, args)
	}
	return c
}
