package native

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

var (
	_ sandbox.Loopback = (*guest)(nil)
	_ sandbox.Visible  = (*guest)(nil)
)

// View opens the guest's root. Where nothing but Landlock hides files, that is
// the host's, and there is no view.
func (g *guest) View() (*os.File, error) {
	if g.plan.Rung == RungLandlock {
		return nil, fmt.Errorf("a guest that sees the host's own files has no view of its own: %w", sandbox.ErrUnsupported)
	}
	return Copy(g.init.Ready()[0])
}

// Copy returns a descriptor of its own of an open file, or ErrUnsupported for
// nil.
func Copy(f *os.File) (*os.File, error) {
	if f == nil {
		return nil, sandbox.ErrUnsupported
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, failed := -1, error(nil)
	err = raw.Control(func(have uintptr) { fd, failed = unix.FcntlInt(have, unix.F_DUPFD_CLOEXEC, 0) })
	if err := errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("copy a descriptor: %w", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// Listen makes a socket that listens at a port of the guest's loopback.
func (g *guest) Listen(port uint16) (*os.File, error) {
	if !g.plan.Loopback {
		return nil, fmt.Errorf("a guest without a network of its own has no port %d: %w", port, sandbox.ErrUnsupported)
	}
	return Listen(g.plan.Network, port, g.init.Socket)
}

// listenQueue is how many connections may wait to be accepted.
const listenQueue = 128

// Listen makes a TCP socket that listens at a port of a guest's 127.0.0.1, any
// free one for 0. Socket makes sockets of a family in the guest's network
// namespace; n is the guest's network by name, or nil, whose ports are not to be
// had. It errs with EADDRINUSE where a port is taken.
func Listen(n *Network, port uint16, socket func(family int) (*os.File, error)) (*os.File, error) {
	if n != nil && (n.ours(port) || slices.Contains(n.HostPorts, port)) {
		return nil, fmt.Errorf("port %d is the session's own: %w", port, unix.EADDRINUSE)
	}
	f, err := socket(unix.AF_INET)
	if err != nil {
		return nil, err
	}
	fd := int(f.Fd())
	at := &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, at)
	}
	if err == nil {
		err = unix.Listen(fd, listenQueue)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen at port %d of the guest's loopback: %w", port, err), f.Close())
	}
	return f, nil
}
