package cli

import (
	"bytes"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/launch"
)

// newSecretCommand hands its words to bawnd, which has the vault: not every
// bawn run should pay for the start of a keyring and encryption.
func newSecretCommand(e *launch.Env) *cobra.Command {
	return outsideOnly(e, delegate(e, "secret", "Keep credentials outside, and say where they may be put in",
		"  bawn secret set github                                    # asks for the value\n"+
			"  bawn secret bind github --host api.github.com --bearer --env GH_TOKEN\n"+
			"  bawn secret list"), "secrets are kept outside of the session", "what was bound to this session is put in where it is sent; the human binds more with \"bawn secret bind\"")
}

// delegate is a verb that hands its words to bawnd.
func delegate(e *launch.Env, name, short, example string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Example: example, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return launch.Become(e, name, args) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, last string) ([]string, cobra.ShellCompDirective) {
			return completeOther(e, name, append(args, last))
		},
	}
}

// completeOther asks bawnd, in cobra's own protocol: a completion a line, and
// a directive after a colon at the end.
func completeOther(e *launch.Env, name string, args []string) ([]string, cobra.ShellCompDirective) {
	path, err := remote.Find()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	cmd := exec.Command(path, append([]string{name, cobra.ShellCompRequestCmd}, args...)...)
	cmd.Env = e.Environ
	out, err := cmd.Output()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	lines := strings.Split(strings.TrimSpace(string(bytes.TrimSpace(out))), "\n")
	last := lines[len(lines)-1]
	n, err := strconv.Atoi(strings.TrimPrefix(last, ":"))
	if err != nil || !strings.HasPrefix(last, ":") {
		return nil, cobra.ShellCompDirectiveError
	}
	return lines[:len(lines)-1], cobra.ShellCompDirective(n)
}
