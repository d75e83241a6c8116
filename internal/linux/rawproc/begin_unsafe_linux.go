package rawproc

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errElsewhere says that this thread may end before the process does.
var errElsewhere = errors.New("not the main thread")

// forkHere forks the child from a thread that lives as long as the child does:
// PR_SET_PDEATHSIG counts the thread that forked as the parent. The main thread
// is one (the runtime never ends it); elsewhere a thread is kept for that, which
// costs two to be made. A child that is not alone is forked as ever: it may count
// on what such a thread has been restricted to.
func (in *Init) forkHere(childSock int) error {
	if in.cfg.Alone {
		if err := in.fork(childSock, true); err != errElsewhere {
			return err
		}
	}
	forked := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := in.fork(childSock, false)
		forked <- err
		if err == nil {
			<-in.done
		}
	}()
	return <-forked
}

// link makes the message point at its own parts.
func (m *message) link() {
	m.hdr.Iov, m.hdr.Control = &m.iov, &m.ctl[0]
	m.hdr.SetIovlen(1)
	m.iov.Base = (*byte)(unsafe.Pointer(&m.body))
	m.iov.SetLen(int(unsafe.Sizeof(m.body)))
}

// fork forks the child, with onMain from the main thread only.
func (in *Init) fork(childSock int, onMain bool) error {
	p := in.cfg.Program
	args := ownArgs()
	l := launch{steps: p.mem.step(0), sh: in.shared, sock: uintptr(childSock), args: unsafe.Pointer(unsafe.SliceData(args)), nargs: len(args), alone: in.cfg.Alone}
	in.launch = (*launch)(Put(p, l))
	in.launch.publish(p, in.cfg.Ready)
	stack, tls, g := p.mem.stack(in.launch)
	if p.mem.err != nil {
		return p.mem.err
	}
	start := uintptr(p.mem.base())
	own := extent{start, start + memorySize}
	syscall.ForkLock.Lock()
	pid, errno := forkInit(in.cfg.Namespaces, stack, tls, g, own, unshared(own), onMain)
	syscall.ForkLock.Unlock()
	switch {
	case errno == errnoElsewhere:
		return errElsewhere
	case errno != 0:
		return fmt.Errorf("create namespaces: %w", errno)
	}
	fd, err := unix.PidfdOpen(int(pid), 0)
	if err != nil {
		unix.Kill(int(pid), unix.SIGKILL)
		wait(int(pid))
		return fmt.Errorf("open pidfd: %w", err)
	}
	in.pid, in.pidfd = int(pid), os.NewFile(uintptr(fd), "pidfd")
	return nil
}

// ownArgs is the memory of this process's command line, as execve(2) laid it
// out, or nothing if os.Args is not that any more.
func ownArgs() []byte {
	if len(os.Args) == 0 {
		return nil
	}
	start := unsafe.StringData(os.Args[0])
	size := 0
	for _, a := range os.Args {
		if len(a) > 0 && unsafe.StringData(a) != (*byte)(unsafe.Add(unsafe.Pointer(start), size)) {
			return nil
		}
		size += len(a) + 1
	}
	return unsafe.Slice(start, size-1)
}
