package secrets

import "golang.org/x/sys/unix"

// The requests for the settings of a terminal (ioctl_tty(2)).
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)
