package gitstore

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// errAlive says that a living bawn has the session.
var errAlive = errors.New("the session is alive")

func flock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errAlive
	}
	return err
}
