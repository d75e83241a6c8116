//go:build linux || darwin

package runner

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestMain is also the process that gets a signal: "early" before the sandbox is
// made, "held" while it is, "twice" a second one then, and "late" after begin.
func TestMain(m *testing.M) {
	if len(os.Args) != 2 || !slices.Contains([]string{"early", "held", "twice", "late"}, os.Args[1]) {
		os.Exit(m.Run())
	}
	os.Exit(signalled(os.Args[1]))
}

func signalled(when string) int {
	s := catch()
	switch when {
	case "held", "twice":
		s.hold()
	case "late":
		s.begin()
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		return 3
	}
	if when == "held" || when == "twice" {
		time.Sleep(100 * time.Millisecond) // it has been heard
	}
	switch when {
	case "twice":
		for range 200 { // two that come at once are one
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			time.Sleep(50 * time.Millisecond)
		}
	case "held":
		s.begin()
		fallthrough
	case "late":
		if <-s.Signals() == syscall.SIGTERM {
			s.end()
			return 0
		}
	}
	time.Sleep(10 * time.Second)
	return 4
}

// TestSignalsBeforeASessionAreObeyed ends a process that has not begun; the
// control, one that has, gets the signal handed.
func TestSignalsBeforeASessionAreObeyed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"early", "twice"} {
		err = exec.Command(self, when).Run()
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
			t.Errorf("%s: got %v, want an end by SIGTERM", when, err)
		}
	}
	for _, when := range []string{"held", "late"} {
		if err := exec.Command(self, when).Run(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
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
