//go:build !linux

package main

import (
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/runner"
)

// dockerAPI is not served here: a guest has no network of its own, in which its
// containers could be.
var dockerAPI func(launch.ContainerSetting) (func(runner.ContainerHost) (func() error, error), error)

// checkEngine finds no engine here.
var checkEngine func(launch.ContainerSetting) *doctor.Check
