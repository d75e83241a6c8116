package launch

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/terminal"
	"github.com/bawn-dev/bawn/internal/verb"
)

// SessionVariable tells a program inside which session it is in.
const SessionVariable = "BAWN_SESSION"

// lasting is how old a session is that will be there for longer.
const lasting = 30 * time.Millisecond

// Run starts the session, or shows it, and returns when it has ended.
func (l *Launch) Run(e *Env) error {
	// Bawn waits, mostly. With more processors the runtime would wake another
	// thread for each goroutine that could run, which costs more than it runs:
	// supervised calls take a quarter longer. At the start and in sessions that
	// end at once, two processors are of use, and the change stops all threads.
	defer time.AfterFunc(lasting, func() { runtime.GOMAXPROCS(1) }).Stop()
	if l.ordinary() {
		e.embryo = native.Expect()
		defer e.embryo.Abandon()
	}
	l.launchEarly(e)
	s, err := l.Session(e, l.Argv)
	l.abandon()
	defer l.endKeeping(e)
	defer l.EndGit(e)
	if err != nil {
		l.EndGit(e)
		return nested(e, e.Elsewhere(err))
	}
	if l.Plan {
		defer s.Close()
		if err := l.printPlan(e, s); err != nil || !l.JSON {
			return err
		}
		End{}.Write(e)
		return nil
	}
	return nested(e, l.execute(e, s))
}

// ordinary reports whether the session will probably be one in a native sandbox
// with a network of its own.
func (l *Launch) ordinary() bool {
	return !l.Plan && l.Parent == nil && (l.Provider == nil || is(l.Provider, layout.NativeName)) && !is(l.Net, bawn.NetworkFull.String())
}

// is reports whether a flag was given with this value.
func is(flag *string, value string) bool { return flag != nil && *flag == value }

// Session puts everything together that a session needs, and starts nothing.
func (l *Launch) Session(e *Env, args []string) (*runner.Session, error) {
	dir, err := l.directory(e)
	if err != nil {
		return nil, err
	}
	ws := settings.WorkspaceOf(dir, e.Getenv("HOME"))
	cfg, err := l.configure(e, ws, dir, args)
	if err != nil {
		return nil, err
	}
	if l.Parent == nil { // a guest is not told what there is that it does not see
		if err := cfg.Check(layout.CredentialNames); err != nil {
			return nil, settings.ConfigError(err)
		}
	}
	l.Config = cfg
	l.noteUnset(e)
	session := bawn.Session{
		ID: NewSessionID(), Agent: cfg.Agent, Mode: cfg.Mode, Autonomy: cfg.Autonomy, Isolation: cfg.Isolation(ws), Started: time.Now(),
	}
	if err := l.withoutRelay(e, cfg, &session.Isolation); err != nil {
		return nil, err
	}
	if session.Agent == "" {
		session.Agent = l.Known.name(filepath.Base(args[0]))
	}
	if session, err = l.define(e, ws, session); err != nil {
		return nil, err
	}
	provider, err := l.provide(e, cfg, &session)
	if err != nil {
		return nil, err
	}
	session.Isolation.CacheDirs = l.cacheDirs(e, session.Isolation)
	cache, err := l.places(e, session.Isolation)
	if err != nil {
		return nil, err
	}
	if !provider.bare() {
		l.beginKeeping(e, session)
	}
	if !provider.bare() {
		args = l.Known.Contain(args, l.holds(cfg, session, provider))
	}
	s := &runner.Session{Provider: provider.Provider, Argv: args, Dir: dir, Stdio: [3]*os.File{e.Stdin, e.Stdout, e.Stderr}, Dumb: !terminal.Emulates(e.Getenv("TERM"))}
	req := l.request(e, session, args, dir, cache)
	s.Session = req.Session
	if err := l.steer(e, s, &req, provider.bare()); err != nil {
		return nil, err
	}
	if !provider.bare() {
		if err := l.privateGit(e, &req); err != nil {
			return nil, err
		}
		if err := l.coverRest(e, &req, cfg.Split().On); err != nil {
			return nil, err
		}
		if err := l.workspaceSecrets(e, &req); err != nil {
			return nil, err
		}
	}
	l.protected, l.guarded = req.Protected, req.Guarded
	s.Session, s.Remedy = req.Session, remedies(e, cfg, session.Isolation)
	l.choice = provider
	if provider.bare() {
		return l.bareSession(e, s, req, provider)
	}
	if split := cfg.Split(); split.On && l.Parent == nil {
		err = l.splitSession(e, s, req, split)
	} else {
		s, err = l.wholeSession(e, s, req)
	}
	if err == nil {
		s.Contained = l.contained(s)
	}
	return s, err
}

