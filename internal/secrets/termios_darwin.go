package secrets

import "golang.org/x/sys/unix"

// The requests for the settings of a terminal (tty(4)).
const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)
