package kernel

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// Steps are the first of a program of system calls that makes a guest: its users
// and its network.
type Steps struct {
	rawproc.Program
	FD      rawproc.Slot   // whatever is closed a few steps later
	Sockets []rawproc.Slot // of the guest's network, for the relay
}

// NewSteps begins a program.
func NewSteps() Steps {
	var c Steps
	c.FD = c.NewSlot()
	return c
}

// Identity maps the one user and the one group.
func (c *Steps) Identity(p *layout.Plan) {
	c.write("/proc/self/setgroups", "deny")
	c.write("/proc/self/uid_map", fmt.Sprintf("%d %d 1", p.UID.Inside, p.UID.Outside))
	c.write("/proc/self/gid_map", fmt.Sprintf("%d %d 1", p.GID.Inside, p.GID.Outside))
}

func (c *Steps) write(file, text string) {
	fd := c.FD
	c.Call("open "+file, unix.SYS_OPENAT, unix.AT_FDCWD, file, unix.O_WRONLY|unix.O_CLOEXEC).Into(fd)
	c.Call("write "+file, unix.SYS_WRITE, fd, []byte(text), len(text))
	c.Call("close "+file, unix.SYS_CLOSE, fd)
}

// portStart says from which port on a process without capabilities may bind, in the
// network namespace of who writes it (ip(7)).
const portStart = "/proc/sys/net/ipv4/ip_unprivileged_port_start"

// AnyPort adds the steps that let a guest bind every port of its own network namespace,
// as it may in a container: nobody else has a service there. The caller must have entered
// it, and hold CAP_NET_ADMIN over it. Where the kernel or this machine's /proc does not
// let Bawn, ports below 1024 stay closed.
func (c *Steps) AnyPort() {
	var fs unix.Statfs_t
	if unix.Statfs(portStart, &fs) != nil || fs.Flags&unix.ST_RDONLY != 0 {
		return
	}
	c.Call("open "+portStart, unix.SYS_OPENAT, unix.AT_FDCWD, portStart, unix.O_WRONLY|unix.O_CLOEXEC).Into(c.FD).Ignoring(unix.EACCES, unix.EPERM)
	c.Call("write "+portStart, unix.SYS_WRITE, c.FD, []byte("0"), 1).Ignoring(unix.EBADF, unix.EPERM)
	c.Call("close "+portStart, unix.SYS_CLOSE, c.FD).Ignoring(unix.EBADF)
}

// Loopback adds the steps that bring lo up.
func (c *Steps) Loopback() {
	fd := c.FD
	req := struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: unix.IFF_UP | unix.IFF_RUNNING}
	copy(req.name[:], "lo")
	c.Call("open a socket", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0).Into(fd)
	c.Call("bring up lo", unix.SYS_IOCTL, fd, unix.SIOCSIFFLAGS, rawproc.Put(&c.Program, req))
	c.Call("close the socket", unix.SYS_CLOSE, fd)
	c.AnyPort()
}
