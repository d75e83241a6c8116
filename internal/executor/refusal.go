package executor

import (
	"errors"
	"fmt"
	"syscall"
)

// The rules by which the executor itself refuses. Others are those of package
// ticket.
const (
	RuleEarly   = "executor:not-started" // no keys are trusted yet
	RuleMeaning = "executor:meaning"     // the command's meaning is unknown
	RuleLimits  = "executor:limits"      // a limit that can't be set on a command
	RuleStart   = "executor:start"       // permitted, and could not be started
)

// A RefusedError says why the executor has not started a command.
type RefusedError struct {
	Rule string // one of ticket.Rule, or of those above
	Why  string
}

// Error returns the rule and the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the executor refuses (%s): %s", e.Rule, e.Why)
}

// A StartError says that a command was permitted and could not be started.
type StartError struct {
	Name  string // Argv[0]
	Why   string
	Errno syscall.Errno
}

// Absent reports whether there is no such program: exit code 127, else 126.
func (e *StartError) Absent() bool { return e.Errno == syscall.ENOENT || e.Errno == syscall.ENOTDIR }

// Error writes the name and why.
func (e *StartError) Error() string { return fmt.Sprintf("%q: %s", e.Name, e.Why) }

// Unwrap returns the errno.
func (e *StartError) Unwrap() error { return e.Errno }

// ErrGone says that the executor has ended, and everything it started with it.
var ErrGone = errors.New("the executor of the session has ended")
