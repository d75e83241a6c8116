//go:build !linux

package main

import (
	"errors"
	"os/exec"

	"github.com/bawn-dev/bawn/bench/measure"
)

var errLinux = errors.New("the network by name is measured on Linux only")

func namespaced(self, _ string, _ measure.Who) *exec.Cmd {
	return exec.Command(self, "-role", roleInside) // which says why not
}

func inside(string, int) error { return errLinux }

func unshared(cmd *exec.Cmd) *exec.Cmd {
	cmd.Err = errLinux
	return cmd
}
