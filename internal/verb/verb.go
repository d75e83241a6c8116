package verb

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// Exit codes (SPEC section 6).
const (
	ExitUsage    = 2   // usage or configuration
	ExitTimeout  = 124 // the session's time limit
	ExitInternal = 125 // bawn itself failed
	ExitDenied   = 126
	ExitNotFound = 127
)

// An Error carries an exit code and a hint: what to do about it.
type Error struct {
	Code int
	Err  error
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Usage returns an Error with exit code 2.
func Usage(hint, format string, args ...any) error {
	return &Error{Code: ExitUsage, Err: fmt.Errorf(format, args...), Hint: hint}
}

// Status ends the program with a guest's own status and prints nothing.
type Status int

func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// IsTerminal reports whether a file is a terminal. A nil file is not one.
func IsTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }
