package config

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ThisMachine measures the machine (proc_meminfo(5)).
func ThisMachine() (Machine, error) { return meminfo(os.ReadFile("/proc/meminfo")) }

func meminfo(data []byte, err error) (Machine, error) {
	if err != nil {
		return Machine{}, err
	}
	for line := range bytes.Lines(data) {
		f := bytes.Fields(line)
		if len(f) == 3 && string(f[0]) == "MemTotal:" && string(f[2]) == "kB" {
			kb, err := strconv.ParseInt(string(f[1]), 10, 64)
			return Machine{MemoryMB: kb / 1024}, err
		}
	}
	return Machine{}, fmt.Errorf("/proc/meminfo has no line %q; want the size of the memory", "MemTotal: N kB")
}
