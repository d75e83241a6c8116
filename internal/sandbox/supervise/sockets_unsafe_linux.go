package supervise

import (
	"path"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// sockets says which UNIX sockets a guest may connect to: its own, and those
// that the plan shows for that. Neither the network namespace nor a read-only
// mount keeps a process from connecting to a socket that has a path.
type sockets struct {
	shown      map[string]layout.Identity // of the host's, by their one path in the guest
	private    map[uint64]bool            // st_dev of the session's own file systems
	dir        string                     // without mounts: the one directory of the session's own
	bound      fileSet                    // sockets of the session's elsewhere
	binding    []binding                  // those that the kernel had not bound yet when last looked at
	ownNetwork bool                       // abstract names are the session's own too
	asRoot     bool                       // other threads of this process have capabilities
}

// sockaddr is a call's address, as bytes.
type sockaddr []byte

func (a sockaddr) family() uint16 {
	if len(a) < 2 {
		return unix.AF_UNSPEC
	}
	return *(*uint16)(unsafe.Pointer(&a[0]))
}

// unixPath returns the path of an AF_UNIX address, or "" for an abstract or
// unnamed one (unix(7)).
func (a sockaddr) unixPath() string {
	if len(a) <= 2 || a[2] == 0 {
		return ""
	}
	return unix.ByteSliceToString(a[2:])
}

// sockaddr reads the address argument.
func (c *call) sockaddr(addr, size uint64) (sockaddr, error) {
	if uint32(size) > unix.SizeofSockaddrAny+16 || uint32(size) < 2 {
		return nil, unix.EINVAL
	}
	buf := make([]byte, uint32(size))
	n, err := c.read(addr, buf)
	if err != nil {
		return nil, err
	}
	return buf[:n], c.valid()
}

// connect carries out connect(2) on the caller's own socket.
func (c *call) connect(fd int, addr, size uint64) error {
	to, err := c.sockaddr(addr, size)
	if err != nil {
		return err
	}
	sock, err := c.socket(fd)
	if err != nil {
		return err
	}
	domain, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_DOMAIN)
	t := target{addr: to, sock: sock, file: -1}
	if err == nil && domain == unix.AF_UNIX && to.family() == unix.AF_UNIX {
		err = c.unixTarget(&t)
	}
	if err != nil {
		t.close()
		return err
	}
	if flags, err := unix.FcntlInt(uintptr(sock), unix.F_GETFL, 0); err == nil && flags&unix.O_NONBLOCK != 0 {
		defer t.close()
		return t.connect()
	}
	err = c.detach(func(*call) error {
		defer t.close()
		return t.await(c.s.stop)
	})
	if err != errAnswered {
		t.close()
	}
	return err
}

// await connects, or gives up when the session ends: a TCP connection may take
// minutes to fail.
func (t target) await(stop <-chan struct{}) error {
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-stop:
			_ = unix.Shutdown(t.sock, unix.SHUT_RDWR)
		case <-done:
		}
	}()
	return t.connect()
}

// a target is a socket and where it is to be connected to. For a socket with
// a path, file holds the inode that was checked, and addr names that.
type target struct {
	addr       sockaddr
	sock, file int
}

func (t target) close() {
	unix.Close(t.sock)
	if t.file >= 0 {
		unix.Close(t.file)
	}
}

func (t target) connect() error { return rawConnect(t.sock, t.addr) }

// socket copies the caller's descriptor; both then mean the same open file.
func (c *call) socket(fd int) (int, error) {
	pidfd, err := unix.PidfdOpen(int(c.TID), unix.PIDFD_THREAD)
	if err == unix.EINVAL { // before Linux 6.9
		pidfd, err = c.process()
	}
	if err != nil {
		return -1, unix.EACCES
	}
	defer unix.Close(pidfd)
	if err := c.valid(); err != nil { // it may be another thread's number by now
		return -1, err
	}
	return unix.PidfdGetfd(pidfd, fd, 0)
}

