package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// getpid386 is getpid(2) by the i386 calling convention; see abi_linux_amd64.s.
func getpid386() int32

const x32Bit = 0x40000000

// portCalls give a process the machine's I/O ports.
func portCalls() []call {
	return []call{
		{"A708", "every I/O port", unix.SYS_IOPL, []uintptr{3}, true},
		{"A709", "an I/O port", unix.SYS_IOPERM, []uintptr{0x80, 1, 1}, true},
	}
}

// abiChecks use the other two call tables of this architecture, whose numbers
// mean something else.
func abiChecks() []Check {
	return named("kernel", []Check{
		{Name: "E155", Why: "the i386 call table", Want: append([]errno{nothing}, callRefused...), Unavailable: []errno{nothing, unix.ENOSYS}, Do: func(Fixtures) error {
			switch r := getpid386(); {
			case r == int32(os.Getpid()):
				return nil
			case r < 0:
				return errno(-r)
			}
			return nothing
		}},
		{Name: "A710", Why: "the x32 call table", Want: callRefused, Unavailable: []errno{unix.ENOSYS}, Do: func(Fixtures) error {
			return rawErr(x32Bit|unix.SYS_GETPID, 0)
		}},
	})
}
