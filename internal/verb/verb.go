// Package verb is what the commands of Bawn's programs have in common: the world
// around them, how they end, and what they say of wrong arguments.
package verb

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// A World is what a command may use of the world around it.
type World struct {
	Stdin          *os.File
	Stdout, Stderr *os.File
	Environ        []string
	Dir            string // the working directory, absolute; "" if it is gone
}

// Getenv returns the value of the last NAME=value in Environ, or "".
func (w *World) Getenv(name string) string {
	for _, kv := range slices.Backward(w.Environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// Exit codes.
const (
	ExitTooLate  = 1   // of a question: somebody was first, or its time is up
	ExitUsage    = 2   // usage or configuration
	ExitTimeout  = 124 // the session's time limit
	ExitInternal = 125 // bawn itself failed
	ExitDenied   = 126
	ExitNotFound = 127
)

// An ExitCode is an exit code as it is documented: a number or what stands for it.
type ExitCode struct{ Code, Meaning string }

// ExitCodes lists the exit codes of Bawn's commands.
func ExitCodes() []ExitCode {
	return []ExitCode{
		{"0", "success"},
		{strconv.Itoa(ExitTooLate), "a check (doctor, audit verify, policy test and others) found something, or nothing was done; of a question: somebody else was first, or its time is up"},
		{strconv.Itoa(ExitUsage), "a mistake in the command line or the configuration: nothing was started"},
		{strconv.Itoa(ExitTimeout), "the time limit of the session"},
		{strconv.Itoa(ExitInternal), "Bawn itself failed, or this machine can't enforce what was asked for"},
		{strconv.Itoa(ExitDenied), "denied, or the command is there and can't be executed"},
		{strconv.Itoa(ExitNotFound), "no such command in the sandbox"},
		{"128+N", "the guest was ended by signal N"},
		{"other", "of \"bawn run\": the guest's own"},
	}
}

// An Error carries an exit code and a hint: what to do about it.
type Error struct {
	Code int
	Err  error
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns what went wrong.
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

// Run runs one command line of root and returns the exit code. report is called
// with the error, to tell of it (see Report) and to return its code.
func Run(root *cobra.Command, args []string, w *World, report func(error) int) int {
	root.SetArgs(args)
	out := &output{W: w.Stdout}
	root.SetIn(w.Stdin)
	root.SetOut(out)
	root.SetErr(w.Stderr)
	root.SetFlagErrorFunc(FlagError)
	err := root.Execute()
	if err == nil {
		err = out.Err
	}
	err = OutputError(w.Stdout, err)
	var status Status
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	return report(err)
}

// Report writes an error to standard error and, where hint is not "", what to do
// about it: as "bawn: error: …" and "bawn: hint: …", lower case and without a
// period.
func Report(w *World, err error, hint string) {
	fmt.Fprintf(w.Stderr, "bawn: error: %v\n", err)
	if hint != "" {
		fmt.Fprintf(w.Stderr, "bawn: hint: %s\n", hint)
	}
}
