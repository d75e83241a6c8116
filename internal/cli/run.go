package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
)

// sessionVariable tells a program inside which session it is in.
const sessionVariable = "BAWN_SESSION"

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
	completeRun(c, e)
	return c
}

func (f *runFlags) run(c *cobra.Command, e *Env, args []string) error {
	// Bawn waits, mostly. With more processors the runtime would wake another
	// thread for each goroutine that could run, which costs more than it runs.
	// The change costs something itself, and what does not wait needs none.
	runtime.GOMAXPROCS(1)
	if err := f.given(c, e); err != nil {
		return err
	}
	s, err := f.session(e, args)
	if err != nil {
		return nested(e, err)
	}
	if f.plan {
		if err := printPlan(e, s); err != nil || !f.asJSON {
			return err
		}
		runEnd{}.write(e)
		return nil
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
	if err := cfg.Check(native.CredentialNames); err != nil {
		return nil, configError(err)
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
	return &runner.Session{
		Session: session, Provider: provider, Plan: plan, Argv: args, Dir: dir, Stdio: [3]*os.File{e.Stdin, e.Stdout, e.Stderr},
		Remedy: remedies(e, cfg, session.Isolation),
	}, nil
}

// provider returns the one with that name; without a name, the strongest.
func provider(e *Env, name string) (sandbox.Provider, error) {
	cache := filepath.Join(baseDir(e, "XDG_CACHE_HOME", ".cache"), "bawn", "probe")
	switch name {
	case "", native.Name:
		return native.New(cache), nil
	case native.LandlockName:
		return native.NewLandlock(cache), nil
	}
	return nil, usageError("use provider \"native\", or \"landlock\" where user namespaces are closed", "provider %q is not part of this version", name)
}

func (f *runFlags) directory(e *Env) (string, error) {
	if f.cwd == "" {
		return realDir(e, e.Dir)
	}
	real, err := filepath.EvalSymlinks(absolute(e, f.cwd))
	if err != nil {
		return "", usageError("name a directory that exists", "--cwd %q: %v", f.cwd, err)
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
		Provider  string       `json:"provider"`
		Mode      bawn.Mode    `json:"mode"`
		Agent     string       `json:"agent"`
		Profile   string       `json:"policy_profile"`
		Workspace string       `json:"workspace"`
		Network   string       `json:"network"`
		Plan      sandbox.Plan `json:"plan"`
	}{s.Plan.Provider(), s.Mode, s.Agent, s.Isolation.Profile, s.Isolation.Workspace, s.Isolation.Network.String(), s.Plan})
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
	decider, err := launch(e, s)
	if err != nil {
		return err
	}
	s.Guard = guard.Guard{Decider: decider, Recorder: log}
	s.Details = details(s)
	f.sayPartly(e, s.Plan)
	result, err := runner.Run(context.Background(), *s)
	err = nested(e, f.outcome(result, err))
	if f.asJSON {
		return endOf(s, result, err).write(e)
	}
	f.summary(e, s, result)
	return err
}

// launch decides whether the session may start at all.
func launch(e *Env, s *runner.Session) (bawn.Decider, error) {
	p, err := launchPolicy(e, s.Isolation.Workspace)
	return policy.Launch{
		InSession: e.Getenv(sessionVariable), Policy: p,
		Session: policy.Question{
			Mode: s.Mode, Autonomy: s.Autonomy, Contained: true, Workspace: s.Isolation.Workspace, Home: e.Getenv("HOME"), System: runtime.GOOS,
		},
	}, err
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
		return &Error{Code: r.Code, Err: err, Hint: redact.Visible(absent.Remedy)}
	case errors.As(err, &start):
		return &Error{Code: ExitInternal, Err: err, Hint: start.Remedy}
	}
	return &Error{Code: ExitInternal, Err: err}
}