// wholeSession makes s a session of one zone.
func (l *Launch) wholeSession(e *Env, s *runner.Session, req sandbox.Request) (*runner.Session, error) {
	l.openDoor(e, s, &req)
	relay, err := l.network(e, &req, l.zone())
	if err != nil {
		return nil, err
	}
	if relay != nil {
		s.Network = relay
	}
	if err := l.openContainers(e, s, &req, l.zone()); err != nil {
		s.Close()
		return nil, err
	}
	l.credentials, l.planned = req.Open, req
	if s.Plan, err = s.Provider.Plan(req); err != nil {
		err = planError(err)
	} else {
		err = refused(l.Parent.Verify(s.Plan.Provider(), s.Plan.Places()))
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// request is what a provider makes the session's plan from.
func (l *Launch) request(e *Env, session bawn.Session, args []string, dir, cache string) sandbox.Request {
	cfg := l.Config
	req := sandbox.Request{
		Session: session, Argv: args, Dir: dir, Environ: l.environ(e), Home: e.Getenv("HOME"), Open: cfg.Open, Protected: cfg.Protected,
		Hidden: OwnDirs(e), CacheDir: cache, Guarded: cfg.Guarded(), Owned: cfg.Owned(), GuestWrote: guestWrote(e),
	}
	if l.PinGit {
		req.SetEnv = policy.GitPins()
	}
	req.Open, req.Protected = l.narrower(req.Open, req.Protected)
	l.narrow(&req)
	return req
}

func (l *Launch) directory(e *Env) (string, error) {
	switch {
	case l.Parent != nil:
		dir, err := l.Parent.Directory(cmp.Or(l.Dir, e.Dir))
		return dir, refused(err)
	case l.Dir == "":
		if err := unplanted(e, "working directory", namedDir(e)); err != nil {
			return "", err
		}
		return settings.RealDir(e.Dir)
	}
	if err := unplanted(e, "--cwd", l.Dir); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(l.Dir)
	if err != nil {
		return "", verb.Usage("name a directory that exists", "--cwd %q: %v", l.Dir, err)
	}
	return real, nil
}

// NewSessionID returns 26 characters that nobody guesses.
func NewSessionID() string { return strings.ToLower(rand.Text()) }

// MakeStateDir makes the directories of the log and of what runs before the plan
// is made, so that there is something to hide.
func MakeStateDir(e *Env) error {
	dir, err := settings.AuditDir(&e.World)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("make the directory of the audit log: %w", err), Hint: "what can't be recorded does not run; mend the directory or set XDG_STATE_HOME"}
	}
	if err := os.MkdirAll(settings.RuntimeDir(&e.World, filepath.Dir(dir)), 0o700); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("make the directory of sessions: %w", err), Hint: "mend the directory or unset XDG_RUNTIME_DIR"}
	}
	return nil
}

// OwnDirs are Bawn's own places, which no guest sees.
func OwnDirs(e *Env) []string {
	var dirs []string
	if d, err := settings.StateDir(&e.World); err == nil {
		dirs = append(dirs, d)
		if run := settings.RuntimeDir(&e.World, d); !fspath.Below(run, d) { // a place that is covered within another opens that
			dirs = append(dirs, run)
		}
	}
	return append(dirs, filepath.Join(settings.BaseDir(&e.World, "XDG_CONFIG_HOME", ".config"), "bawn"), filepath.Join(settings.BaseDir(&e.World, "XDG_CACHE_HOME", ".cache"), "bawn"),
		filepath.Join(settings.BaseDir(&e.World, "XDG_DATA_HOME", ".local/share"), "bawn"))
}

// places makes Bawn's own directories for a session, and returns that of its
// private caches.
func (l *Launch) places(e *Env, iso bawn.Isolation) (cache string, err error) {
	if !l.Plan {
		if err := MakeStateDir(e); err != nil {
			return "", err
		}
	}
	return privateCaches(e, iso)
}

// planError gives an error of the planning its exit code.
func planError(err error) error {
	var mismatch *sandbox.MismatchError
	if errors.As(err, &mismatch) {
		return &verb.Error{Code: verb.ExitInternal, Err: err, Hint: "\"bawn doctor\" shows what this machine can enforce"}
	}
	var ws *layout.WorkspaceError
	if errors.As(err, &ws) {
		return &verb.Error{Code: verb.ExitUsage, Err: err, Hint: "change to a project's directory, or name one with --cwd"}
	}
	var mendable interface{ Remedy() string }
	if errors.As(err, &mendable) {
		return &verb.Error{Code: verb.ExitUsage, Err: err, Hint: mendable.Remedy()}
	}
	return &verb.Error{Code: verb.ExitUsage, Err: err}
}

