//go:build linux || darwin

// Package runner runs one session from its start to its end: it asks the guard,
// makes the sandbox, starts the command, passes signals and the terminal
// between the two sides, waits, ends everything, and records.
package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/terminal"
	"github.com/bawn-dev/bawn/internal/terminal/modes"
)

// Exit codes of a session that did not end by its command's own.
const (
	codeTimeout  = 124
	codeFailed   = 125
	codeDenied   = 126
	codeNotFound = 127
	signalBase   = 128
)

// A Session is what Run runs.
type Session struct {
	bawn.Session
	Provider sandbox.Provider
	Plan     sandbox.Plan
	// Contained is the enforced part of the session, as its decisions count it.
	Contained bawn.Contained
	// ConnectionAsks says that data that leave the session are asked about at
	// the connection.
	ConnectionAsks bool
	Project        bool   // the workspace holds no home directory: names of logins count at its top alone
	Copy           string // the copy of the workspace that it works on, or ""
	Uncontained    string // why nothing contains the guest, in words for its human; "" where a sandbox does
	Argv           []string
	Dir            string
	Stdio          [3]*os.File
	Dumb           bool        // the human's terminal understands no control sequences
	Label          modes.Label // the title of the human's terminal meanwhile; the zero Label changes none
	Guard          guard.Guard
	// Network reaches the network by name for the guest; nil where the
	// isolation has none.
	Network Network
	// Prompter puts questions to the human; nil means the session's terminal alone.
	// Its owner closes it. Zone is shared by the questions of Network.
	Prompter *asking.Prompter
	Zone     asking.Zone
	// Apart says that the terminal is a guest's, at which nobody is asked, and
	// which does not control this process.
	Apart bool
	// Socket is where a guest speaks to its session, which closes it; may be
	// nil. A session of two zones has its own.
	Socket *Socket
	// Split is the zone in which the agent's commands run; nil where a session
	// has one zone.
	Split *Split
	// Containers is the guest's Docker API, which the session closes; nil for none.
	Containers *Containers
	// Details go into the session's first event: the effective isolation.
	Details map[string]string
	// Remedy replaces the provider's remedy for a refusal, because the provider
	// does not know the reason of the isolation; nil to keep that. It is called
	// from one goroutine, and the guest does not wait for it.
	Remedy func(sandbox.Denial) string
	// Refusals get the guard's refusals of commands; nil drops them. A caller
	// that has the guest judged by further guards wraps them with Refusals.Of.
	Refusals *Refusals
	// Recent keeps the last refusals, for a guest that asks; nil drops them.
	Recent *Recent
	// Kept waits until the files that the guest may destroy are kept. The
	// command starts after it has returned without an error. nil is for a
	// session without checkpoints. Covered reports whether there is a checkpoint
	// now; nil means no.
	Kept    func() error
	Covered func() bool
	// OnStart is called once the command has been started; nil for nobody.
	OnStart func()
	// OnEnd is called once no process of the guest is left and its output is written,
	// while the network still ends; nil for nobody.
	OnEnd func()
	// Watched reports when somebody comes to the terminal, and when the last one
	// has left; it starts without anybody. nil is for a terminal that has its
	// human.
	Watched <-chan bool
}

// A Result says how a session ended.
type Result struct {
	Code     int // the exit code for the caller
	TimedOut bool
	Signal   syscall.Signal // what ended the command, or 0
	Limits   []sandbox.Hit  // the limits it ran into, with proof
	Denials  []sandbox.Denial
	Missed   int // denials beyond those kept
	Duration time.Duration
}

// A DeniedError says that the guard did not let the session start.
type DeniedError struct{ Decision bawn.Decision }

func (e *DeniedError) Error() string { return "denied: " + e.Decision.Reason }

// Prepare makes the sandbox meanwhile, if the provider can. Nothing of the guest
// runs in it before Run has asked and recorded. abandon is called when Run has
// returned, or in its place.
func (s *Session) Prepare() (abandon func()) {
	p, ok := s.Provider.(sandbox.Preparer)
	if !ok || s.Plan == nil || s.Split != nil {
		return func() {}
	}
	return p.Prepare(s.Plan)
}

// Run runs the session. It returns a *DeniedError when the guard refuses, a
// *sandbox.NotFoundError when the command can't be executed, and another error
// when Bawn itself failed; the sandbox is gone in each case.
func Run(ctx context.Context, s Session) (Result, error) {
	began := time.Now()
	sig := catch()
	if d := s.Guard.Check(ctx, s.action(), s.event(s.Details)); d.Verdict != bawn.Allow {
		sig.end()
		return Result{Code: codeDenied}, &DeniedError{d}
	}
	sig.hold()
	log, commands := newDenials(s, s.zone(egress.Reasoning)), newDenials(s, s.zone(egress.Execution))
	result, err := s.run(ctx, log, commands, sig)
	result.Code = code(result, err)
	result.Denials, result.Missed = log.close()
	denials, missed := commands.close()
	result.Denials, result.Missed = append(result.Denials, denials...), result.Missed+missed
	refused, more := s.Refusals.kept()
	result.Denials, result.Missed = append(result.Denials, refused...), result.Missed+more
	result.Duration = time.Since(began)
	if failed := s.recordEnd(ctx, result, err); failed != nil {
		result.Code, err = codeFailed, errors.Join(err, failed)
	}
	return result, err
}

// code is the exit code that the caller gets: the result's own, unless Bawn
// itself failed.
func code(r Result, err error) int {
	var nf *sandbox.NotFoundError
	if err == nil || errors.As(err, &nf) {
		return r.Code
	}
	return codeFailed
}

