package launch

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/verb"
)

// Become ends with an error only: otherwise this process is bawnd's.
func Become(e *Env, name string, args []string) error {
	path, err := remote.Find()
	if err != nil {
		return otherError(err)
	}
	e.hidePassphrase(true)
	err = syscall.Exec(path, append([]string{remote.Program, name}, args...), e.Environ)
	return otherError(fmt.Errorf("start %q: %w", path, err))
}

// Call runs a verb of bawnd's with this terminal, and returns when it has ended. A verb
// that fails has said why: the error is its verb.Status.
func Call(e *Env, name string, args ...string) error {
	path, err := remote.Find()
	if err != nil {
		return otherError(err)
	}
	cmd := exec.Command(path, append([]string{name}, args...)...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = e.Environ, e.Stdin, e.Stdout, e.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.Exited():
		return verb.Status(exit.ExitCode())
	}
	return otherError(fmt.Errorf("%q: %w", "bawn "+strings.Join(cmd.Args[1:], " "), err))
}

func otherError(err error) error {
	hint := ""
	var missing *remote.MissingError
	if errors.As(err, &missing) {
		hint = "install bawnd beside bawn: go build -o DIR ./cmd/bawn ./cmd/bawnd"
	}
	return &verb.Error{Code: verb.ExitInternal, Err: err, Hint: hint}
}
