package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
)

// sessionVariable tells a program inside which session it is in.
const sessionVariable = "BAWN_SESSION"

// runFlags are the flags of bawn run.
type runFlags struct {
	config.Flags
	profile, provider, net, mode, agent, caches, memory, timeout, cwd string
	cpus                                                              float64
	pids                                                              int64
	plan, asJSON, quiet                                               bool
}

func newRunCommand(e *Env) *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...]",
		Short: "Run a command as a guest: in a sandbox the kernel enforces",
		Long: `Run a command as a guest.

The guest reads the system and writes only to the workspace, its own /tmp and
its caches. The workspace is the git repository around the current directory,
or else that directory. Credentials are hidden, files that programs on the host
execute later (.git/hooks, .vscode, .envrc, ...) can't be written, and there is
no network unless --net says so. Everything it started is gone when it ends.`,
		Example: `  bawn run -- sh
  bawn run --net full -- npm install
  bawn run --env ANTHROPIC_API_KEY --rw ~/.claude --net full -- claude
  bawn run --plan -- make
  bawn run --memory 2g --pids 200 --timeout 10m -- go test ./...`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return usageError("for example: bawn run -- sh", "no command to run")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, e, args) },
	}
	f.declare(c)
	return c
}

func (f *runFlags) declare(c *cobra.Command) {
	fl := c.Flags()
	fl.SetInterspersed(false)
	fl.StringVar(&f.profile, "profile", "", "named profile of the configuration (built in: default, readonly, online, strict)")
	fl.StringVar(&f.provider, "provider", "", "what enforces the isolation: native, or landlock where user namespaces are closed")
	fl.StringVar(&f.net, "net", "", "network: none or full")
	fl.StringArrayVar(&f.RW, "rw", nil, "`path` the guest may also write (repeatable)")
	fl.StringArrayVar(&f.RO, "ro", nil, "`path` the guest may only read (repeatable)")
	fl.StringArrayVar(&f.Deny, "deny", nil, "`path` the guest may not even read (repeatable)")
	fl.StringArrayVar(&f.Open, "open", nil, "credentials the guest may read: a `name` such as gh or aws, or a path (repeatable)")
	fl.StringArrayVar(&f.Env, "env", nil, "variable to pass through, `NAME`, PREFIX* or NAME=value (repeatable)")
	fl.StringArrayVar(&f.Devices, "device", nil, "device below /dev by `name` (repeatable)")
	fl.StringArrayVar(&f.Protected, "protect", nil, "further `name` that can't be written in the workspace (repeatable)")
	fl.StringVar(&f.caches, "caches", "", "package caches: private, read-only or shared")
	fl.StringVar(&f.cwd, "cwd", "", "directory to start in (default: the current one)")
	fl.StringVar(&f.memory, "memory", "", "limit of memory, for example 512m or 4g")
	fl.Int64Var(&f.pids, "pids", 0, "limit of processes and threads")
	fl.Float64Var(&f.cpus, "cpus", 0, "limit of processor cores, for example 1.5")
	fl.StringVar(&f.timeout, "timeout", "", "limit of time, for example 90s or 2h; ends with exit code 124")
	fl.StringVar(&f.mode, "mode", "", "mode: "+strings.Join(bawn.ModeNames(), ", "))
	fl.StringVar(&f.agent, "agent", "", "name of the agent in the audit log (default: the command's name)")
	fl.BoolVar(&f.plan, "plan", false, "print what would be enforced, as JSON, and run nothing")
	fl.BoolVar(&f.asJSON, "json", false, "print how the session ended as one line of JSON on standard error")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "don't say what is enforced in part, nor list refusals")
	for flag, values := range map[string][]string{
		"net": {"none", "full"}, "mode": bawn.ModeNames(), "caches": {"private", "read-only", "shared"}, "provider": {native.Name, native.LandlockName},
	} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// given points at the values of the flags that were given.
func (f *runFlags) given(c *cobra.Command) error {
	texts := map[string]struct {
		to   **string
		from *string
	}{
		"profile": {&f.Profile, &f.profile}, "provider": {&f.Provider, &f.provider}, "net": {&f.Net, &f.net}, "mode": {&f.Mode, &f.mode},
		"agent": {&f.Agent, &f.agent}, "caches": {&f.Caches, &f.caches}, "timeout": {&f.Timeout, &f.timeout},
	}
	for name, t := range texts {
		if c.Flags().Changed(name) {
			*t.to = t.from
		}
	}
	if c.Flags().Changed("pids") {
		f.PIDs = &f.pids
	}
	if c.Flags().Changed("cpus") {
		f.CPUs = &f.cpus
	}
	if !c.Flags().Changed("memory") {
		return nil
	}
	mb, err := megabytes(f.memory)
	f.Memory = &mb
	return err
}