// process opens the caller's thread group, which is all that pidfd_open(2) knows
// of on older kernels: it is looked up in proc(5).
func (c *call) process() (int, error) {
	text, err := c.status("Tgid")
	if err != nil {
		return -1, err
	}
	pid, err := strconv.Atoi(text)
	if err != nil {
		return -1, err
	}
	return unix.PidfdOpen(pid, 0)
}

func rawConnect(sock int, to sockaddr) error {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(sock), uintptr(unsafe.Pointer(&to[0])), uintptr(len(to)))
	if errno != 0 {
		return errno
	}
	return nil
}

// unixTarget checks where an AF_UNIX address leads and pins it to that.
func (c *call) unixTarget(t *target) error {
	name := t.addr.unixPath()
	if name == "" {
		if !c.s.sockets.ownNetwork && len(t.addr) > 2 {
			return c.deniedSocket("@"+string(t.addr[3:]), "sockets:abstract")
		}
		return nil
	}
	abs := name
	if !path.IsAbs(abs) {
		base, err := c.base(unix.AT_FDCWD)
		if err != nil {
			return err
		}
		abs = base + "/" + name
	}
	fd, err := c.openPath(abs, 0)
	if err != nil {
		return err
	}
	t.file, t.addr = fd, unixAddress("/proc/self/fd/"+strconv.Itoa(fd))
	id, mode, err := identify(fd, "")
	if err != nil || mode&unix.S_IFMT != unix.S_IFSOCK {
		return unix.ECONNREFUSED
	}
	real, err := layout.PathOf(fd)
	if err != nil {
		return err
	}
	if !c.s.sockets.own(id, real) && !c.s.sockets.isShown(id, real) {
		return c.deniedSocket(abs, "sockets:host")
	}
	return nil
}

// own reports whether the session made a socket.
func (s *sockets) own(id fileID, real string) bool {
	if s.private[id.dev] || s.dir != "" && layout.Below(real, s.dir) {
		return true
	}
	if !s.bound[id] {
		s.binding = slices.DeleteFunc(s.binding, s.settle)
	}
	return s.bound[id]
}

// isShown reports whether a socket is the one that the plan shows at a path.
// Its mount holds the inode, so that no other file gets that number.
func (s *sockets) isShown(id fileID, real string) bool {
	at, ok := s.shown[real]
	return ok && at == layout.Identity{Dev: id.dev, Ino: id.ino}
}

// close releases sockets that were not bound in the end.
func (s *sockets) close() {
	for _, b := range s.binding {
		b.close()
	}
	s.binding = nil
}

func unixAddress(p string) sockaddr {
	a := make(sockaddr, 2+len(p)+1)
	*(*uint16)(unsafe.Pointer(&a[0])) = unix.AF_UNIX
	copy(a[2:], p)
	return a
}

func (c *call) deniedSocket(name, rule string) error {
	c.s.onDenial(sandbox.Denial{
		Kind: bawn.Network, Operation: bawn.Connect, Resource: "unix:" + name, Rule: rule,
		Reason: "a socket of the host, outside the session",
		Remedy: "use a service inside the session",
	})
	return unix.EACCES
}

// bind checks bind(2) of a path and leaves the rest to the kernel. A guest that
// changes the path in between gains a socket with a strange name, which nothing
// reads or executes. Afterwards the socket itself tells its real place.
func (c *call) bind(fd int, addr, size uint64) error {
	to, err := c.sockaddr(addr, size)
	named := err == nil && to.family() == unix.AF_UNIX && to.unixPath() != ""
	if err != nil && err != unix.EINVAL {
		return err
	}
	if !named {
		return c.proceed()
	}
	if len(c.s.sockets.bound) >= maxFiles {
		return unix.ENOMEM
	}
	p, err := c.checkBind(to.unixPath())
	if err != nil {
		return err
	}
	sock, err := c.socket(fd)
	if err != nil {
		p.close()
		return err
	}
	b := newBinding(sock, p)
	err = c.proceed()
	c.s.sockets.remember(b)
	return err
}

