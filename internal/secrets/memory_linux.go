package secrets

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// hide keeps pages out of core dumps and out of children (madvise(2)). Both
// are second walls: Harden is the first, and a child execs at once.
func hide(page []byte) {
	_ = unix.Madvise(page, unix.MADV_DONTDUMP)
	_ = unix.Madvise(page, unix.MADV_DONTFORK)
}

// Harden keeps this process out of core dumps, and from being traced or read
// through /proc by processes of the same user without CAP_SYS_PTRACE
// (PR_SET_DUMPABLE in prctl(2), RLIMIT_CORE in getrlimit(2)). It can't be
// taken back for the process; children get the limit and not the attribute.
// Call it before the first value is read; an error means that it does not hold.
func Harden() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("make the process undumpable: %w", err)
	}
	return nil
}
