package supervise

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestOwnThreadIsNotTheFirst: what changes its user and gives up its rights is
// never the thread by which others know this process.
func TestOwnThreadIsNotTheFirst(t *testing.T) {
	const n = 200
	tids := make(chan int, n)
	for range n {
		go onOwnThread(func() { tids <- unix.Gettid() })
	}
	for range n {
		if tid := <-tids; tid == unix.Getpid() {
			t.Fatal("the process's first thread was taken")
		}
	}
}
