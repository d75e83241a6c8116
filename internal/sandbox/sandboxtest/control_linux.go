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
	list, err := f.snapshot.changed()
	if err != nil {
		t.Fatalf("oracle: %v", err)
	}
	list = slices.DeleteFunc(list, func(c string) bool { return c == mayGo })
	return append(append(list, f.inShared()...), f.host.harmed()...)
}

// mayGo is what a guest may remove, as long as it puts nothing in its place.
const mayGo = "-home/src/" + probe.Present + "/" + probe.Spare + "/.git/config"

// reset makes everything as it was in the beginning.
func (f *Fixtures) reset(t testing.TB) {
	t.Helper()
	list, err := f.snapshot.changed()
	check(t, err)
	check(t, f.snapshot.restore(list))
	f.removeShared()
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
			f.in(i.State).control(t, i, tally)
		}
	}
	return tallies
}

// control runs one check with no sandbox.
func (f *Fixtures) control(t *testing.T, i probe.Info, tally *Tally) {
	t.Helper()
	f.reset(t)
	r := NoSandbox(t, f, f.Victim, "-world", f.arg(), i.Name)
	outcomes, err := decode[probe.Outcome](r.Stdout)
	if err != nil || len(outcomes) != 1 {
		t.Errorf("control of %s: exit code %d, %v: %.300s", i.Name, r.Code, err, r.Stderr)
		return
	}
	out := outcomes[0]
	switch {
	case out.Outcome == probe.Succeeded:
		tally.Succeeded++
		if i.Changes && !f.sees(t) {
			t.Errorf("control of %s (%s): it worked, but the oracle sees no change", i.Name, i.Why)
		}
	case out.Outcome == probe.Refused && slices.Contains(i.Unavailable, out.Errno):
		tally.Unavailable++
		t.Logf("not on this machine: %s (%s): %s", i.Name, i.Why, out.Errno)
	default:
		t.Errorf("control of %s (%s): %s %s: %s; want it to work without a sandbox", i.Name, i.Why, out.Outcome, out.Errno, out.Detail)
	}
}

// sees reports whether the oracle sees a change; what happens to a process
// takes a moment.
func (f *Fixtures) sees(t testing.TB) bool {
	for range 50 {
		if len(f.changed(t)) > 0 {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func (y Tally) String() string {
	return fmt.Sprintf("%d checks: %d controls worked, %d not on this machine, %d for root only, %d without a control", y.Checks, y.Succeeded, y.Unavailable, y.RootOnly, y.NoControl)
}
