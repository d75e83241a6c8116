package native

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
)

// steps are the first of a program of system calls that makes a guest: its users
// and its network.
type steps struct {
	rawproc.Program
	fd      rawproc.Slot   // whatever is closed a few steps later
	sockets []rawproc.Slot // of the guest's network, for the relay
}

// newSteps begins a program.
func newSteps() steps {
	var c steps
	c.fd = c.NewSlot()
	return c
}

// identity maps the one user and the one group.
func (c *steps) identity(p *Plan) {
	c.write("/proc/self/setgroups", "deny")
	c.write("/proc/self/uid_map", fmt.Sprintf("%d %d 1", p.UID.Inside, p.UID.Outside))
	c.write("/proc/self/gid_map", fmt.Sprintf("%d %d 1", p.GID.Inside, p.GID.Outside))
}

func (c *steps) write(file, text string) {
	fd := c.fd
	c.Call("open "+file, unix.SYS_OPENAT, unix.AT_FDCWD, file, unix.O_WRONLY|unix.O_CLOEXEC).Into(fd)
	c.Call("write "+file, unix.SYS_WRITE, fd, []byte(text), len(text))
	c.Call("close "+file, unix.SYS_CLOSE, fd)
}

func (c *steps) loopback() {
	fd := c.fd
	req := struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: unix.IFF_UP | unix.IFF_RUNNING}
	copy(req.name[:], "lo")
	c.Call("open a socket", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0).Into(fd)
	c.Call("bring up lo", unix.SYS_IOCTL, fd, unix.SIOCSIFFLAGS, rawproc.Put(&c.Program, req))
	c.Call("close the socket", unix.SYS_CLOSE, fd)
}