// action is the one the guard decides: the human starts a command.
func (s *Session) action() bawn.Action {
	return bawn.Action{
		Kind: bawn.Command, Operation: bawn.Exec, Resource: strings.Join(s.Argv, " "), Args: s.Argv,
		Session: s.ID, Agent: s.Agent, Dir: s.Dir, At: s.Started,
	}
}

// event holds what every event of this session says.
func (s *Session) event(details map[string]string) bawn.Event {
	return bawn.Event{
		Session: s.ID, Parent: s.Parent, Agent: s.Agent, Dir: s.Dir, Provider: s.Plan.Provider(), Mode: s.Mode, Details: details,
	}
}

func (s *Session) recordEnd(ctx context.Context, r Result, err error) error {
	e := s.event(nil)
	e.Kind, e.Operation, e.Resource, e.Args = "session", "end", strings.Join(s.Argv, " "), s.Argv
	e.Requested, e.Resolved, e.Source, e.Exit = bawn.Allow, bawn.Allow, "auto", &r.Code
	e.DurationMS = r.Duration.Milliseconds()
	e.Rule, e.Reason = reasons(r.Limits)
	if err != nil {
		e.Reason = err.Error()
	}
	if err := s.Guard.Recorder.Record(context.WithoutCancel(ctx), e); err != nil {
		return fmt.Errorf("record the session's end: %w", err)
	}
	return nil
}

// zone is a zone's name in a split session, and "" in others.
func (s *Session) zone(name string) string {
	if s.Split == nil {
		return ""
	}
	return name
}

// Close ends everything prepared for the session. It may be called more than
// once.
func (s *Session) Close() error {
	s.CloseNetwork()
	return errors.Join(s.Socket.Close(), s.Split.Close(), s.Containers.Close())
}

// run makes the sandbox and sees one command through. Refusals of the second
// zone go to commands.
func (s *Session) run(ctx context.Context, log, commands *denials, sig *signals) (Result, error) {
	w := &watch{session: s, signals: sig, shut: func() {}}
	defer w.end()
	defer sig.end()
	var err error
	if w.ports, err = publish(s.published()); err != nil {
		return Result{}, err
	}
	if err := s.awaitPlaces(); err != nil {
		return Result{}, err
	}
	if s.Split != nil {
		if w.execution, err = startExecution(ctx, s, commands); err != nil {
			return Result{}, err
		}
	}
	if err := w.start(log); err != nil {
		return Result{Code: notStarted(err)}, err
	}
	sig.begin()
	if s.OnStart != nil {
		s.OnStart()
	}
	// From the end on keys are the shell's: none may be lost in the relay.
	defer w.tty.Suspend()
	result, err := w.wait(ctx)
	result.Limits = s.limits(result, append(w.guest.Hits(), w.execution.hits()...))
	return result, err
}

// start makes the sandbox, the guest's terminal if Bawn has one, and starts
// the command.
func (w *watch) start(log *denials) (err error) {
	s := w.session
	w.outputs.limit = s.Isolation.Resources.FileSizeMB << 20
	defer w.outputs.started()
	l, ok := s.Provider.(sandbox.Launcher)
	if ok && !terminal.Among(s.Stdio) {
		if w.tty, err = terminal.New(s.Stdio, nil); err == nil {
			if err = s.awaitKept(); err != nil {
				return err
			}
			var stdio [3]*os.File
			if stdio, err = w.outputs.join(s.Stdio); err != nil {
				return err
			}
			w.guest, w.proc, err = l.Launch(s.Plan, sandbox.Command{Argv: s.Argv, Stdio: stdio, Last: true}, log.add)
		}
		if err != nil {
			return err
		}
		w.sit()
		return w.serve(log) // what connects meanwhile waits for it
	}
	if w.guest, err = s.Provider.Start(s.Plan, log.add); err != nil {
		return err
	}
	if w.tty, err = terminal.New(s.Stdio, w.guest.OpenTerminal); err != nil {
		return fmt.Errorf("make the guest's terminal: %w", err)
	}
	if s.Apart {
		w.tty.TakeKeys()
	}
	if !s.Apart && s.Watched == nil { // else who looks on has a terminal with a title of its own
		w.tty.Label(s.Label)
	}
	w.sit()
	if err := w.serve(log); err != nil {
		return err
	}
	mode, err := w.tty.Start()
	if err != nil {
		return fmt.Errorf("take the terminal: %w", err)
	}
	if err = s.awaitKept(); err != nil {
		return err
	}
	stdio, err := w.outputs.join(w.tty.Guest())
	if err != nil {
		return err
	}
	w.proc, err = w.guest.Exec(sandbox.Command{
		Argv: s.Argv, Stdio: stdio, Terminal: w.tty.Slave(), Foreground: mode == terminal.Foreground, Last: true,
	})
	return err
}

func (s *Session) awaitKept() error {
	if s.Kept == nil {
		return nil
	}
	return s.Kept()
}

// end closes the guest and then the terminal, which the guest's last output
// must reach first. The network ends meanwhile: nothing that is about to be
// killed needs it.
func (w *watch) end() {
	w.shut()
	w.containers.close(w.session.ID)
	w.stand()
	if w.ports != nil {
		w.ports.close()
	}
	var network sync.WaitGroup
	network.Go(w.session.CloseNetwork)
	if w.guest != nil {
		w.guest.Close()
	}
	w.execution.close()
	w.outputs.close()
	if w.guest != nil && w.session.OnEnd != nil {
		w.session.OnEnd()
	}
	network.Wait()
	if w.tty != nil {
		w.tty.Close()
	}
}

// notStarted is the exit code of a command that could not be executed: as a
// shell's, 127 if it is absent and 126 if it may not be.
func notStarted(err error) int {
	var nf *sandbox.NotFoundError
	switch {
	case !errors.As(err, &nf):
		return 0
	case nf.Absent:
		return codeNotFound
	}
	return codeDenied
}
