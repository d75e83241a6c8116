package kernel

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

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

// listenQueue is how many connections may wait to be accepted.
const listenQueue = 128

// Listen makes a TCP socket that listens at a port of a guest's 127.0.0.1, any
// free one for 0. Socket makes sockets of a family in the guest's network
// namespace; n is the guest's network by name, or nil, whose ports are not to be
// had. It errs with EADDRINUSE where a port is taken.
func Listen(n *layout.Network, port uint16, socket func(family int) (*os.File, error)) (*os.File, error) {
	if n != nil && (n.Ours(port) || slices.Contains(n.HostPorts, port)) {
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

// Dial connects to a port of a guest's loopback, IPv4 first and then IPv6, with
// TCP sockets of a family (AF_INET, AF_INET6) made in the guest's network
// namespace. n is the guest's network by name, or nil; its own ports are
// excluded. It errs with ECONNREFUSED where nothing listens.
func Dial(n *layout.Network, port uint16, socket func(family int) (*os.File, error)) (*os.File, error) {
	if n != nil && (n.Ours(port) || slices.Contains(n.HostPorts, port)) {
		return nil, fmt.Errorf("port %d is not the guest's own: %w", port, unix.ECONNREFUSED)
	}
	f, err := dial(socket, unix.AF_INET, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		return f, nil
	}
	if f, err6 := dial(socket, unix.AF_INET6, &unix.SockaddrInet6{Port: int(port), Addr: netip.IPv6Loopback().As16()}); err6 == nil {
		return f, nil
	}
	return nil, err
}

func dial(socket func(family int) (*os.File, error), family int, to unix.Sockaddr) (*os.File, error) {
	f, err := socket(family)
	if err != nil {
		return nil, err
	}
	fd := int(f.Fd())
	if err := errors.Join(sendTimeout(fd, dialTimeout), unix.Connect(fd, to), sendTimeout(fd, 0)); err != nil {
		f.Close()
		return nil, fmt.Errorf("connect to the guest: %w", err)
	}
	return f, nil
}

// dialTimeout is how long a listener of the guest may leave a connection
// waiting for room in its queue.
const dialTimeout = 5 * time.Second

// sendTimeout bounds connect(2), too (socket(7)); 0 is no bound.
func sendTimeout(fd int, d time.Duration) error {
	tv := unix.NsecToTimeval(int64(d))
	return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
}
