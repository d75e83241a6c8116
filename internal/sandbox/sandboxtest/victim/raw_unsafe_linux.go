package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// kept holds what the kernel was given an address of. What is reachable from
// here lies on the heap, where nothing moves.
var kept []any

// address returns where v lies, for a raw system call.
func address[T any](v *T) uintptr {
	kept = append(kept, v)
	return uintptr(unsafe.Pointer(v))
}

// addressOf returns where the bytes lie.
func addressOf(b []byte) uintptr { return address(&b[0]) }

// cstring returns the address of s with a NUL behind it.
func cstring(s string) uintptr { return addressOf(append([]byte(s), 0)) }

// raw makes a system call with at most six arguments.
func raw(nr int, args ...uintptr) (uintptr, errno) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, e := unix.Syscall6(uintptr(nr), a[0], a[1], a[2], a[3], a[4], a[5])
	return r, e
}

// rawErr is raw for calls whose result does not matter.
func rawErr(nr int, args ...uintptr) error {
	_, e := raw(nr, args...)
	return orNil(e)
}

// atCWD is AT_FDCWD as an argument.
var atCWD = func() uintptr { n := unix.AT_FDCWD; return uintptr(n) }()

// cloneArgs is struct clone_args, see clone(2).
type cloneArgs struct {
	flags, _, _, _, exitSignal, _, _, _, _, _, _ uint64
}

// cloneRaw makes a process that exits at once, and returns why it could not.
//
//go:norace
func cloneRaw(flags uintptr) errno {
	pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e == 0 && pid == 0 {
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	return e
}

// clone3Raw is cloneRaw with clone3(2).
//
//go:norace
func clone3Raw(flags uint64) errno {
	a := &cloneArgs{flags: flags, exitSignal: uint64(unix.SIGCHLD)}
	at, size := address(a), unsafe.Sizeof(*a)
	pid, _, e := unix.RawSyscall(unix.SYS_CLONE3, at, size, 0)
	if e == 0 && pid == 0 {
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	return e
}

// ioctl makes an ioctl with the address of v.
func ioctl[T any](fd int, request uintptr, v *T) error {
	return rawErr(unix.SYS_IOCTL, uintptr(fd), request, address(v))
}
