package inside

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/intent"
)

// stdio makes one socket of the standard input and output, which an engine
// carries to whoever is attached to its container. In their places nothing is
// left to read or to write. When either ends, so does the socket.
func stdio() (*os.File, error) {
	in, err := away(0, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	out, err := away(1, unix.O_WRONLY)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	ours, wire, err := intent.Pair()
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	go pour(ours, in)
	go pour(out, ours)
	return wire, nil
}

// away moves a descriptor out of the way of commands, and puts /dev/null in its
// place.
func away(fd, flags int) (*os.File, error) {
	moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	null, err := unix.Open(os.DevNull, flags|unix.O_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Dup3(null, fd, 0), unix.Close(null))
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(moved))
	}
	return os.NewFile(uintptr(moved), "stream"), nil
}

// pour moves bytes until there are no more, or nobody takes them. The hidden
// types keep it to read(2) and write(2), which the filter of a guest has.
func pour(to, from *os.File) {
	_, _ = io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from})
	_ = to.Close() // the other direction may have
	_ = from.Close()
}
