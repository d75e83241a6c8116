//go:build linux || darwin

package runner

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestMain is also the process that gets a signal: "early" before begin,
// "late" after it.
func TestMain(m *testing.M) {
	if len(os.Args) != 2 || os.Args[1] != "early" && os.Args[1] != "late" {
		os.Exit(m.Run())
	}
	s := catch()
	if os.Args[1] == "late" {
		s.begin()
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		os.Exit(3)
	}
	if os.Args[1] == "late" && <-s.Signals() == syscall.SIGTERM {
		s.end()
		os.Exit(0)
	}
	time.Sleep(10 * time.Second)
	os.Exit(4)
}

// TestSignalsBeforeASessionAreObeyed ends a process that has not begun; the
// control, one that has, gets the signal handed.
func TestSignalsBeforeASessionAreObeyed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	err = exec.Command(self, "early").Run()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("before begin: got %v, want an end by SIGTERM", err)
	}
	if err := exec.Command(self, "late").Run(); err != nil {
		t.Errorf("after begin: %v", err)
	}
}

// TestTwoSessionsCatchSignals starts a second session while the first runs.
func TestTwoSessionsCatchSignals(t *testing.T) {
	first := catch()
	defer first.end()
	second := catch()
	defer second.end()
	first.begin()
	second.begin()
	if _, ok := second.catcher.(notifier); !ok {
		t.Errorf("the second has a %T; want what os/signal does", second.catcher)
	}
}