// megabytes reads 512, 512m or 2g as MiB.
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
		return 0, usageError("for example: --memory 512m, --memory 4g", "--memory %q is no amount of memory", s)
	}
	return n * factor, nil
}

func (f *runFlags) run(c *cobra.Command, e *Env, args []string) error {
	if err := f.given(c); err != nil {
		return err
	}
	s, err := f.session(e, args)
	if err != nil {
		return nested(e, err)
	}
	if f.plan {
		return printPlan(e, s)
	}
	return nested(e, f.execute(e, s))
}

// session puts everything together that a session needs, and starts nothing.
func (f *runFlags) session(e *Env, args []string) (*runner.Session, error) {
	dir, err := f.directory(e)
	if err != nil {
		return nil, err
	}
	ws := workspaceOf(dir, e.Getenv("HOME"))
	cfg, err := loadConfig(e, ws, f.Flags)
	if err != nil {
		return nil, err
	}
	provider, err := provider(e, cfg.Provider)
	if err != nil {
		return nil, err
	}
	session := bawn.Session{
		ID: newSessionID(), Agent: cfg.Agent, Mode: cfg.Mode, Autonomy: cfg.Autonomy, Isolation: cfg.Isolation(ws),
		Provider: provider.Name(), Started: time.Now(),
	}
	if session.Agent == "" {
		session.Agent = filepath.Base(args[0])
	}
	if !f.plan {
		if err := makeStateDir(e); err != nil {
			return nil, err
		}
	}
	cache, err := privateCaches(e, session.Isolation)
	if err != nil {
		return nil, err
	}
	plan, err := provider.Plan(sandbox.Request{
		Session: session, Argv: args, Dir: dir, Environ: e.Environ, Open: cfg.Open, Protected: cfg.Protected,
		Hidden: ownDirs(e), CacheDir: cache,
	})
	if err != nil {
		return nil, planError(err)
	}
	return &runner.Session{Session: session, Provider: provider, Plan: plan, Argv: args, Dir: dir, Stdio: [3]*os.File{e.Stdin, e.Stdout, e.Stderr}}, nil
}

// provider returns the one with that name; without a name, the strongest.
func provider(e *Env, name string) (sandbox.Provider, error) {
	cache := filepath.Join(baseDir(e, "XDG_CACHE_HOME", ".cache"), "bawn", "probe.json")
	switch name {
	case "", native.Name:
		return native.New(cache), nil
	case native.LandlockName:
		return native.NewLandlock(cache), nil
	}
	return nil, usageError("use provider \"native\", or \"landlock\" where user namespaces are closed", "provider %q is not part of this version", name)
}

func (f *runFlags) directory(e *Env) (string, error) {
	dir := e.Dir
	if f.cwd != "" {
		dir = absolute(e, f.cwd)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", usageError("name a directory that exists", "--cwd %q: %v", dir, err)
	}
	return real, nil
}

// workspaceOf returns the git repository around dir, as long as that is not
// the home directory or above it; otherwise dir itself.
func workspaceOf(dir, home string) string {
	home, _ = filepath.EvalSymlinks(home)
	for d := dir; d != "/" && d != "." && d != home && !strings.HasPrefix(home, d+"/"); d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
	}
	return dir
}

// newSessionID returns 26 characters that nobody guesses.
func newSessionID() string { return strings.ToLower(rand.Text()) }

// makeStateDir makes the directory of the log before the plan is made, so that
// there is something to hide.
func makeStateDir(e *Env) error {
	dir, err := auditDir(e)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return &Error{Code: ExitInternal, Err: fmt.Errorf("make the directory of the audit log: %w", err), Hint: "what can't be recorded does not run; mend the directory or set XDG_STATE_HOME"}
	}
	return nil
}

// ownDirs are Bawn's own places, which no guest sees.
func ownDirs(e *Env) []string {
	var dirs []string
	if d, err := stateDir(e); err == nil {
		dirs = append(dirs, d)
	}
	return append(dirs, filepath.Join(baseDir(e, "XDG_CONFIG_HOME", ".config"), "bawn"), filepath.Join(baseDir(e, "XDG_CACHE_HOME", ".cache"), "bawn"))
}

