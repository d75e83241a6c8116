package rawproc

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bounds of a program. They are reserved, and cost nothing until used.
const (
	maxSteps  = 1 << 15
	dataSize  = 8 << 20
	stackSize = 64 << 10
	tlsSize   = 4096

	stepsSize  = maxSteps * unsafe.Sizeof(step{})
	memorySize = (stepsSize+dataSize+tlsSize+stackSize+pageSize-1)/pageSize*pageSize + pageSize
	pageSize   = 64 << 10 // the largest there is

	firstUse = 64 << 10 // of steps and of data each: usually enough for a session
)

// memory is a mapping that holds everything the child needs between fork and
// exec: steps, the data that they point at, and its stack. The child shares
// nothing else that its parent can write, neither the heap nor variables. Both
// see it, so that the parent can add steps while the child carries out the first
// ones; no other child gets it.
type memory struct {
	all  []byte
	next uintptr // in the data
	err  error   // why the program can't be started
}

// base is where the memory begins. If no memory can be reserved, base returns
// ordinary memory instead, and Start reports the error.
func (m *memory) base() unsafe.Pointer {
	if m.all == nil {
		all, err := unix.Mmap(-1, 0, int(memorySize), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err == nil {
			err = unix.Madvise(all, unix.MADV_DONTFORK)
		}
		if err != nil {
			m.err = fmt.Errorf("reserve memory for the child: %w", err)
			all = make([]byte, memorySize)
		}
		m.all = all
		// One call instead of a page fault each; without it, they come.
		_ = unix.Madvise(all[:firstUse], unix.MADV_POPULATE_WRITE)
		_ = unix.Madvise(all[stepsSize:][:firstUse], unix.MADV_POPULATE_WRITE)
	}
	return unsafe.Pointer(&m.all[0])
}

// take returns n bytes of zeros.
func (m *memory) take(n uintptr) unsafe.Pointer {
	at := (m.next + 7) &^ 7
	if at+n > dataSize {
		m.err = fmt.Errorf("the plan needs more than %d bytes: %w", dataSize, unix.E2BIG)
		return unsafe.Pointer(&make([]byte, n+1)[0])
	}
	m.next = at + n
	return unsafe.Add(m.base(), stepsSize+at)
}

// step returns the step with number i.
func (m *memory) step(i int) *step {
	if i >= maxSteps {
		m.err = fmt.Errorf("the plan needs more than %d steps: %w", maxSteps, unix.E2BIG)
		i = maxSteps - 1
	}
	return (*step)(unsafe.Add(m.base(), uintptr(i)*unsafe.Sizeof(step{})))
}

func (m *memory) setStep(i int, s step) { *m.step(i) = s }

// stack returns the top of the child's stack, with l as the argument of the
// function that is called there, and what its thread pointer must be. A Go
// function looks for its goroutine at some distance from that pointer, or in a
// register, and there for the end of its stack. It finds zeros in both, and so
// always has room.
func (m *memory) stack(l *launch) (top, tls, g uintptr) {
	end := unsafe.Add(m.base(), memorySize)
	args := (*[8]uintptr)(unsafe.Add(end, -64))
	args[0], args[1] = uintptr(unsafe.Pointer(l)), uintptr(unsafe.Pointer(l)) // where amd64 and where arm64 looks
	words := (*[tlsSize / 8]uintptr)(unsafe.Add(end, -int(stackSize+tlsSize)))
	g = uintptr(unsafe.Pointer(&words[tlsSize/16]))
	for i := range tlsSize / 16 {
		words[i] = g
	}
	return uintptr(unsafe.Pointer(args)), g, g
}
