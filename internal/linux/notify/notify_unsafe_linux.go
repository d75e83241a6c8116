// Package notify speaks to a seccomp filter's listener: it receives system
// calls that wait for a decision and answers each with an errno, a value, or a
// descriptor. Source: seccomp_unotify(2).
//
// A call with pointer arguments must not be allowed by Continue after a check:
// between the check and the kernel's reading another thread could change the
// memory.
package notify

import (
	"cmp"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Call is struct seccomp_notif: one system call of one thread, asleep.
type Call struct {
	ID    uint64
	TID   uint32 // as the listener's holder sees it
	flags uint32
	Nr    int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// addFD is struct seccomp_notif_addfd.
type addFD struct {
	id         uint64
	flags      uint32
	srcFD      uint32
	newFD      uint32
	newFDFlags uint32
}

// Requests of ioctl(2), from linux/seccomp.h: _IOWR('!', n, struct) and _IOW.
const (
	ioctlRecv     = 3<<30 | '!'<<8 | unsafe.Sizeof(Call{})<<16 // number 0
	ioctlSend     = 3<<30 | '!'<<8 | 1 | unsafe.Sizeof(response{})<<16
	ioctlIDValid  = 1<<30 | '!'<<8 | 2 | unsafe.Sizeof(uint64(0))<<16
	ioctlAddFD    = 1<<30 | '!'<<8 | 3 | unsafe.Sizeof(addFD{})<<16
	ioctlSetFlags = 1<<30 | '!'<<8 | 4 | unsafe.Sizeof(uint64(0))<<16

	flagContinue = 1 << 0
	syncWakeUp   = 1 << 0
)

// A Listener is the supervisor's end of a filter.
type Listener struct {
	f  *os.File
	fd int
	// tells says that a request to receive notices that the last process has ended.
	tells bool
}

// NewListener takes ownership of f. Where the kernel can (6.6), the guest's
// thread and the supervisor hand the CPU to each other instead of waking each
// other on two.
func NewListener(f *os.File) *Listener {
	l := &Listener{f: f, fd: int(f.Fd()), tells: receiveTells()}
	unix.IoctlSetInt(l.fd, uint(ioctlSetFlags), syncWakeUp) // EINVAL before 6.6: slower, no less safe
	return l
}

// receiveTells reports whether the kernel is Linux 6.11 or later.
func receiveTells() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	_, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 6 || major == 6 && minor >= 11)
}

// Receive waits for the next call. It returns ENOENT when the caller was
// killed meanwhile, and ESRCH once the last process under the filter has
// ended. Before Linux 6.11 it waits in poll(2), because the request itself
// does not notice that end.
func (l *Listener) Receive(c *Call) error {
	if l.tells {
		*c = Call{}
		err := l.ioctl(ioctlRecv, unsafe.Pointer(c))
		if err != unix.ENOENT {
			return err
		}
		if over, err := l.poll(0); over || err != nil {
			return cmp.Or(err, error(unix.ESRCH))
		}
		return unix.ENOENT
	}
	if over, err := l.poll(-1); over || err != nil {
		return cmp.Or(err, error(unix.ESRCH))
	}
	*c = Call{}
	return l.ioctl(ioctlRecv, unsafe.Pointer(c))
}

// poll waits so many milliseconds for a call, and without end if they are negative. It
// reports whether no process is left that could make one.
func (l *Listener) poll(timeout int) (over bool, err error) {
	p := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(p, timeout)
		if err == unix.EINTR {
			continue
		}
		return p[0].Revents&unix.POLLIN == 0 && p[0].Revents != 0, err
	}
}

// Valid reports whether the call still waits. Data read of its process before
// count only if this is true afterwards: else the process id may belong to
// another process by now.
func (l *Listener) Valid(c *Call) bool {
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(l.fd), ioctlIDValid, uintptr(unsafe.Pointer(&c.ID))) // never waits
	return errno == 0
}

// Fail answers with an errno.
func (l *Listener) Fail(c *Call, errno unix.Errno) error {
	return l.send(response{id: c.ID, err: -int32(errno)})
}

// Return answers with a value.
func (l *Listener) Return(c *Call, val int64) error {
	return l.send(response{id: c.ID, val: val})
}

// Continue lets the kernel carry the call out with the arguments as they are
// by then. It is for calls that do no harm whatever those are.
func (l *Listener) Continue(c *Call) error {
	return l.send(response{id: c.ID, flags: flagContinue})
}

// ReturnFD hands fd over to the caller, closes it here, and only then answers
// with its number there. A file that is still open for writing anywhere can't
// be executed, and a locked one stays locked. It returns EMFILE when the caller
// may not open more.
func (l *Listener) ReturnFD(c *Call, fd int, cloexec bool) error {
	a := addFD{id: c.ID, srcFD: uint32(fd)}
	if cloexec {
		a.newFDFlags = unix.O_CLOEXEC
	}
	there, err := l.ioctlValue(ioctlAddFD, unsafe.Pointer(&a))
	unix.Close(fd)
	if err != nil {
		return err
	}
	return l.Return(c, int64(there))
}

// Close closes the listener: every supervised call fails with ENOSYS from then on.
func (l *Listener) Close() error { return l.f.Close() }

func (l *Listener) send(r response) error { return l.ioctl(ioctlSend, unsafe.Pointer(&r)) }

func (l *Listener) ioctl(req uintptr, arg unsafe.Pointer) error {
	_, err := l.ioctlValue(req, arg)
	return err
}

func (l *Listener) ioctlValue(req uintptr, arg unsafe.Pointer) (int, error) {
	for {
		v, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), req, uintptr(arg))
		switch errno {
		case 0:
			return int(v), nil
		case unix.EINTR:
			continue
		}
		return 0, errno
	}
}
