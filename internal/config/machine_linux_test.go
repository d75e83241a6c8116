package config

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestThisMachine compares with the kernel's other account of the same number.
func TestThisMachine(t *testing.T) {
	m, err := ThisMachine()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	kb, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil || m.MemoryMB != kb/1024 {
		t.Errorf("got %d MiB, want %d (%v)", m.MemoryMB, kb/1024, err)
	}
}
