// Package cli holds the verbs of the bawn command: flags, output, exit codes.
// Each verb is one file that parses, calls and prints.
package cli

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/acpcli"
	"github.com/bawn-dev/bawn/internal/hookcli"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/plugincli"
	"github.com/bawn-dev/bawn/internal/policycli"
	"github.com/bawn-dev/bawn/internal/undocli"
	"github.com/bawn-dev/bawn/internal/verb"
)

// Main runs one command line and returns the exit code.
func Main(args []string, e *launch.Env) int {
	e.Args = args
	root := newRoot(e, args)
	return e.Hosted(verb.Run(root, args, &e.World, func(err error) int { return report(e, err, launch.JSONWanted(e, root, args)) }))
}

// report tells of an error and returns its exit code.
func report(e *launch.Env, err error, asJSON bool) int {
	code, hint := verb.ExitUsage, "see \"bawn --help\""
	var ce *verb.Error
	if errors.As(err, &ce) {
		code, hint = ce.Code, ce.Hint
	}
	if asJSON {
		launch.End{Exit: code, Error: launch.NewEndError(code, err, hint)}.Write(e)
		return code
	}
	if where := launch.Inside(e); where != "" && (launch.HiddenState(err) || errors.Is(err, fs.ErrPermission)) {
		hint = "this is a guest, in " + where + ": bawn's log and configuration are outside and can't be seen from here"
	}
	verb.Report(&e.World, err, hint)
	return code
}

// verbs makes the commands. They are made one by one because most of a short
// command's time goes by before it runs.
var verbs = map[string]func(*launch.Env) *cobra.Command{
	"run": newRunCommand, launch.Verb: newLaunchCommand, "agents": newAgentsCommand, "audit": newAuditCommand, "config": newConfigCommand, "mcp": plugincli.NewMCP, "trust": newTrustCommand, "policy": policycli.New, "doctor": newDoctorCommand, "dockerd-proxy": newDockerProxyCommand,
	"version": newVersionCommand, "secret": newSecretCommand, "request": newRequestCommand, "why": newWhyCommand, "ps": newPsCommand, "attach": newAttachCommand, "logs": newLogsCommand, "kill": newKillCommand, "serve": newServeCommand,
	"acp": acpcli.New, "approvals": newApprovalsCommand, "approve": newApproveCommand, "init": hookcli.NewInit, "deny": newDenyCommand, "pair": newPairCommand, "plugin": plugincli.NewPlugin, "git": newGitCommand, "hook": hookcli.NewHook, "skill": newSkillCommand,
	"undo": undocli.NewUndo, "diff": undocli.NewDiff, "checkpoints": undocli.NewCheckpoints, "apply": undocli.NewApply, "discard": undocli.NewDiscard,
}

// groups are the headings of "bawn --help", with their verbs. Other commands
// come last.
var groups = []struct{ title, verbs string }{
	{"Everyday:", "run undo diff apply discard checkpoints approvals approve deny"},
	{"Sessions:", "ps attach logs why kill git audit"},
	{"Setting up:", "doctor init agents config policy secret trust serve pair"},
	{"Agents, tools and editors:", "acp mcp plugin skill request"},
}

// group sorts the verbs into their groups.
func group(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(strings.Fields(g.verbs), c.Name()) {
				c.GroupID = g.title
			}
		}
	}
}

// Root returns the root command with all verbs, for documents made from them.
func Root(e *launch.Env) *cobra.Command { return newRoot(e, nil) }

// newRoot returns the root command with the verb that args name, or with all
// verbs if they name none.
func newRoot(e *launch.Env, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "bawn",
		Short: "Run AI coding agents as guests on your machine",
		Example: "  bawn doctor                 # what this machine can enforce\n" +
			"  bawn run -- sh              # a shell as a guest\n" +
			"  bawn ps                     # who is here\n" +
			"  bawn run --plan -- make     # what would be enforced\n" +
			"  bawn audit query --since 1h # what was done and refused",
		Version:       launch.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          verb.OnlyCommands,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	if len(args) > 0 && verbs[args[0]] != nil {
		root.CompletionOptions.DisableDefaultCmd = true // it is a verb of its own, and not this one
		root.AddCommand(verbs[args[0]](e))
		return root
	}
	for _, newVerb := range verbs {
		root.AddCommand(newVerb(e))
	}
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	group(root)
	for _, c := range root.Commands() {
		if c.Example == "" { // cobra's own
			c.Example = map[string]string{
				"completion": "  bawn completion bash > ~/.local/share/bash-completion/completions/bawn\n" +
					"  bawn completion zsh > ~/.zfunc/_bawn\n  bawn completion fish > ~/.config/fish/completions/bawn.fish",
				"help": "  bawn help run",
			}[c.Name()]
		}
	}
	return root
}
