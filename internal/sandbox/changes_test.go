package sandbox_test

import (
	"syscall"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// TestChangesWaitForNobody: who does not fetch stops keeps nobody waiting, and
// still hears of the end.
func TestChangesWaitForNobody(t *testing.T) {
	c := sandbox.NewChangeList()
	for range 1000 {
		c.Put(sandbox.Change{Stopped: true})
	}
	c.Put(sandbox.Change{Status: syscall.WaitStatus(7 << 8)})
	c.End()
	var last sandbox.Change
	n := 0
	for last = range c.Changes() {
		n++
	}
	if last.Stopped || last.Status.ExitStatus() != 7 || n > 100 {
		t.Errorf("%d changes, the last one %+v; want few, and the end at last", n, last)
	}
}
