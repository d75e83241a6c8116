package attach

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// listen listens at the socket of a session's directory.
func listen(dir string) (*net.UnixListener, error) {
	fd, err := streamSocket()
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), socketName)
	defer f.Close()
	err = at(dir, func(path string) error { return unix.Bind(fd, &unix.SockaddrUnix{Name: path}) })
	if err == nil {
		err = unix.Listen(fd, 64)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for viewers at %q: %w", filepath.Join(dir, socketName), err)
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	ul, ok := l.(*net.UnixListener)
	if !ok {
		return nil, errors.New("a stream socket is not of the domain unix")
	}
	ul.SetUnlinkOnClose(false) // the name is not the one it was bound to
	return ul, nil
}

// connect connects to the socket of a session's directory.
func connect(dir string) (*net.UnixConn, error) {
	fd, err := streamSocket()
	if err != nil {
		return nil, err
	}
	err = at(dir, func(path string) error { return unix.Connect(fd, &unix.SockaddrUnix{Name: path}) })
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return streamConn(os.NewFile(uintptr(fd), socketName))
}

// streamConn turns a descriptor, which is used up, into a connection.
func streamConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("a stream socket is not of the domain unix"), c.Close())
	}
	return conn, nil
}

// Pair returns two connected ends: one to Serve, and one for NewClient.
func Pair() (host, viewer *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return os.NewFile(uintptr(fds[0]), "host"), os.NewFile(uintptr(fds[1]), "viewer"), nil
}
