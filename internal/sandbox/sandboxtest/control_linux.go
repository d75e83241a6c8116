package sandboxtest

import (
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

func signalOf(exit *exec.ExitError) syscall.Signal {
	return exit.Sys().(syscall.WaitStatus).Signal()
}

// changed lists everything that is different outside.
func (f *Fixtures) changed(t testing.TB) []string {
	t.Helper()
	return slices.DeleteFunc(f.differences(t), func(c string) bool { return c == mayGo })
}

// differences are changed, also where they are nobody's loss.
func (f *Fixtures) differences(t testing.TB) []string {
	t.Helper()
	list, err := f.snapshot.changed()
	if err != nil {
		t.Fatalf("oracle: %v", err)
	}
	return append(append(list, f.inShared()...), f.host.harmed()...)
}

// mayGo is what a guest may remove, as long as it puts nothing in its place.
const mayGo = "-home/src/" + probe.Present + "/" + probe.Spare + "/.git/config"

// reset makes everything as it was in the beginning.
func (f *Fixtures) reset(t testing.TB) {
	t.Helper()
	f.undo(t, f.differences(t))
}

// undo takes these differences back.
func (f *Fixtures) undo(t testing.TB, list []string) {
	t.Helper()
	check(t, f.snapshot.restore(slices.DeleteFunc(slices.Clone(list), func(c string) bool { return !f.snapshot.names(c) })))
	f.removeShared(list)
	check(t, f.host.heal())
	check(t, f.objects.make())
}

// Tally counts controls by family.
type Tally struct {
	Checks, Succeeded, Unavailable, RootOnly, NoControl int
}

// Control runs every check with no sandbox. It must work, and where it changes
// something the oracle must see that: else the check could not fail. It
// returns the counts by family.
func Control(t *testing.T, f *Fixtures, o Options) map[string]*Tally {
	t.Helper()
	tallies := map[string]*Tally{}
	c := &controls{f: f, servers: map[string]*server{}}
	defer c.end()
	for _, i := range f.List(t) {
		if !o.wants(i) {
			continue
		}
		tally := tallies[i.Family]
		if tally == nil {
			tally = &Tally{}
			tallies[i.Family] = tally
		}
		tally.Checks++
		switch {
		case i.NoControl != "":
			tally.NoControl++
		case i.RootOnly && f.UID != 0:
			tally.RootOnly++
		default:
			c.control(t, i, tally)
		}
	}
	return tallies
}

// control runs one check with no sandbox, as it is run inside: with others in
// one process, or alone.
func (c *controls) control(t *testing.T, i probe.Info, tally *Tally) {
	t.Helper()
	f := c.f.in(i.State)
	if !c.clean || !i.Shares {
		f.reset(t)
	}
	c.clean = false
	out, err := c.try(t, f, i)
	if err != nil {
		t.Errorf("control of %s: %v", i.Name, err)
		return
	}
	switch {
	case out.Outcome == probe.Succeeded:
		tally.Succeeded++
		list := f.sees(t, i.Changes)
		if i.Changes && list == nil {
			t.Errorf("control of %s (%s): it worked, but the oracle sees no change", i.Name, i.Why)
		}
		if i.Shares {
			f.undo(t, list)
			c.clean = true
		}
	case out.Outcome == probe.Refused && slices.Contains(i.Unavailable, out.Errno):
		tally.Unavailable++
		t.Logf("not on this machine: %s (%s): %s", i.Name, i.Why, out.Errno)
	default:
		t.Errorf("control of %s (%s): %s %s: %s; want it to work without a sandbox", i.Name, i.Why, out.Outcome, out.Errno, out.Detail)
	}
}

// sees returns what is different, if anything should be; what happens to a
// process takes a moment.
func (f *Fixtures) sees(t testing.TB, change bool) []string {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if list := f.differences(t); len(list) > 0 || !change || time.Now().After(end) {
			return list
		}
	}
}

func (y Tally) String() string {
	return fmt.Sprintf("%d checks: %d controls worked, %d not on this machine, %d for root only, %d without a control", y.Checks, y.Succeeded, y.Unavailable, y.RootOnly, y.NoControl)
}
