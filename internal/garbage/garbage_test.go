package garbage

import (
	"runtime"
	"testing"
)

var held []byte

// TestRelease collects what is large.
func TestRelease(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	held = make([]byte, worth)
	held[worth/2] = 1
	held = nil
	Release()
	if runtime.ReadMemStats(&after); after.NumGC == before.NumGC || after.HeapAlloc > worth {
		t.Errorf("%d collections, %d bytes in use", after.NumGC-before.NumGC, after.HeapAlloc)
	}
}
