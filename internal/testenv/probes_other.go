//go:build !linux

package testenv

import (
	"errors"
	"os"
)

var errLinux = errors.New("needs Linux")

// canBeUser accepts only a process that is an ordinary user already.
func canBeUser() error {
	if os.Geteuid() == 0 {
		return errLinux
	}
	return nil
}

func userNamespace() error { return errLinux }
func landlock() error      { return errLinux }
func landlockScope() error { return errLinux }
func seccompFilter() error { return errLinux }
func seccompNotify() error { return errLinux }
func cgroupLimits() error  { return errLinux }
