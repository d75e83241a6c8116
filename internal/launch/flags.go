package launch

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// Flags are the flags of bawn run.
type Flags struct {
	config.Flags
	profile, provider, net, mode, agent, caches, memory, timeout, cwd string
	image, as, askTimeout, splitWorkspace, maskEnv, whileAway         string
	DetachKeys                                                        string
	cpus                                                              float64
	pids                                                              int64
	Plan, asJSON, quiet, Splits, pinGit, covered                      bool
	Detach, Attachable                                                bool
	forSession, name, from                                            string
	copy, noCopy                                                      bool
}

// Declare declares the flags, with their help.
func (f *Flags) Declare(fl *pflag.FlagSet) {
	fl.SetInterspersed(false)
	fl.StringVar(&f.profile, "profile", "", "named profile of the configuration (built in: default, readonly, online, strict)")
	fl.StringVar(&f.provider, "provider", "", "what enforces the isolation: native, landlock, bwrap, gvisor, docker or seatbelt (default: the strongest that meets the policy)")
	fl.StringVar(&f.image, "image", "", "image of the provider docker, by digest: `NAME`@sha256:DIGEST")
	fl.StringVar(&f.net, "net", "", "network: none, allowlist (hosts by name, the default) or full (the host's)")
	fl.StringArrayVar(&f.Hosts, "allow", nil, "`host` the guest may reach, with optional ports: example.org, *.example.org:443,8443, 10.0.0.0/8:22 (repeatable)")
	fl.StringArrayVar(&f.HTTP, "http", nil, "requests that a host takes without a question; its other requests ask: `\"HOST METHODS PATH\"`, such as \"api.example.org GET /v1/**\" (repeatable)")
	fl.StringArrayVar(&f.Git, "git", nil, "what git may do at a host: `\"HOST fetch [REPO]\"` or \"HOST push REPO REF\" (repeatable)")
	fl.StringArrayVar(&f.HostPorts, "host-port", nil, "port of this machine's loopback that the guest reaches at its own loopback: `PORT` or GUEST:HOST (repeatable)")
	fl.StringArrayVarP(&f.Ports, "publish", "p", nil, "port of the guest to be reached on this machine's loopback: `PORT` or HOST:GUEST (repeatable)")
	fl.StringArrayVar(&f.Secrets, "secret", nil, "secret of the vault that may be put into requests where it is bound, by `name`, or * for all (repeatable)")
	fl.BoolVar(&f.SSHAgent, "ssh-agent", false, "have your ssh-agent sign logins to the hosts that are allowed with port 22, such as --allow build.example:22")
	fl.BoolVar(&f.DockerAPI, "docker", false, "give the guest a Docker socket of its own, for containers that are no wider than the session")
	fl.StringVar(&f.askTimeout, "ask-timeout", "", "how long a connection to an unknown host waits for your answer, for example 30s (default 2m); 0s refuses it at once")
	fl.StringVar(&f.whileAway, "while-away", "", "what happens to a question while no terminal and no relay can answer it: deny, wait, or commands (wait unless it is about the network, the default)")
	fl.StringArrayVar(&f.RW, "rw", nil, "`path` the guest may also write (repeatable)")
	fl.StringArrayVar(&f.RO, "ro", nil, "`path` the guest may only read (repeatable)")
	fl.StringArrayVar(&f.Deny, "deny", nil, "`path` the guest may not even read, or a pattern such as '**/.env' or '*.pem' (repeatable)")
	fl.StringArrayVar(&f.Open, "open", nil, "credentials the guest may read: a `name` such as gh or aws, or a path (repeatable)")
	fl.StringArrayVar(&f.Env, "env", nil, "variable to pass through, `NAME`, PREFIX* or NAME=value (repeatable)")
	fl.StringArrayVar(&f.Devices, "device", nil, "device below /dev by `name`, such as kvm or nvidia0, or gpu for all graphics cards (repeatable)")
	fl.StringArrayVar(&f.Protected, "protect", nil, "further `name` that can't be written in the workspace (repeatable)")
	fl.StringArrayVar(&f.Unprotected, "unprotect", nil, "protected `name` that may be written in the workspace, such as rust-toolchain.toml (repeatable; docs/protected-names.md has them)")
	fl.StringVar(&f.as, "as", "", "definition `file` of what the session asks for, with the keys of the configuration; it gets no more than it would without")
	fl.BoolVar(&f.Only, "only", false, "give the guest nothing but what flags give: no hosts, secrets, variables or places of the configuration; what flags do not give is refused without a question")
	fl.StringVar(&f.caches, "caches", "", "package caches: private (default), read-only or shared")
	fl.StringVar(&f.maskEnv, "mask-env", "", "show placeholders in place of the secrets that .env files of the workspace keep: on, strict (in that mode, the default) or off")
	fl.Lookup("mask-env").NoOptDefVal = "on"
	fl.StringVar(&f.cwd, "cwd", "", "directory to start in (default: the current one)")
	fl.StringVar(&f.memory, "memory", "", "limit of memory, for example 512m or 4g")
	fl.Int64Var(&f.pids, "pids", 0, "limit of processes and threads")
	fl.Float64Var(&f.cpus, "cpus", 0, "limit of processor cores, for example 1.5")
	fl.StringVar(&f.timeout, "timeout", "", "limit of time, for example 90s or 2h; ends with exit code 124")
	fl.StringVar(&f.mode, "mode", "", "mode: "+strings.Join(bawn.ModeNames(), ", ")+" (default normal)")
	fl.StringVar(&f.agent, "agent", "", "name of the agent in the audit log (default: the command's name)")
	fl.BoolVar(&f.NoAgentProfile, "no-agent-profile", false, "treat the command like any program, even if it is a known agent (see \"bawn agents\")")
	fl.BoolVar(&f.Splits, "split", false, "keep the agent and what it executes apart: the agent reaches its model only, its shells run in a second sandbox")
	fl.StringVar(&f.splitWorkspace, "split-workspace", "", "what the agent itself may do with the workspace under --split: rw (default) or ro")
	fl.StringArrayVar(&f.Models, "model", nil, "`address` of a model that the agent reaches, for example http://127.0.0.1:11434 or models.example.org (repeatable)")
	fl.BoolVar(&f.Plan, "plan", false, "print what would be enforced, and run nothing; with --json in every detail")
	fl.BoolVar(&f.asJSON, "json", false, "print the result as one last line of JSON on standard error")
	fl.BoolVar(&f.pinGit, "pin-git", false, "have git run no hook, monitor, pager or signing program that a repository names")
	fl.BoolVar(&f.covered, "covered", false, "don't start unless a checkpoint of what the command may destroy can be taken")
	fl.BoolVar(&f.copy, "copy", false, "work on a copy of the workspace, which \"bawn apply\" takes over and \"bawn discard\" removes")
	fl.BoolVar(&f.noCopy, "no-copy", false, "work on the workspace itself, also where isolation.copy says otherwise")
	fl.StringVar(&f.name, "name", "", "`name` of the copy, for \"bawn apply\" and its like (default: the session's ID)")
	fl.StringVar(&f.from, "from", "", "begin with what the session on this `copy` has changed, on a copy of its own")
	fl.StringVar(&f.forSession, "for-session", "", "`ID` of an agent's session, whose answers hold here, too; \"bawn hook\" writes it")
	f.declareHost(fl)
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "don't say what is enforced in part, nor list refusals")
}

