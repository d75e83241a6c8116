package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A Planned is a session with all that was made for it.
type Planned struct {
	*setup
	Session     *runner.Session
	choice      choice          // of the provider
	request     sandbox.Request // that the plan of a session of one zone was made from
	below       session.Parent  // what no session that the guest starts exceeds
	steering    *steering       // nil where nothing steers the agent
	git         *privateGit     // nil where the guest has none
	masked      *maskedFiles    // nil where no file is masked
	programs    *programLog     // nil where no program is recorded
	checkpoints *checkpoints    // nil if the session has none of its own
	copy        *sessionCopy    // nil if the session changes the workspace itself
	caches      *cachePlaces    // nil where it holds none
}

// Discard ends everything beside the sandbox, which ends with Close. It may be
// called more than once.
func (p *Planned) Discard() {
	var caches sync.WaitGroup
	caches.Go(p.caches.end)
	p.masked.end()
	p.git.end()
	p.copy.end(p.git.kept())
	p.checkpoints.end()
	caches.Wait()
}

// NewPrompter makes where the session's questions go, which the caller closes.
func (p *Planned) NewPrompter() (*asking.Prompter, error) {
	return p.Prompter(p.env, p.Session, p.config)
}

// run opens the log and runs the session.
func (p *Planned) run() error {
	e, s := p.env, p.Session
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
	if err := p.prepare(log, abandon); err != nil {
		return err
	}
	if s.Prompter, err = p.NewPrompter(); err != nil {
		return err
	}
	defer s.Prompter.Close()
	p.programs.begin(s, audit.NewShare(log, maxProgramBytes, "the session's programs"))
	defer p.programs.end()
	s.Guard.Recorder = p.checkpoints.watch(s.Guard.Recorder)
	end, err := p.answerGuests()
	if err != nil {
		return err
	}
	defer end()
	s.Details = p.details()
	p.say()
	leave, err := register(p.Launch, e, s)
	if err != nil {
		return err
	}
	defer leave()
	p.checkpoints.runWith(s)
	p.git.start()
	return p.wait()
}

// prepare decides whether the session may start, and completes its plan with the
// result of the scan for the first checkpoint.
func (p *Planned) prepare(log *audit.Log, abandon func()) error {
	e, s := p.env, p.Session
	if err := markWritten(e, s); err != nil {
		return err
	}
	decider, err := starting(e, s)
	if err != nil {
		return err
	}
	s.Guard = guard.Guard{Decider: decider, Recorder: e.Share(log, "the session")}
	if err := recordFallback(s, p.choice); err != nil {
		return err
	}
	if err := p.replan(abandon); err != nil {
		return err
	}
	s.Covered = func() bool { return p.Parent != nil && p.Parent.Covered }
	if p.checkpoints == nil && p.Covered && p.Parent == nil {
		s.Kept = func() error { return withoutCheckpoint(errors.New("this session takes none")) }
	}
	p.checkpoints.keep(s)
	p.copy.keep(s)
	return nil
}

// replan plans the sandbox anew, if the scan has found other places that no checkpoint
// covers than it was planned with.
func (p *Planned) replan(abandon func()) (err error) {
	mounts, changed := p.checkpoints.settle()
	if !changed || p.Session.Split != nil { // zones are planned after the scan
		return nil
	}
	abandon()
	p.request.Session.Isolation.Mounts = mounts
	p.Session.Isolation.Mounts = mounts
	if p.Session.Plan, err = p.Session.Provider.Plan(p.request); err != nil {
		return planError(err)
	}
	return nil
}

// wait runs the guest, and says how the session ended.
func (p *Planned) wait() error {
	e, s := p.env, p.Session
	s.OnEnd = func() {
		go p.caches.end() // Discard waits for it
		p.checkpoints.guestEnded()
	}
	result, err := runner.Run(e.Life(), *s)
	p.checkpoints.guestEnded()
	p.Discard()
	err = nested(e, told(p.Parent, outcome(result, err)))
	if p.JSON {
		return endOf(s, result, err).Write(e)
	}
	p.summary(result)
	return err
}

// say tells the human, before the start, what holds in part or not at all.
func (p *Planned) say() {
	if p.Session.Uncontained != "" {
		return
	}
	p.sayPartly(p.Session.Plan.Provider(), partly(p.Session))
	p.sayAgent(p.Session.Plan.Environ())
	sayLoopback(p.Launch, p.env, p.Known, p.Session)
}

// starting decides whether the session may start at all.
func starting(e *Env, s *runner.Session) (bawn.Decider, error) {
	p, err := settings.StartPolicy(&e.World, s.Isolation.Workspace)
	return policy.Launch{
		InSession: e.Getenv(SessionVariable), Policy: p,
		Session: SessionQuestion(e, s),
	}, err
}

// details of the session's first event: the effective isolation, the agent and what
// steers it.
func (p *Planned) details() map[string]string {
	d := isolationDetails(p.Session)
	if p.copy != nil {
		delete(d, "write "+p.Session.Isolation.Workspace)
		d["copy"] = p.copy.copy.Called()
	}
	if p.Known != nil {
		d["agent profile"] = strings.TrimSpace(p.Known.Agent.Name + " " + p.Known.Agent.Version)
	}
	p.steering.tell(d)
	return d
}

// isolationDetails is the effective isolation as the first event states it.
func isolationDetails(s *runner.Session) map[string]string {
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
	if s.Uncontained != "" {
		d["contained"] = s.Uncontained
	}
	return d
}

// outcome turns how the session ended into the exit code.
func outcome(r runner.Result, err error) error {
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
