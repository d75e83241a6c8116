package config

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ThisMachine measures the machine Bawn runs on (sysinfo(2)).
func ThisMachine() (Machine, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return Machine{}, fmt.Errorf("ask the kernel for the memory's size: %w", err)
	}
	return Machine{MemoryMB: int64(uint64(info.Totalram) * uint64(info.Unit) >> 20)}, nil
}
