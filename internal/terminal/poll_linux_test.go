package terminal

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPollGoesOn: signals end no wait, neither early nor with an error. The control
// is the call itself.
func TestPollGoesOn(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread, stop := unix.Gettid(), make(chan struct{})
	defer close(stop)
	go func() {
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-tick.C:
				_ = unix.Tgkill(unix.Getpid(), thread, unix.SIGURG) // Go's own; the thread is there until stop
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	if _, _, err := pollOnce(descriptor(r), unix.POLLIN, -1, 10*time.Second); !errors.Is(err, unix.EINTR) {
		t.Fatalf("a signal does not end the call: %v", err)
	}
	const wait = 100 * time.Millisecond
	began := time.Now()
	if ready, _, err := poll(descriptor(r), unix.POLLIN, -1, wait); ready || err != nil || time.Since(began) < wait-time.Millisecond {
		t.Errorf("ready is %t after %v: %v", ready, time.Since(began), err)
	}
}
