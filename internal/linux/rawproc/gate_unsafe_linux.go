package rawproc

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A gate is where the child waits for its parent, and the packet that opens it.
type gate struct {
	in    message
	n     int32 // descriptors that come with it
	slots [maxReady]Slot
}

// A Gate is a place of a program where the child waits until Init.Open is
// called. Later steps may be added while the child waits. It is for programs
// that are carried out alone (Config.Alone): only then does the child see that
// its parent is gone, and ends.
type Gate struct {
	g    *gate
	room int // for so many descriptors
}

// Await appends a gate. The descriptors that Open hands over come into the first
// of slots, as many as there are.
func (p *Program) Await(name string, slots ...Slot) Gate {
	g := (*gate)(Put(p, gate{}))
	g.in.link()
	copy(g.slots[:], slots)
	p.Call(name, unix.SYS_RECVMSG).step().gate = g
	return Gate{g, len(slots)}
}

// Open lets the child go on behind g, with all steps that the program has by now
// and a copy of each file. ready is returned in addition to what Config says. It
// errs where the program has become too large, and leaves the gate shut. Gates
// are opened in their order, before Wait returns and before anything is asked
// for.
func (in *Init) Open(g Gate, files []*os.File, ready ...Slot) error {
	p := in.cfg.Program
	if len(files) > g.room {
		return fmt.Errorf("BUG(bawn): %d files for a gate that takes %d", len(files), g.room)
	}
	in.start.Lock()
	defer in.start.Unlock()
	in.cfg.Ready = append(in.cfg.Ready[:len(in.cfg.Ready):len(in.cfg.Ready)], ready...)
	in.launch.publish(p, in.cfg.Ready)
	if p.mem.err != nil {
		return p.mem.err
	}
	g.g.n = int32(len(files))
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	return in.send(packet{kind: kindOpen}, rights)
}

// publish says how many steps there are, and which descriptors are handed back
// after them.
func (l *launch) publish(p *Program, ready []Slot) {
	l.ready.n = int32(copy(l.ready.slot[:], ready))
	l.n = p.Len()
}

// pass waits for the packet that opens g. Without it, or without its
// descriptors, nothing behind the gate happens.
//
//go:nosplit
//go:norace
//go:nocheckptr
func pass(g *gate, i int, sh *shared, sock uintptr) {
	g.in.hdr.SetControllen(len(g.in.ctl))
	n, _, err := syscall.RawSyscall6(unix.SYS_RECVMSG, sock, uintptr(unsafe.Pointer(&g.in.hdr)), unix.MSG_CMSG_CLOEXEC, 0, 0, 0)
	if err != 0 {
		fail(sh, i, int32(err))
	}
	if n != unsafe.Sizeof(packet{}) || g.in.body.kind != kindOpen {
		fail(sh, i, int32(unix.EPIPE))
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&g.in.ctl[0]))
	got := int32(0)
	if g.in.hdr.Controllen >= unix.SizeofCmsghdr && h.Type == unix.SCM_RIGHTS {
		got = int32(uintptr(h.Len)-unix.SizeofCmsghdr) / 4
	}
	if got != g.n {
		fail(sh, i, int32(unix.EBADMSG))
	}
	for j := int32(0); j < got; j++ {
		sh.slots[g.slots[j&(maxReady-1)]&(maxSlots-1)] = uintptr(*(*int32)(unsafe.Add(unsafe.Pointer(&g.in.ctl[unix.SizeofCmsghdr]), 4*uintptr(j))))
	}
}
