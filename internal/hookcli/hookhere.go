package hookcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/hook"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/judge"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/policy/overlay"
	hostprovider "github.com/bawn-dev/bawn/internal/sandbox/host"
	"github.com/bawn-dev/bawn/internal/settings"
)

// A standalone is a call that is decided outside of every session, with all that it
// needs for that.
type standalone struct {
	*hooking
	call      hook.Call
	config    *config.Config
	workspace string
	elsewhere string     // where a command would run outside of it, or ""
	sandboxed bool       // commands of the agent run in sandboxes
	moves     bool       // an allowed command runs in a sandbox
	moved     *hook.Move // the command's former form, or nil
	judge     *judge.Judge
}

// outside decides without a session: the same judge as in one, with the policy,
// the log and the relay of this machine's human.
func (h *hooking) outside(ctx context.Context, c hook.Call) hook.Output {
	go prepare()
	l := &standalone{hooking: h, call: c}
	err := l.prepare()
	if err != nil {
		return h.failed(c, err)
	}
	log, err := h.log()
	if err != nil {
		return h.failed(c, err)
	}
	defer log.Close()
	prompter, err := l.prompter()
	if err != nil {
		return h.failed(c, err)
	}
	defer prompter.Close()
	state, err := settings.StateDir(&h.env.World)
	if err != nil {
		return h.failed(c, err)
	}
	share := audit.NewDaily(log, filepath.Join(state, shareName), cmp.Or(h.env.LogShare, audit.MaxShare), time.Now)
	if err := share.Room(ctx); err != nil {
		return h.failed(c, err)
	}
	l.judges(share, prompter)
	return l.output(ctx)
}

// shareName is the file in Bawn's state that counts what hooks outside of sessions have
// recorded today.
const shareName = "hook-log-share"

// prepare reads the policy's data while another processor asks the disk. Where
// it fails the decision does, which denies.
func prepare() {
	defer func() { _ = recover() }()
	policy.Prepare()
}

// prepare finds out where the call is and what would become of a command. The
// workspace is that of the agent's own directory: other paths of a call are the
// model's word.
func (l *standalone) prepare() error {
	e, c := l.env, &l.call
	at := c.Cwd
	if c.Phase == hook.Seen {
		at = cmp.Or(at, e.Dir)
	}
	real, err := l.start(at)
	if err != nil {
		return err
	}
	l.workspace = settings.WorkspaceOf(real, e.Getenv("HOME"))
	l.recognize()
	for i := range c.Actions {
		if err := l.settle(&c.Actions[i]); err != nil {
			return err
		}
	}
	if l.config, err = settings.LoadConfig(&e.World, l.workspace, config.Flags{}); err != nil {
		return err
	}
	l.sandboxed = !l.stay && hook.Supports(c.Agent).Rewrite && l.config.Provider != hostprovider.Name && !l.config.FallbackToHost()
	l.moves = l.sandboxed && (c.Command != "" || l.moved != nil)
	return nil
}

// start is the agent's own directory without links. A link that leads out of
// its repository may have been made there by a guest.
func (l *standalone) start(at string) (string, error) {
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		return "", fmt.Errorf("the working directory: %w", err)
	}
	for d := at; d != filepath.Dir(d); d = filepath.Dir(d) {
		if target, err := os.Readlink(d); err != nil || target == "" {
			continue
		}
		in, err := filepath.EvalSymlinks(filepath.Dir(d))
		if err != nil {
			return "", fmt.Errorf("the working directory: %w", err)
		}
		repo := settings.WorkspaceOf(in, l.env.Getenv("HOME"))
		if _, err := os.Lstat(filepath.Join(repo, ".git")); err == nil && !fspath.Below(real, repo) {
			return "", fmt.Errorf("the working directory %q is a link out of the workspace %q, to %q; have your human start the agent there, without the link", at, repo, real)
		}
	}
	return real, nil
}

// settle puts an action where it would happen, as the kernel would say it.
func (l *standalone) settle(a *bawn.Action) error {
	real, err := filepath.EvalSymlinks(a.Dir)
	if err != nil {
		return fmt.Errorf("the working directory: %w", err)
	}
	if a.Kind == bawn.Filesystem && fspath.Below(a.Resource, a.Dir) {
		a.Resource = filepath.Join(real, strings.TrimPrefix(a.Resource, a.Dir))
	}
	if a.Dir = real; !fspath.Below(real, l.workspace) {
		l.elsewhere = cmp.Or(l.elsewhere, real)
	}
	return nil
}

