//go:build !linux

package executor

import (
	"os"

	"github.com/bawn-dev/bawn"
)

// Main can't work here: its commands could reach it. It closes control and
// returns 1.
func Main(control *os.File) int {
	control.Close()
	return 1
}

// Partly is empty where there is no executor.
func Partly() []bawn.Capability { return nil }
