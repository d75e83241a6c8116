// Command bawnd holds what bawn does not carry along: the relay of a session's
// network, the vault, and the relay of approvals. It is started by bawn.
package main

import (
	"os"
	"slices"

	"github.com/bawn-dev/bawn/internal/cli"
	"github.com/bawn-dev/bawn/internal/dockerapi"
	"github.com/bawn-dev/bawn/internal/egressd"
	"github.com/bawn-dev/bawn/internal/launch"
)

// sessionVerbs are verbs of bawn's that may need a provider which only bawnd has:
// bawn becomes bawnd then, with the same words, or asks it.
var sessionVerbs = []string{"run", "doctor", "dockerd-proxy", "config", "acp", "mcp", "skill", launch.Verb}

func main() {
	args, code := launch.AsPart(os.Args) // of a session whose program this is
	if args == nil {
		os.Exit(code)
	}
	if len(args) > 0 && args[0] == dockerapi.WatchArgument {
		os.Exit(dockerapi.Watch(args[1:], os.Stdin))
	}
	if len(args) > 0 && args[0] == "secret" {
		os.Exit(runSecret(args[1:]))
	}
	if len(args) > 0 && slices.Contains(sessionVerbs, args[0]) {
		os.Exit(cli.Main(asked(args), sessionEnv()))
	}
	if isRelay(args) {
		os.Exit(runRelay(args))
	}
	os.Exit(egressd.Main(args, os.Environ()))
}
