package bwrap

import (
	"errors"
	"strings"

	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
)

// remedies are what to do about what bwrap says, the first that fits.
var remedies = []struct{ says, do string }{
	{"Unknown option", "install a bubblewrap with --bind-fd: 0.10 or newer, or your distribution's security update of an older one"},
	{"setuid mode", "install a bubblewrap that is not set-user-ID"},
	{"mount proc on", "inside a container, start it with an unmasked /proc (docker run --security-opt systempaths=unconfined)"},
	{"loopback:", "the kernel lacks network namespaces, or a security module refuses them to bwrap"},
}

// userNamespaces are messages by which bwrap says that it can't make user
// namespaces.
var userNamespaces = []string{"No permissions to creat", "Creating new namespace failed", "uid map", "gid map", "setting up uid"}

// remedy says what to do about an error of bwrap's.
func remedy(err error) string {
	var changed *changedError
	if errors.As(err, &changed) {
		return "try again"
	}
	var step *inside.StepError
	if errors.As(err, &step) && strings.HasPrefix(step.Step, kernel.OverlayStep) {
		return kernel.OverlayRemedy(step.Errno)
	}
	text := err.Error()
	for _, w := range userNamespaces {
		if strings.Contains(text, w) {
			return kernel.UsernsRemedy()
		}
	}
	for _, r := range remedies {
		if strings.Contains(text, r.says) {
			return r.do
		}
	}
	return "\"bawn doctor\" shows what this machine can enforce"
}

// explain adds to the error of a start what to do about it.
func explain(err error) error { return &kernel.StartError{Err: err, Remedy: remedy(err)} }

// passing reports whether bwrap failed because the host's mounts have changed
// while it worked. Nothing has been started then.
func passing(err error) bool {
	text := err.Error()
	return strings.Contains(text, "Unable to apply mount flags: remount") || strings.Contains(text, "Unable to find") && strings.Contains(text, "in mount table")
}