// baseDir is a directory of the XDG base directory specification.
func baseDir(e *Env, variable, below string) string {
	if d := e.Getenv(variable); filepath.IsAbs(d) {
		return d
	}
	return filepath.Join(e.Getenv("HOME"), below)
}

// privateCaches makes the directories in which the workspace's own copies of
// the caches are kept, and returns where they are.
func privateCaches(e *Env, iso bawn.Isolation) (string, error) {
	base := filepath.Join(baseDir(e, "XDG_CACHE_HOME", ".cache"), "bawn", "private", strings.ReplaceAll(strings.TrimPrefix(iso.Workspace, "/"), "/", "%"))
	if iso.Caches != bawn.CachePrivate {
		return base, nil
	}
	for _, dir := range iso.CacheDirs {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if err := os.MkdirAll(native.PrivateCache(base, dir), 0o700); err != nil {
			return "", &Error{Code: ExitInternal, Err: fmt.Errorf("make a private cache: %w", err), Hint: "use --caches read-only"}
		}
	}
	return base, nil
}

// planError gives an error of the planning its exit code.
func planError(err error) error {
	var mismatch *sandbox.MismatchError
	if errors.As(err, &mismatch) {
		return &Error{Code: ExitInternal, Err: err, Hint: "\"bawn doctor\" shows what this machine can enforce"}
	}
	var ws *native.WorkspaceError
	if errors.As(err, &ws) {
		return &Error{Code: ExitUsage, Err: err, Hint: "change to a project's directory, or name one with --cwd"}
	}
	return &Error{Code: ExitUsage, Err: err}
}

func printPlan(e *Env, s *runner.Session) error {
	enc := json.NewEncoder(e.Stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(struct {
		Provider  string         `json:"provider"`
		Mode      bawn.Mode      `json:"mode"`
		Agent     string         `json:"agent"`
		Profile   string         `json:"profile"`
		Workspace string         `json:"workspace"`
		Network   string         `json:"network"`
		Plan      sandbox.Plan   `json:"plan"`
		Isolation bawn.Isolation `json:"-"`
	}{s.Plan.Provider(), s.Mode, s.Agent, s.Isolation.Profile, s.Isolation.Workspace, s.Isolation.Network.String(), s.Plan, s.Isolation})
}

// execute opens the log and runs the session.
func (f *runFlags) execute(e *Env, s *runner.Session) error {
	dir, err := auditDir(e)
	if err != nil {
		return err
	}
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		return &Error{Code: ExitInternal, Err: fmt.Errorf("open the audit log: %w", err), Hint: "what can't be recorded does not run; mend the directory or set XDG_STATE_HOME"}
	}
	defer log.Close()
	s.Guard = guard.Guard{Decider: policy.Launch{InSession: e.Getenv(sessionVariable)}, Recorder: log}
	s.Details = details(s)
	f.sayPartly(e, s.Plan)
	result, err := runner.Run(context.Background(), *s)
	f.summary(e, s, result, err)
	return f.outcome(result, err)
}

// details is the effective isolation as the first event states it.
func details(s *runner.Session) map[string]string {
	d := map[string]string{"profile": s.Isolation.Profile, "network": s.Isolation.Network.String(), "workspace": s.Isolation.Workspace}
	for _, m := range s.Isolation.Mounts {
		if m.Access == bawn.ReadWrite {
			d["write "+m.Path] = m.Why
		}
	}
	for _, c := range s.Plan.Partly() {
		d["in part "+c.Attribute] = c.How
	}
	return d
}

// outcome turns how the session ended into the exit code.
func (f *runFlags) outcome(r runner.Result, err error) error {
	var denied *runner.DeniedError
	var start *native.StartError
	var absent *sandbox.NotFoundError
	switch {
	case err == nil && r.Code == 0:
		return nil
	case err == nil:
		return exitStatus(r.Code)
	case errors.As(err, &denied):
		hint := "rule " + denied.Decision.Rule
		if denied.Decision.Rule == guard.RuleRecorder {
			hint = "\"bawn audit verify\" says what is wrong with the log; to start another one, move its directory away"
		}
		return &Error{Code: ExitDenied, Err: err, Hint: hint}
	case errors.As(err, &absent):
		return &Error{Code: r.Code, Err: err, Hint: "the guest sees the system's programs and those in its PATH; \"bawn run --plan\" shows what it may read"}
	case errors.As(err, &start):
		return &Error{Code: ExitInternal, Err: err, Hint: start.Remedy}
	}
	return &Error{Code: ExitInternal, Err: err}
}
