//go:build linux || darwin

// Package runner runs one session from its start to its end: ask the guard,
// make the sandbox, start the command in it, pass signals and the terminal
// between the two sides, wait, end everything, record.
package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/terminal"
)

// Exit codes of a session that did not end by its command's own (SPEC 6).
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
	Argv     []string
	Dir      string
	Stdio    [3]*os.File
	Guard    guard.Guard
	// Details go into the session's first event: the effective isolation.
	Details map[string]string
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

// Run runs the session. It returns a *DeniedError when the guard refuses, a
// *sandbox.NotFoundError when the command can't be executed, and another error
// when Bawn itself failed; the sandbox is gone in each case.
func Run(ctx context.Context, s Session) (Result, error) {
	began := time.Now()
	if d := s.Guard.Check(ctx, s.action(), s.event(s.Details)); d.Verdict != bawn.Allow {
		return Result{Code: codeDenied}, &DeniedError{d}
	}
	log := newDenials(s)
	result, err := s.run(ctx, log)
	result.Code = code(result, err)
	result.Denials, result.Missed = log.close()
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

// run makes the sandbox and sees one command through.
func (s *Session) run(ctx context.Context, log *denials) (Result, error) {
	g, err := s.Provider.Start(s.Plan, log.add)
	if err != nil {
		return Result{}, err
	}
	defer g.Close()
	tty, err := terminal.New(s.Stdio, g.OpenTerminal)
	if err != nil {
		return Result{}, fmt.Errorf("make the guest's terminal: %w", err)
	}
	defer func() {
		g.Close() // what it still writes must reach the terminal first
		tty.Close()
	}()
	sig := catch()
	defer sig.release()
	mode, err := tty.Start()
	if err != nil {
		return Result{}, fmt.Errorf("take the terminal: %w", err)
	}
	p, err := g.Exec(sandbox.Command{
		Argv: s.Argv, Stdio: tty.Guest(), Terminal: tty.Slave(), Foreground: mode == terminal.Foreground, Last: true,
	})
	if err != nil {
		return Result{Code: notStarted(err)}, err
	}
	// From the end on keys are the shell's: none may be lost in the relay.
	defer tty.Suspend()
	w := &watch{session: s, guest: g, proc: p, tty: tty, signals: sig}
	result, err := w.wait(ctx)
	result.Limits = s.limits(result, g.Hits())
	return result, err
}

// notStarted is the exit code of a command that could not be executed: as a
// shell's, 127 if it is absent and 126 if it may not be.
func notStarted(err error) int {
	var nf *sandbox.NotFoundError
	switch {
	case !errors.As(err, &nf):
		return 0
	case errors.Is(nf.Err, syscall.ENOENT), errors.Is(nf.Err, syscall.ENOTDIR):
		return codeNotFound
	}
	return codeDenied
}
