package launch

import (
	"errors"
	"fmt"
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

func otherError(err error) error {
	hint := ""
	var missing *remote.MissingError
	if errors.As(err, &missing) {
		hint = "install bawnd beside bawn: go build -o DIR ./cmd/bawn ./cmd/bawnd"
	}
	return &verb.Error{Code: verb.ExitInternal, Err: err, Hint: hint}
}
