package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/skill/strict"
)

// sessionEnv is the world of a verb of bawn's, with what only bawnd has.
func sessionEnv() *launch.Env {
	e := launch.OwnEnv(providers)
	e.Docker, e.CheckDocker, e.CheckEngine, e.Gateway = dockerAPI, checkDocker, checkEngine, serveGateway
	e.CheckSkill, e.Tools = strict.Check, serveTools
	return e
}

// asked puts a request for completion, which bawn makes as VERB __complete …,
// as cobra takes it.
func asked(args []string) []string {
	if len(args) < 2 || !strings.HasPrefix(args[1], cobra.ShellCompRequestCmd) {
		return args
	}
	return slices.Concat([]string{args[1], args[0]}, args[2:])
}