func (c *call) proceed() error {
	if err := c.s.listener.Continue(c.Call); err != nil {
		return err
	}
	return errAnswered
}

// siocUnixFile opens the file a UNIX socket is bound to (linux/un.h). It needs
// CAP_NET_ADMIN over the socket's network namespace, which the maker of the
// guest's has.
const siocUnixFile = 0x89e0

// A binding is a socket whose bind(2) was let through, where to, and when.
type binding struct {
	sock int
	at   place
	when unix.Timespec // as the times of files are told
}

// newBinding is a bind that is let through now.
func newBinding(sock int, at place) binding {
	b := binding{sock: sock, at: at}
	_ = unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &b.when) // every kernel has it
	return b
}

// believed returns the file at the socket's name, once the socket is bound. A
// file older than the call is not believed: it was renamed to that place, or
// was there already.
func (b binding) believed() (fileID, error) {
	at, err := unix.Getsockname(b.sock)
	if err != nil {
		return fileID{}, err
	}
	if name, ok := at.(*unix.SockaddrUnix); !ok || name.Name == "" || name.Name[0] == '@' { // none, or an abstract one
		return fileID{}, unix.ENOENT
	}
	id, _, err := identify(b.at.dir, b.at.name)
	born := unix.Timespec{Sec: id.sec, Nsec: id.nsec}
	if err == nil && born != (unix.Timespec{}) && born.Nano() < b.when.Nano() {
		err = unix.EACCES
	}
	return id, err
}

// maxBinding bounds the sockets that are looked at again: a bind that the
// kernel refused never comes true.
const maxBinding = 32

// remember waits a moment until the kernel has bound the socket, and keeps its
// file. On a busy machine the caller may not have run by then: where the socket
// itself can be asked, that is done again when somebody connects. A name that
// was only believed is not believed later.
func (s *sockets) remember(b binding) {
	for range 40 {
		if s.settle(b) {
			return
		}
		time.Sleep(50 * time.Microsecond)
	}
	if !s.ownNetwork {
		b.close()
		return
	}
	if len(s.binding) == maxBinding {
		s.binding[0].close()
		s.binding = s.binding[1:]
	}
	s.binding = append(s.binding, b)
}

// settle keeps the file of a bound socket and releases the socket.
func (s *sockets) settle(b binding) bool {
	fd, errno := b.file()
	if errno == unix.EPERM && s.asRoot {
		// This thread has no capability any more; others have, over the host's
		// network too. The opened file can't be read or written.
		asked := make(chan struct{})
		go func() {
			fd, errno = b.file()
			close(asked)
		}()
		<-asked
	}
	id, _, err := fileID{}, uint32(0), error(errno)
	switch errno {
	case 0:
		id, _, err = identify(fd, "")
		unix.Close(fd)
	case unix.EPERM: // the host's network: believe the name
		id, err = b.believed()
	}
	if err != nil {
		return false
	}
	s.bound.add(id)
	b.close()
	return true
}

// file opens the socket's file, as O_PATH.
func (b binding) file() (int, unix.Errno) {
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(b.sock), siocUnixFile, 0)
	return int(fd), errno
}

func (b binding) close() {
	unix.Close(b.sock)
	b.at.close()
}

// checkBind rules on the name of a new socket.
func (c *call) checkBind(name string) (place, error) {
	abs := name
	if !path.IsAbs(abs) {
		base, err := c.base(unix.AT_FDCWD)
		if err != nil {
			return place{}, err
		}
		abs = base + "/" + name
	}
	p, err := c.place(abs)
	if err != nil {
		return place{}, named(err, unix.EADDRINUSE)
	}
	_, err = c.check(layout.OpBind, p)
	if err == nil {
		err = c.mayWait(p, unix.S_IFSOCK)
	}
	if _, there := p.stat(); err == nil && there == nil {
		err = unix.EADDRINUSE
	}
	if err != nil {
		p.close()
		return place{}, err
	}
	return p, nil
}
