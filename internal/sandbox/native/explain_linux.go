package native

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
)

// explain finds the remedy for a failed start.
func explain(err error) error {
	var step *rawproc.StepError
	if !errors.As(err, &step) {
		return &StartError{err, NamespaceRemedy(err, "user")}
	}
	switch {
	case step.Errno == unix.EACCES && strings.Contains(step.Step, "_map"), step.Errno == unix.EPERM && strings.Contains(step.Step, "_map"):
		return &StartError{err, UsernsRemedy()}
	case strings.HasPrefix(step.Step, "mount proc"):
		return &StartError{err, "inside a container, start it with an unmasked /proc (docker run --security-opt systempaths=unconfined)"}
	case step.Step == "load the seccomp filter" && step.Errno == unix.EINVAL:
		return &StartError{err, "Linux 5.19 or newer is needed"}
	case step.Step == "load the seccomp filter" && step.Errno == unix.EBUSY:
		return &StartError{err, "another supervisor holds this process already; don't start bawn inside one"}
	case strings.HasPrefix(step.Step, networkStep):
		return &StartError{err, networkRemedy(err)}
	case step.Errno == unix.ESTALE:
		return &StartError{err, "a directory was exchanged while the session started; try again"}
	}
	return &StartError{err, "\"bawn doctor\" shows what this machine can enforce"}
}