// recognize takes a command that this hook has replaced for the original one.
// The model can write such a line, too.
func (l *standalone) recognize() {
	c := &l.call
	if len(c.Actions) != 1 || c.Actions[0].Kind != bawn.Command || len(c.Actions[0].Args) > 0 {
		return
	}
	m, ok := hook.Moved(c.Actions[0].Resource)
	self, err := os.Executable()
	if !ok || err != nil || m.Program != self || m.Agent != c.Agent || m.Shell != bash || m.Session != l.kept() {
		return
	}
	l.moved = &m
	c.Actions[0].Resource, c.Actions[0].Dir = m.Text, m.Dir
	if m.Workspace != l.workspace {
		l.elsewhere = m.Workspace
	}
}

// log opens the audit log.
func (h *hooking) log() (*audit.Log, error) {
	if err := launch.MakeStateDir(h.env); err != nil {
		return nil, err
	}
	dir, err := settings.AuditDir(&h.env.World)
	if err != nil {
		return nil, err
	}
	return audit.Open(dir, audit.Options{})
}

// session names the agent's own session, the same in each of its calls.
func (l *standalone) session() string {
	if l.call.Session == "" {
		return launch.NewSessionID()
	}
	return launch.HookSession(l.agent, l.call.Session)
}

// kept is the session for which the human's answers hold; "" where the agent has
// named none.
func (l *standalone) kept() string {
	if l.call.Session == "" {
		return ""
	}
	return l.session()
}

// prompter is where the questions of an unsandboxed agent go: to the relay, which is
// started for them.
func (l *standalone) prompter() (*asking.Prompter, error) {
	e := l.env
	id := l.session()
	rules, err := launch.WrittenRules(e, l.workspace)
	if err != nil {
		return nil, err
	}
	o := asking.Options{
		Session: id, Agent: l.agent, Rules: func() ([]bawn.Rule, error) { return rules, nil }, Policy: policy.Options{Resolve: settings.ResolveLinks},
		Opens: launch.Opens(l.workspace),
	}
	dir, err := settings.StateDir(&e.World)
	if err != nil {
		return nil, err
	}
	at := link.Options{Session: id}
	if l.call.Session != "" {
		o.Kept = launch.NewHookAnswers(dir)
		if at.Secret, err = launch.HookSecret(dir, id); err != nil {
			return nil, err
		}
	}
	o.Relay = launch.RelayAs(e, dir, at)
	if o.Grants, err = settings.GrantsFile(&e.World); err != nil {
		return nil, err
	}
	return asking.New(o), nil
}

// judges makes who decides.
func (l *standalone) judges(log bawn.Recorder, prompter *asking.Prompter) {
	q := policy.Question{
		Mode: l.config.Mode, Autonomy: l.config.Autonomy, Workspace: l.workspace, Home: l.env.Getenv("HOME"), System: runtime.GOOS,
		Unprotected: l.config.Isolation(l.workspace).Unprotected,
	}
	own := asking.Zone{Question: q, Contains: "nothing: the agent was started without bawn"}
	commands, files := own, own
	if l.sandboxed {
		files.Decide, files.Contains = overlay.Within(l.within), "the agent's own program writes it; its commands run in sandboxes"
	}
	if l.moves {
		iso := l.config.Isolation(l.workspace)
		commands.Question.Contained = bawn.ContainedFully
		commands.Question.ConnectionAsks = launch.ConnectionAsks(&iso, l.config.Split().Hosts) && launch.RelayRuns(l.env)
		commands.Contains = "it runs in a sandbox of its own, as bawn run makes it"
		commands.Covered = func() bool { return true } // it does not start without a checkpoint
	}
	if l.elsewhere != "" {
		commands.Decide = overlay.Elsewhere(l.elsewhere, l.workspace)
	}
	l.judge = &judge.Judge{
		Session: bawn.Session{ID: l.session(), Agent: l.agent, Mode: q.Mode, Autonomy: q.Autonomy, Provider: hostprovider.Name},
		Guard:   guard.Guard{Recorder: log}, Prompter: prompter, Now: utc,
		Zones: map[bawn.Kind]asking.Zone{bawn.Command: commands, bawn.Filesystem: files, bawn.Network: own, bawn.Tool: own},
	}
}

// within reports whether a path is in the workspace, without a link on the way. The
// agent's own program writes nothing else there, because no command in its sandboxes
// makes a link that leads out of the workspace.
func (l *standalone) within(name string) bool {
	for d := name; d != l.workspace; d = filepath.Dir(d) {
		info, err := os.Lstat(d)
		if !fspath.Below(d, l.workspace) || err == nil && info.Mode()&os.ModeSymlink != 0 {
			return false
		}
	}
	return true
}

// utc is the time in the log, unless stated otherwise. In the local zone, each
// call would read that zone's file.
func utc() time.Time { return time.Now().UTC() }

