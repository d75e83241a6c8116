package launch

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/egress"
)

// hostPassphrase is where a host inherits the descriptor that the human has named.
const hostPassphrase = specEnd + 3

// passphraseFD is the descriptor from which the vault's passphrase can be read, which the
// human has opened for this process (egress.PassphraseFD). A process that was handed a spec
// has other descriptors than the environment speaks of, but for a host's.
func (e *Env) passphraseFD() (int, bool) {
	n, err := strconv.Atoi(e.Getenv(egress.PassphraseFD))
	if err != nil || n < 0 || e.spec != nil && !(e.spec.Hosted && n == hostPassphrase) {
		return 0, false
	}
	_, err = unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
	return n, err == nil
}

// passphrase returns a copy of that descriptor, which the caller closes, or nil.
func (e *Env) passphrase() *os.File {
	n, ok := e.passphraseFD()
	if !ok {
		return nil
	}
	fd, err := unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), "passphrase")
}

// hidePassphrase keeps the descriptor from all processes that this one starts, which
// may be guests; with pass the program that it becomes gets it.
func (e *Env) hidePassphrase(pass bool) {
	if n, ok := e.passphraseFD(); ok && n > 2 {
		_, _ = unix.FcntlInt(uintptr(n), unix.F_SETFD, map[bool]int{true: 0, false: unix.FD_CLOEXEC}[pass]) // it is open
	}
}
