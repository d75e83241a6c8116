package rawproc

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
)

// Mark is the sixth argument of each execve(2) by which a child becomes a command. The
// kernel does not look at it, but a seccomp filter's listener sees it: this process can
// tell the calls of its own children from those of programs, which can't know it. No
// program can read the memory of the child before, and the kernel clears the registers
// when a program starts.
var Mark = sync.OnceValue(func() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.NativeEndian.Uint64(b[:]) | 1
})
