//go:build linux || darwin

package runner

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// A said is a catcher of what the test says.
type said chan os.Signal

func (s said) Signals() chan os.Signal    { return s }
func (s said) Reset(syscall.Signal) error { return nil }
func (s said) Release() error             { return nil }

// TestAwaitContinue: nothing is done between a stop and its end, and no signal of
// that time is lost; a stop that never comes is not waited for without end.
func TestAwaitContinue(t *testing.T) {
	s := make(said, 8)
	w := &watch{signals: &signals{catcher: s}}
	go func() {
		s <- syscall.SIGTERM
		time.Sleep(100 * time.Millisecond)
		s <- syscall.SIGCONT
	}()
	begin := time.Now()
	if got := w.awaitContinue(); !slices.Equal(got, []syscall.Signal{syscall.SIGTERM}) {
		t.Errorf("signals meanwhile: %v", got)
	}
	if took := time.Since(begin); took < 100*time.Millisecond {
		t.Errorf("it went on after %v, before it was continued", took)
	}
	if got := w.awaitContinue(); len(got) > 0 {
		t.Errorf("signals of nobody: %v", got)
	}
}