func (f *Flags) declareHost(fl *pflag.FlagSet) {
	fl.BoolVarP(&f.Detach, "detach", "d", false, "run in the background, with a terminal of its own, and print the session's ID; \"bawn attach\" comes to it")
	fl.BoolVar(&f.Attachable, "attachable", false, "let the session outlive this terminal, and let other terminals attach to it; without a terminal it changes nothing")
	fl.StringVar(&f.DetachKeys, "detach-keys", attach.DefaultDetachKeys, "`keys` that leave an attachable session without ending it; \"none\" turns them off")
}

// parse returns the spec of a command line after "bawn run".
func (e *Env) parse(args []string) (*session.Spec, error) {
	f, fl := &Flags{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.Declare(fl)
	fl.SetOutput(io.Discard)
	fl.Usage = func() {}
	if err := fl.Parse(args); err != nil {
		return nil, err
	}
	return f.Spec(fl, e, fl.Args())
}

// Spec makes the session's spec from the flags, with this command.
func (f *Flags) Spec(fl *pflag.FlagSet, e *Env, args []string) (*session.Spec, error) {
	if err := f.given(fl, e); err != nil {
		return nil, err
	}
	if strings.Trim(f.forSession, "abcdefghijklmnopqrstuvwxyz234567") != "" || len(f.forSession) > len(NewSessionID()) {
		return nil, verb.Usage("leave it out; \"bawn hook\" writes it", "--for-session %.40q is no ID of a session", f.forSession)
	}
	s := &session.Spec{Flags: f.Flags, Argv: args, PinGit: f.pinGit, Covered: f.covered, For: f.forSession, Name: f.name, From: f.from, JSON: f.asJSON, Quiet: f.quiet}
	if f.cwd != "" {
		s.Dir = settings.Absolute(&e.World, f.cwd)
	}
	if f.as != "" {
		s.As = settings.Absolute(&e.World, f.as)
	}
	fl.Visit(func(given *pflag.Flag) { s.Given = append(s.Given, given.Name) })
	return s, nil
}

// given points at the values of the flags that were given.
func (f *Flags) given(fl *pflag.FlagSet, e *Env) error {
	texts := map[string]struct {
		to   **string
		from *string
	}{
		"profile": {&f.Profile, &f.profile}, "provider": {&f.Provider, &f.provider}, "image": {&f.Image, &f.image}, "net": {&f.Net, &f.net}, "mode": {&f.Mode, &f.mode},
		"agent": {&f.Agent, &f.agent}, "caches": {&f.Caches, &f.caches}, "mask-env": {&f.MaskEnv, &f.maskEnv}, "while-away": {&f.WhileAway, &f.whileAway}, "timeout": {&f.Timeout, &f.timeout},
		"ask-timeout": {&f.AskTimeout, &f.askTimeout}, "split-workspace": {&f.SplitWorkspace, &f.splitWorkspace},
	}
	if word, ok := splitWords[f.splitWorkspace]; ok {
		f.splitWorkspace = word
	}
	if fl.Changed("split") {
		f.Split = &f.Splits
	}
	if on := f.copy || f.from != ""; on && f.noCopy {
		return verb.Usage("leave one out", "--no-copy does not go with --copy and --from")
	} else if on || f.noCopy || fl.Changed("copy") {
		f.Copy = &on
	}
	for name, t := range texts {
		if fl.Changed(name) {
			*t.to = t.from
		}
	}
	if fl.Changed("pids") {
		f.PIDs = &f.pids
	}
	if fl.Changed("cpus") {
		f.CPUs = &f.cpus
	}
	if fl.Changed("cwd") && f.cwd == "" {
		return verb.Usage("name a directory that exists", "--cwd is empty; want a directory")
	}
	fromHere(e, f.RW)
	fromHere(e, f.RO)
	f.Deny = deniedFromHere(e, f.Deny)
	if !fl.Changed("memory") {
		return nil
	}
	mb, err := megabytes(f.memory)
	f.Memory = &mb
	return err
}

// splitWords are the short words of --split-workspace.
var splitWords = map[string]string{"ro": bawn.ReadOnly.String(), "rw": bawn.ReadWrite.String()}

// fromHere makes the paths absolute: on a command line a relative one starts
// from the working directory, as everywhere.
func fromHere(e *Env, paths []string) {
	for i, p := range paths {
		if p != "" && p[0] != '~' {
			paths[i] = settings.Absolute(&e.World, p)
		}
	}
}

// deniedFromHere is fromHere for entries that may also be patterns that count
// anywhere.
func deniedFromHere(e *Env, list []string) []string {
	for i, p := range list {
		if floats := fspath.IsPattern(p) && (!strings.Contains(p, "/") || strings.HasPrefix(p, "**/")); !floats {
			fromHere(e, list[i:i+1])
		}
	}
	return list
}

// megabytes reads 512, 512m or 2g as MiB. A value with which no program could
// start was meant in another unit.
func megabytes(s string) (int64, error) {
	factor := int64(1)
	number := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(s), "b"), "i")
	switch {
	case strings.HasSuffix(number, "g"):
		factor, number = 1024, strings.TrimSuffix(number, "g")
	case strings.HasSuffix(number, "m"):
		number = strings.TrimSuffix(number, "m")
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > 1<<40 {
		return 0, verb.Usage("for example: --memory 512m, --memory 4g", "--memory %q is no amount of memory; want MiB, or a number with m or g", s)
	}
	if n *= factor; n < config.MinMemoryMB {
		return 0, verb.Usage(fmt.Sprintf("did you mean --memory %sg", number), "--memory %q is %d MiB; want %dm or more", s, n, config.MinMemoryMB)
	}
	return n, nil
}
