package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/shim"
	"github.com/bawn-dev/bawn/internal/verb"
)

// newRequestCommand makes `bawn request`, which a guest calls.
func newRequestCommand(e *launch.Env) *cobra.Command {
	var why, allow string
	c := &cobra.Command{
		Use:   "request (--allow HOST[:PORT] | -- COMMAND [ARG...])",
		Short: "As a guest, ask your human to allow something",
		Long: `As a guest, ask the human of your session to allow something that you are
about to do: to reach a host, or, in a session whose commands are decided one by
one (bawn run --split), to run a command. It waits for the answer.

What --why says is shown to the human as your words. Exit code 0 means yes, 126
no. What was not said yes to now can't be had by asking again; the host's
directories and limits are not given to a session that runs already.`,
		Example: `  bawn request --allow api.example.org --why "the tests fetch fixtures there"
  bawn request --allow build.example:22
  bawn request --why "the branch is ready" -- git push origin main`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			want, err := wanted(c, allow, args)
			if err != nil {
				return err
			}
			if !e.Guest() {
				return &verb.Error{Code: verb.ExitDenied, Err: fmt.Errorf("this is no guest of a session with a socket, so there is nobody to ask"), Hint: "a human decides with \"bawn approve\", or with the flags of \"bawn run\""}
			}
			_, code := shim.Request(want, why)
			if code != 0 {
				return verb.Status(code)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), "allowed")
			return err
		},
	}
	c.Flags().StringVar(&allow, "allow", "", "`host` you want to reach, with its port where that is not 443")
	c.Flags().StringVar(&why, "why", "", "your reason, in your words: the human reads them as yours")
	c.Flags().SetInterspersed(false)
	return c
}

// wanted is the request in the terms of the session socket.
func wanted(c *cobra.Command, allow string, args []string) ([]string, error) {
	switch {
	case allow != "" && len(args) > 0:
		return nil, verb.Usage("ask twice", "a host and a command at once")
	case allow != "":
		return []string{"--allow", allow}, nil
	case len(args) > 0 && c.ArgsLenAtDash() == 0:
		return slices.Concat([]string{"--"}, args), nil
	}
	return nil, verb.Usage("for example: bawn request --allow api.example.org", "nothing is asked for; want --allow HOST, or a command behind --")
}
