package rawproc

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Slot holds the result of one step for later steps of the same program.
type Slot uint8

// maxSlots bounds the results a program may keep.
const maxSlots = 32

// step is one system call. Its pointers are to the program's own memory: the
// child has no other.
type step struct {
	nr     uintptr
	args   [6]uintptr
	slots  uint8 // bit i: args[i] is the number of a slot
	out    int8  // slot for the result, or -1
	ignore [2]unix.Errno
	store  unsafe.Pointer // *int32 that receives the result, or nil
	expect *Identity      // after fstat into stat: the expected file
	stat   *unix.Stat_t
	answer *answer // after a message came into it: must say that all is well
	gate   *gate   // in place of a call: the awaited word
}

// answer is the kernel's to a netlink request (netlink(7), NLMSG_ERROR).
type answer struct {
	_     unix.NlMsghdr
	errno int32 // negative, or 0
	_     [44]byte
}

// An Identity pins a file to the one seen when the plan was made, so that a
// directory swapped in between is refused.
type Identity struct{ Dev, Ino uint64 }

// A Program is a flat list of system calls with a name for each. Its zero
// value is ready to use; Start uses it up.
type Program struct {
	names []string // as many as there are steps
	mem   memory
	slots uint8
}

// NewSlot reserves a slot.
func (p *Program) NewSlot() Slot {
	if p.slots == maxSlots {
		panic("BUG(bawn): program needs more than 32 slots")
	}
	p.slots++
	return Slot(p.slots - 1)
}

// A Step may be refined after it has been added.
type Step struct {
	p *Program
	i int
}

// Call appends one system call. Arguments are integers, strings and byte slices
// (passed as NUL-terminated pointers), pointers made with Ptr, and slots. The
// name is shown in an error.
func (p *Program) Call(name string, nr uintptr, args ...any) Step {
	s := step{nr: nr, out: -1}
	for i, a := range args {
		s.args[i] = p.arg(a)
		if _, ok := a.(Slot); ok {
			s.slots |= 1 << i
		}
	}
	p.mem.setStep(len(p.names), s)
	p.names = append(p.names, name)
	return Step{p, len(p.names) - 1}
}

// step is the one that s stands for.
func (s Step) step() *step { return s.p.mem.step(s.i) }

// Into keeps the result in slot.
func (s Step) Into(slot Slot) Step { s.step().out = int8(slot); return s }

// Ignoring treats up to two errnos as success.
func (s Step) Ignoring(errnos ...unix.Errno) Step {
	if len(errnos) > 2 {
		panic("BUG(bawn): a step ignores two errnos at most")
	}
	copy(s.step().ignore[:], errnos)
	return s
}

// StoreFD writes the result as int32 to where dst points, in something that
// was Put.
func (s Step) StoreFD(dst *int32) Step {
	s.step().store = unsafe.Pointer(dst)
	return s
}

// ExpectIdentity appends an fstat of slot that fails with ESTALE unless it
// finds id.
func (p *Program) ExpectIdentity(name string, slot Slot, id Identity) {
	st := Put(p, unix.Stat_t{})
	s := p.Call(name, unix.SYS_FSTAT, slot, st).step()
	s.expect, s.stat = (*Identity)(Put(p, id)), (*unix.Stat_t)(st)
}

// ExpectAnswer appends the receipt of the kernel's answer to a netlink request that
// was sent on the socket in slot. It fails with the errno in the answer, and with
// EAGAIN if the kernel has not answered.
func (p *Program) ExpectAnswer(name string, slot Slot) {
	a := Put(p, answer{errno: -int32(unix.EBADMSG)}) // what too short a message leaves
	s := p.Call(name, unix.SYS_RECVFROM, slot, a, int(unsafe.Sizeof(answer{})), unix.MSG_DONTWAIT, 0, 0).step()
	s.answer = (*answer)(a)
}

// Ptr is a pointer argument, made by Put.
type Ptr unsafe.Pointer

// Put copies v, which holds no pointers but those made by Put and Array, to
// where the child finds it.
func Put[T any](p *Program, v T) Ptr {
	at := p.mem.take(unsafe.Sizeof(v))
	*(*T)(at) = v
	return Ptr(at)
}

// Array is Put for each element of list.
func Array[T any](p *Program, list []T) *T {
	var one T
	at := p.mem.take(unsafe.Sizeof(one) * uintptr(len(list)))
	copy(unsafe.Slice((*T)(at), len(list)), list)
	return (*T)(at)
}

func (p *Program) arg(a any) uintptr {
	switch v := a.(type) {
	case Slot:
		return uintptr(v)
	case int:
		return uintptr(v)
	case uint64:
		return uintptr(v)
	case uintptr:
		return v
	case string:
		at := p.mem.take(uintptr(len(v)) + 1) // of zeros
		copy(unsafe.Slice((*byte)(at), len(v)), v)
		return uintptr(at)
	case []byte:
		return uintptr(unsafe.Pointer(Array(p, v)))
	case Ptr:
		return uintptr(v)
	}
	panic(fmt.Sprintf("BUG(bawn): %T is no system call argument", a))
}

// Len returns the number of steps.
func (p *Program) Len() int { return len(p.names) }

// Names returns the name of each step, in order.
func (p *Program) Names() []string { return append([]string(nil), p.names...) }