// output decides and answers.
func (l *standalone) output(ctx context.Context) hook.Output {
	m := message(&l.call)
	actions, err := l.judge.Read(&m)
	if err != nil {
		return l.failed(l.call, err)
	}
	if asked := l.asksItself(ctx, &m, actions); asked != nil {
		return l.prompt(ctx, &m, asked)
	}
	v := l.judge.Verdict(ctx, &m, actions)
	if l.call.Phase == hook.Seen && v.Verdict != bawn.Allow.String() {
		return l.failed(l.call, errors.New(v.Reason))
	}
	o := hook.Outcome{Reason: reasonOf(&v)}
	if v.Verdict == bawn.Allow.String() {
		o.Verdict = bawn.Allow
		err = l.move(ctx, &o, v.Canonical, v.Env)
	}
	if err != nil {
		return l.failed(l.call, err)
	}
	return l.answer(l.call, o)
}

// An asked is an action with the policy's decision.
type asked struct {
	bawn.Action
	decision bawn.Decision
}

// asksItself returns what the agent's own prompt must ask about: nothing where
// it has no prompt, or everything is decided.
func (l *standalone) asksItself(ctx context.Context, m *intent.Judge, actions []bawn.Action) (list []asked) {
	if l.call.Phase == hook.Seen || !l.call.Interactive {
		return nil
	}
	least := bawn.Allow
	for _, a := range actions {
		a, err := judge.Canonical(a)
		d := bawn.Decision{}
		if err == nil {
			d, err = l.judge.Prompter.Decider(l.judge.Zone(m, a)).Decide(ctx, a)
		}
		if err != nil {
			return nil // the guard denies it, and says why
		}
		least = min(least, d.Verdict)
		list = append(list, asked{a, d})
	}
	if least != bawn.Ask || !attended() { // in this order: most calls ask nothing
		return nil
	}
	return list
}

// prompt leaves the question to the agent, which draws it: outside of a session
// it is the human's own program. The question is recorded; the answer shows in
// the agent's next step.
func (l *standalone) prompt(ctx context.Context, m *intent.Judge, list []asked) hook.Output {
	o := hook.Outcome{Verdict: bawn.Ask}
	for _, a := range list {
		if err := l.judge.Guard.Recorder.Record(ctx, l.left(m, a)); err != nil {
			return l.failed(l.call, err)
		}
		if d := a.decision; d.Verdict == bawn.Ask {
			o.Reason = "bawn: " + d.Reason + " (rule " + d.Rule + ")"
		}
		if a.Kind != bawn.Command {
			continue
		}
		if err := l.move(ctx, &o, cmp.Or(a.decision.Canonical, a.Resource), a.decision.Env); err != nil {
			return l.failed(l.call, err)
		}
	}
	return l.answer(l.call, o)
}

// left is the event of a question that is left to the agent.
func (l *standalone) left(m *intent.Judge, a asked) bawn.Event {
	e, d := l.judge.Event(m), a.decision
	e.Time, e.Session, e.Agent, e.Source = l.judge.Now(), a.Session, a.Agent, "user"
	e.Kind, e.Operation, e.Resource, e.Args, e.Dir = a.Kind.String(), a.Operation.String(), a.Resource, a.Args, a.Dir
	e.Requested, e.Resolved, e.Rule, e.Reason = d.Verdict, d.Verdict, d.Rule, d.Reason
	e.Details["asked"] = "at the agent's own prompt"
	return e
}

// bash reads a command line as it was judged.
const bash = "/bin/bash"

// move replaces the command by one that runs it in a sandbox, exactly as it was
// judged. An existing one stays, if it is exactly that.
func (l *standalone) move(ctx context.Context, o *hook.Outcome, canonical string, env []string) error {
	if !l.moves {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find bawn's own program: %w", err)
	}
	m := hook.Move{Program: self, Agent: l.agent, Session: l.kept(), Workspace: l.workspace, Dir: l.call.Actions[0].Dir, Shell: bash, Text: canonical, Env: env}
	m.Covered = l.relies(ctx)
	if slices.Equal(env, policy.GitPins()) {
		m.PinGit, m.Env = true, nil
	}
	line := m.String()
	switch {
	case l.moved != nil && l.moved.String() == line:
		return nil
	case l.moved != nil && l.call.Command == "", line == "":
		return errors.New("the command can't be moved into a sandbox: it names another place than it was judged for")
	}
	o.Rewritten = line
	return nil
}

// relies reports whether the command is allowed only because a checkpoint can
// restore its changes: the sandbox does not start it without one then.
func (l *standalone) relies(ctx context.Context) bool {
	with := l.judge.Zones[bawn.Command]
	without := with
	without.Covered = nil
	a, err := judge.Canonical(l.call.Actions[0])
	if err != nil || with.Covered == nil {
		return false
	}
	a.Session, a.Agent, a.At = l.judge.Session.ID, l.agent, l.judge.Now()
	verdict := func(z asking.Zone) bawn.Verdict {
		d, err := l.judge.Prompter.Decider(z).Decide(ctx, a)
		if err != nil {
			return bawn.Deny
		}
		return d.Verdict
	}
	return verdict(with) == bawn.Allow && verdict(without) != bawn.Allow
}
