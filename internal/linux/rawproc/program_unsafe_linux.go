package rawproc

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Slot holds the result of one step for later steps of the same program.
type Slot uint8

// maxSlots bounds the results a program may keep.
const maxSlots = 16

// step is one system call. The child reads it; nothing in it is a Go pointer
// that the garbage collector would have to see, Program.keep holds those.
type step struct {
	nr     uintptr
	args   [6]uintptr
	slots  uint8 // bit i: args[i] is the number of a slot
	out    int8  // slot for the result, or -1
	ignore [2]unix.Errno
	store  unsafe.Pointer // *int32 that receives the result, or nil
	expect *Identity      // after fstat into stat: what it must have found
	stat   *unix.Stat_t
}

// An Identity pins a file to what was seen when the plan was made, so that a
// directory swapped in between is refused.
type Identity struct{ Dev, Ino uint64 }

// A Program is a flat list of system calls with a name for each.
type Program struct {
	steps []step
	names []string
	keep  []any // what the steps point at
	slots uint8
}

// NewSlot reserves a slot.
func (p *Program) NewSlot() Slot {
	if p.slots == maxSlots {
		panic("BUG(bawn): program needs more than 16 slots")
	}
	p.slots++
	return Slot(p.slots - 1)
}

// A Step may be refined after it has been added.
type Step struct {
	p *Program
	i int
}

// Call appends one system call. Arguments are integers, strings and byte
// slices (passed as NUL-terminated pointers), pointers made with Ptr, and
// slots. The name is what an error will show.
func (p *Program) Call(name string, nr uintptr, args ...any) Step {
	s := step{nr: nr, out: -1}
	for i, a := range args {
		s.args[i] = p.arg(a)
		if _, ok := a.(Slot); ok {
			s.slots |= 1 << i
		}
	}
	p.steps = append(p.steps, s)
	p.names = append(p.names, name)
	return Step{p, len(p.steps) - 1}
}

// Into keeps the result in slot.
func (s Step) Into(slot Slot) Step { s.p.steps[s.i].out = int8(slot); return s }

// Ignoring treats up to two errnos as success.
func (s Step) Ignoring(errnos ...unix.Errno) Step {
	if len(errnos) > 2 {
		panic("BUG(bawn): a step ignores two errnos at most")
	}
	copy(s.p.steps[s.i].ignore[:], errnos)
	return s
}

// StoreFD writes the result as int32 to where dst points.
func (s Step) StoreFD(dst *int32) Step {
	s.p.keep = append(s.p.keep, dst)
	s.p.steps[s.i].store = unsafe.Pointer(dst)
	return s
}

// ExpectIdentity appends an fstat of slot that fails with ESTALE unless it
// finds id.
func (p *Program) ExpectIdentity(name string, slot Slot, id Identity) {
	st, want := new(unix.Stat_t), &id
	p.keep = append(p.keep, st, want)
	s := p.Call(name, unix.SYS_FSTAT, slot, Ptr(unsafe.Pointer(st)))
	p.steps[s.i].expect, p.steps[s.i].stat = want, st
}

// Ptr is a pointer argument; the caller's object is kept alive by the program.
type Ptr unsafe.Pointer

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
		return p.bytes(append([]byte(v), 0))
	case []byte:
		return p.bytes(v)
	case Ptr:
		p.keep = append(p.keep, v)
		return uintptr(v)
	}
	panic(fmt.Sprintf("BUG(bawn): %T is no system call argument", a))
}

func (p *Program) bytes(b []byte) uintptr {
	p.keep = append(p.keep, b)
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}

// Len returns the number of steps.
func (p *Program) Len() int { return len(p.steps) }

// Names returns the name of each step, in order.
func (p *Program) Names() []string { return append([]string(nil), p.names...) }
