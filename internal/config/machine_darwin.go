package config

import (
	"encoding/binary"
	"syscall"
)

// ThisMachine measures the machine (sysctl(3), hw.memsize).
func ThisMachine() (Machine, error) {
	s, err := syscall.Sysctl("hw.memsize")
	if err != nil {
		return Machine{}, err
	}
	// A 64-bit number comes as text whose last NUL is cut off.
	bytes := append([]byte(s), make([]byte, 8)...)
	return Machine{MemoryMB: int64(binary.LittleEndian.Uint64(bytes) >> 20)}, nil
}
