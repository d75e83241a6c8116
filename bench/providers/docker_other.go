//go:build !linux

package main

import "github.com/bawn-dev/bawn/internal/sandbox"

// docker needs an engine of the benchmark's own, which runs on Linux only.
func (*field) docker() ([]way, error) { return nil, sandbox.ErrUnsupported }
