package testenv

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestThrowAwayThread shows that what a probe does to its thread is not seen of
// the process, which the first thread stands for: others refuse one with a
// seccomp filter.
func TestThrowAwayThread(t *testing.T) {
	for range 2000 {
		runtime.Gosched() // some of them would come to the first thread
		err := onThrowAwayThread(func() error {
			if unix.Gettid() == unix.Getpid() {
				t.Error("the first thread was thrown away")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := seccompFilter(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil || strings.Contains(string(text), "Seccomp_filters:\t1\n") {
		t.Errorf("the process has a filter (%v)", err)
	}
}
