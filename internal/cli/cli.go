// Package cli holds the verbs of the bawn command: flags, output, exit codes.
// Each verb is one file that parses, calls and prints.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/skill"
)

// Exit codes (SPEC section 6).
const (
	ExitUsage    = 2   // usage or configuration
	ExitTimeout  = 124 // the session's time limit
	ExitInternal = 125 // bawn itself failed
	ExitDenied   = 126
	ExitNotFound = 127
)

// Version is the release that this program is of.
var Version = egress.Release

// An Env is what a verb may use of the world around it.
type Env struct {
	Stdin          *os.File
	Stdout, Stderr *os.File
	Environ        []string
	Dir            string // the working directory, absolute; "" if it is gone
	// Providers are those that this program has beside the ones of package cli.
	// It is nil in bawn, and bawn becomes bawnd where it needs one of them.
	Providers map[string]Maker
	// Docker serves a guest's Docker API. It is nil in bawn, which becomes bawnd
	// where a session has one.
	Docker func(ContainerSetting) (func(runner.ContainerHost) (end func() error, err error), error)
	// Gateway serves tool servers. It is nil in bawn, which becomes bawnd for it.
	Gateway func(context.Context, GatewaySetting) error
	// Tools serves Bawn's own tools. It is nil in bawn, as Gateway is.
	Tools func(context.Context, ToolsSetting) error

	// CheckSkill reads what steers an agent by the strict rules (package
	// skill/strict). It is nil in bawn, which asks bawnd.
	CheckSkill func(skill.Kind, string) skill.Report

	// CheckDocker says what provider "docker" refuses of its options, where a
	// session may have r. It is nil in bawn, like Docker.
	CheckDocker func(o config.DockerOptions, r bawn.Resources) error
	// CheckEngine says whether guests may create containers with this machine's
	// container engine. It is nil in bawn, which asks bawnd.
	CheckEngine func(ContainerSetting) *doctor.Check

	// logShare is how many bytes of the log a session may take; 0 is audit.MaxShare.
	logShare int64

	args []string // the command line's
	host *host    // where this is the host of a session that others attach to

	embryo *native.Embryo // of the sandbox of a session that is being planned, or nil

	spec      *session.Spec // what this process was started with (launchVerb), or nil
	inherited *os.File      // what it was read from; of a guest's session it ends when that does
}

// OwnEnv is the world around this process. The providers are Env.Providers.
func OwnEnv(providers map[string]Maker) *Env {
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // so that ".." leads where the kernel goes
	}
	if err != nil {
		dir = "" // it was removed; not everything needs one
	}
	environ := os.Environ()
	if providers != nil { // this is what bawn was to become
		environ = slices.DeleteFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, becameVariable+"=") })
	}
	return &Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: environ, Dir: dir, Providers: providers}
}

// Getenv returns the value of the last NAME=value in e.Environ, or "".
func (e *Env) Getenv(name string) string {
	for i := len(e.Environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(e.Environ[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// An Error carries an exit code and a hint: what to do about it.
type Error struct {
	Code int
	Err  error
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// usageError returns an Error with exit code 2.
func usageError(hint, format string, args ...any) error {
	return &Error{Code: ExitUsage, Err: fmt.Errorf(format, args...), Hint: hint}
}

// exitStatus ends the program with a guest's own status and prints nothing.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Main runs one command line and returns the exit code. Errors go to stderr
// as "bawn: error: …" and "bawn: hint: …", lower case and without a period.
func Main(args []string, e *Env) int {
	e.args = args
	return e.hosted(e.main(args))
}

func (e *Env) main(args []string) int {
	root := newRoot(e, args)
	root.SetArgs(args)
	out := &output{w: e.Stdout}
	root.SetOut(out)
	err := root.Execute()
	if err == nil {
		err = out.err
	}
	err = outputError(e, err)
	var status exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	return report(e, err, jsonWanted(root, args))
}

// report tells of an error and returns its exit code.
func report(e *Env, err error, asJSON bool) int {
	code, hint := ExitUsage, "see \"bawn --help\""
	var ce *Error
	if errors.As(err, &ce) {
		code, hint = ce.Code, ce.Hint
	}
	if asJSON {
		runEnd{Exit: code, Error: newEndError(code, err, hint)}.write(e)
		return code
	}
	fmt.Fprintf(e.Stderr, "bawn: error: %v\n", err)
	if where := inside(e); where != "" && (hiddenState(err) || errors.Is(err, fs.ErrPermission)) {
		hint = "this is a guest, in " + where + ": bawn's log and configuration are outside and can't be seen from here"
	}
	if hint != "" {
		fmt.Fprintf(e.Stderr, "bawn: hint: %s\n", hint)
	}
	return code
}

// verbs makes the commands. They are made one by one because most of a short
// command's time goes by before it runs.
var verbs = map[string]func(*Env) *cobra.Command{
	"run": newRunCommand, launchVerb: newLaunchCommand, "agents": newAgentsCommand, "audit": newAuditCommand, "config": newConfigCommand, "mcp": newMCPCommand, "trust": newTrustCommand, "policy": newPolicyCommand, "doctor": newDoctorCommand, "dockerd-proxy": newDockerProxyCommand,
	"version": newVersionCommand, "secret": newSecretCommand, "request": newRequestCommand, "ps": newPsCommand, "attach": newAttachCommand, "logs": newLogsCommand, "kill": newKillCommand, "serve": newServeCommand,
	"acp": newACPCommand, "approvals": newApprovalsCommand, "approve": newApproveCommand, "init": newInitCommand, "deny": newDenyCommand, "pair": newPairCommand, "plugin": newPluginCommand, "git": newGitCommand, "hook": newHookCommand, "skill": newSkillCommand,
}

// newRoot returns the root command with the verb that args name, or with all
// of them if they name none.
func newRoot(e *Env, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "bawn",
		Short: "Run AI coding agents as guests on your machine",
		Example: "  bawn doctor                 # what this machine can enforce\n" +
			"  bawn run -- sh              # a shell as a guest\n" +
			"  bawn ps                     # who is here\n" +
			"  bawn run --plan -- make     # what would be enforced\n" +
			"  bawn audit query --since 1h # what was done and refused",
		Version:       Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          onlyCommands,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.SetIn(e.Stdin)
	root.SetErr(e.Stderr)
	if len(args) > 0 && verbs[args[0]] != nil {
		root.CompletionOptions.DisableDefaultCmd = true // it is a verb of its own, and not this one
		root.AddCommand(verbs[args[0]](e))
		return root
	}
	for _, verb := range verbs {
		root.AddCommand(verb(e))
	}
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
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
