package secrets

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// hide does nothing: macOS has no advice of that kind.
func hide([]byte) {}

// Harden keeps this process out of core dumps and from being traced
// (RLIMIT_CORE in getrlimit(2), PT_DENY_ATTACH in ptrace(2)). It can't be taken
// back. Call it before the first value is read; an error means that it does
// not hold.
func Harden() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	if err := unix.PtraceDenyAttach(); err != nil {
		return fmt.Errorf("deny tracing: %w", err)
	}
	return nil
}
