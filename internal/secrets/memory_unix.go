//go:build unix

package secrets

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// A locked is a value in pages of its own: outside the Go heap, so that the runtime never
// copies it, and given to no child. The pages stay mapped when they are wiped: a caller
// that still holds them reads zeros.
type locked struct{ bytes []byte }

// lockedCopy copies value. The note says why swap may see it, or is empty.
func lockedCopy(value []byte) (*locked, string) {
	page, err := unix.Mmap(-1, 0, len(value), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		b := append([]byte(nil), value...)
		return &locked{b}, fmt.Sprintf("no pages for a value (%v): it is on the heap, and can be swapped", err)
	}
	note := ""
	if err := unix.Mlock(page); err != nil {
		note = fmt.Sprintf("a value can't be kept out of swap (mlock: %v); raise RLIMIT_MEMLOCK (ulimit -l)", err)
	}
	hide(page)
	copy(page, value)
	return &locked{page[:len(value)]}, note
}

// wipe zeroes the value.
func (l *locked) wipe() { clear(l.bytes) }