func (l *Launch) printPlan(e *Env, s *runner.Session) error {
	if !l.JSON {
		return l.writePlan(e.Stdout, e, s)
	}
	enc := json.NewEncoder(e.Stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(struct {
		Provider  string       `json:"provider"`
		Choice    []candidate  `json:"provider_chosen_from"`
		Mode      bawn.Mode    `json:"mode"`
		Agent     string       `json:"agent"`
		Known     *agentPlan   `json:"agent_profile,omitempty"`
		Profile   string       `json:"policy_profile"`
		Workspace string       `json:"workspace"`
		Network   string       `json:"network"`
		Egress    *egressPlan  `json:"egress,omitempty"`
		Plan      sandbox.Plan `json:"plan"`
		Execution *zonePlan    `json:"execution,omitempty"`
	}{s.Plan.Provider(), l.choice.Candidates, s.Mode, s.Agent, l.agentPlan(), s.Isolation.Profile, s.Isolation.Workspace, s.Isolation.Network.String(), egressOf(s.Isolation), s.Plan, executionOf(s)})
}

// egressPlan is what a session reaches, by the names of the configuration.
type egressPlan struct {
	bawn.Egress
	Ask string `json:"ask_timeout"`
}

// egressOf returns nil for a network that names do not open.
func egressOf(iso bawn.Isolation) *egressPlan {
	if iso.Network != bawn.NetworkAllowlist {
		return nil
	}
	return &egressPlan{iso.Egress, iso.Egress.Ask.String()}
}

// execute opens the log and runs the session.
func (l *Launch) execute(e *Env, s *runner.Session) error {
	defer s.Close()
	abandon := s.Prepare()
	defer func() { abandon() }()
	dir, err := settings.AuditDir(&e.World)
	if err != nil {
		return err
	}
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("open the audit log: %w", err), Hint: "what can't be recorded does not run; mend the directory or set XDG_STATE_HOME"}
	}
	defer log.Close()
	if err := markWritten(e, s); err != nil {
		return err
	}
	decider, err := starting(e, s)
	if err != nil {
		return err
	}
	s.Guard = guard.Guard{Decider: decider, Recorder: e.Share(log, "the session")}
	if err := recordFallback(s, l.choice); err != nil {
		return err
	}
	if err := l.replan(e, s, abandon); err != nil {
		return err
	}
	l.keep(e, s)
	if s.Desk, err = l.Desk(e, s); err != nil {
		return err
	}
	defer s.Desk.Close()
	if l.keeper != nil {
		s.Guard.Recorder = watching{s.Guard.Recorder, l.keeper}
	}
	end, err := l.answerGuests(e, s)
	if err != nil {
		return err
	}
	defer end()
	s.Details = details(s)
	if l.Known != nil {
		s.Details["agent profile"] = strings.TrimSpace(l.Known.Agent.Name + " " + l.Known.Agent.Version)
	}
	l.steered.tell(s.Details)
	if s.Bare == "" {
		l.sayPartly(e, s.Plan.Provider(), partly(s))
		l.sayAgent(e, l.Config, s.Plan.Environ())
		l.sayLoopback(e, s)
	}
	leave, err := l.register(e, s)
	if err != nil {
		return err
	}
	defer leave()
	l.keepOn(s)
	l.startGit()
	result, err := runner.Run(e.Life(), *s)
	l.keeper.Ended()
	l.EndGit(e)
	l.endKeeping(e)
	err = nested(e, l.told(l.outcome(result, err)))
	if l.JSON {
		return endOf(s, result, err).Write(e)
	}
	l.summary(e, s, result)
	return err
}

// starting decides whether the session may start at all.
func starting(e *Env, s *runner.Session) (bawn.Decider, error) {
	p, err := settings.StartPolicy(&e.World, s.Isolation.Workspace)
	return policy.Launch{
		InSession: e.Getenv(SessionVariable), Policy: p,
		Session: SessionQuestion(e, s),
	}, err
}

// details is the effective isolation as the first event states it.
func details(s *runner.Session) map[string]string {
	d := map[string]string{"profile": s.Isolation.Profile, "network": s.Isolation.Network.String(), "workspace": s.Isolation.Workspace}
	mounts := s.Isolation.Mounts
	if s.Split != nil {
		d["zones"], d["execution network"] = egress.Reasoning+", "+egress.Execution, s.Split.Isolation.Network.String()
		mounts = slices.Concat(mounts, s.Split.Isolation.Mounts)
	}
	for _, m := range mounts {
		if m.Access == bawn.ReadWrite {
			d["write "+m.Path] = m.Why
		}
	}
	if names := s.Isolation.Unprotected; len(names) > 0 {
		d["unprotected"] = strings.Join(names, ", ")
	}
	for _, c := range partly(s) {
		d["in part "+c.Attribute] = c.How
	}
	if s.Bare != "" {
		d["contained"] = s.Bare
	}
	return d
}

// outcome turns how the session ended into the exit code.
func (l *Launch) outcome(r runner.Result, err error) error {
	var denied *runner.DeniedError
	var start *kernel.StartError
	var absent *sandbox.NotFoundError
	switch {
	case err == nil && r.Code == 0:
		return nil
	case err == nil:
		return verb.Status(r.Code)
	case errors.As(err, &denied):
		hint := "rule " + denied.Decision.Rule
		if denied.Decision.Rule == guard.RuleRecorder {
			hint = "\"bawn audit verify\" says what is wrong with the log; to start another one, move its directory away"
		}
		return &verb.Error{Code: verb.ExitDenied, Err: err, Hint: hint}
	case errors.As(err, &absent):
		return &verb.Error{Code: r.Code, Err: err, Hint: redact.Visible(absent.Remedy)}
	case errors.As(err, &start):
		return &verb.Error{Code: verb.ExitInternal, Err: err, Hint: start.Remedy}
	}
	return &verb.Error{Code: verb.ExitInternal, Err: err}
}
