package native

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
)

// explain finds the remedy for a failed start.
func explain(err error) error {
	var step *rawproc.StepError
	if !errors.As(err, &step) {
		return &kernel.StartError{Err: err, Remedy: kernel.NamespaceRemedy(err, "user")}
	}
	switch {
	case step.Errno == unix.EACCES && strings.Contains(step.Step, "_map"), step.Errno == unix.EPERM && strings.Contains(step.Step, "_map"):
		return &kernel.StartError{Err: err, Remedy: kernel.UsernsRemedy()}
	case strings.HasPrefix(step.Step, "mount proc"):
		return &kernel.StartError{Err: err, Remedy: "inside a container, start it with an unmasked /proc (docker run --security-opt systempaths=unconfined)"}
	case step.Step == "load the seccomp filter" && step.Errno == unix.EINVAL:
		return &kernel.StartError{Err: err, Remedy: "Linux 5.19 or newer is needed"}
	case step.Step == "load the seccomp filter" && step.Errno == unix.EBUSY:
		return &kernel.StartError{Err: err, Remedy: "another supervisor holds this process already; don't start bawn inside one"}
	case strings.HasPrefix(step.Step, kernel.NetworkStep):
		return &kernel.StartError{Err: err, Remedy: kernel.NetworkRemedy(err)}
	case strings.HasPrefix(step.Step, kernel.OverlayStep):
		return &kernel.StartError{Err: err, Remedy: kernel.OverlayRemedy(step.Errno)}
	case step.Errno == unix.ESTALE:
		return &kernel.StartError{Err: err, Remedy: "a directory was exchanged while the session started; try again"}
	}
	return &kernel.StartError{Err: err, Remedy: "\"bawn doctor\" shows what this machine can enforce"}
}
