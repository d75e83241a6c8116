package secrets

import (
	"os"
	"syscall"
	"testing"
)

// dup returns a descriptor of its own for f, which it closes.
func dup(t *testing.T, f *os.File) int {
	t.Helper()
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}
