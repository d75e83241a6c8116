package sandboxtest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// A Result is what came of a command.
type Result struct {
	Stdout, Stderr string
	Code           int // exit code, 128+n after signal n, -1 if it did not start
	Elapsed        time.Duration
}

// A Runner runs one command inside a sandbox, with f.Workspace as its working directory,
// and waits for its end. There f.Secret's directory and f.Denied are hidden; f.Writable is
// writable, except probe.WritableKept (read-only) and probe.WritableClosed (hidden). It starts
// whatever makes the sandbox with [Fixtures.Command].
type Runner func(t testing.TB, f *Fixtures, argv ...string) Result

// NoSandbox runs a command as it is.
func NoSandbox(t testing.TB, f *Fixtures, argv ...string) Result { return f.Exec(t, argv...) }

// execTime is when a command hangs and is ended.
const execTime = 2 * time.Minute

// Exec runs a command made by [Fixtures.Command] and collects what it prints.
func (f *Fixtures) Exec(t testing.TB, argv ...string) Result {
	t.Helper()
	patience := testenv.Patience(t, execTime)
	var out, errs bytes.Buffer
	cmd := f.Command(argv...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, 2*time.Second
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return Result{Code: -1, Stderr: err.Error()}
	}
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	return Result{Stdout: out.String(), Stderr: errs.String(), Code: status(err), Elapsed: time.Since(begin)}
}

// status is the exit code as a shell gives it.
func status(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return 0
	case !errors.As(err, &exit):
		return -1
	case exit.ExitCode() >= 0:
		return exit.ExitCode()
	}
	return 128 + int(signalOf(exit))
}

// Options choose among the checks and say what a provider promises.
type Options struct {
	Families []string // nil: all
	// HidesHost says that the guest sees nothing of the host but its
	// workspace, so that ENOENT is a refusal everywhere.
	HidesHost bool
	// OutsideDecides says that a change may work inside, in a copy, as long as
	// the host's files stay as they are.
	OutsideDecides bool
	// OwnGit says that a session has a private git directory in place of the
	// workspace's, and publishes the guest's commits. MadeGit says that it has one
	// in place of each that the guest makes.
	OwnGit, MadeGit bool
	// Once takes the first word for each check: one that fails is not tried again
	// alone, for a caller that wants nearly all to fail.
	Once bool
	// Also are further refusals, by the name of the check: what another kernel
	// says.
	Also map[string][]string
	// InPart names checks that need not be refused, and why: what the provider
	// says that it enforces in part. If one of them is refused all the same,
	// the test fails: its excuse is out of date. "FAMILY/STATE" names all of
	// these.
	InPart map[string]string
	// Otherwise names checks that mean something else inside, so that nothing is
	// lost where they work, and why. They go out of date likewise.
	Otherwise map[string]string
}

// excuse is why a check need not be refused; "" where it must.
func (o Options) excuse(i probe.Info) string {
	return cmp.Or(o.InPart[i.Name], o.InPart[i.Family+"/"+i.State], o.Otherwise[i.Name])
}

// own are the families whose places are the guest's own workspace and what it
// was given, which it must find in every sandbox: "absent" would prove nothing.
var own = []string{"fs-narrow", "protected-create", "protected-rename", "protected-link"}

// hides reports whether the check's target may be absent inside.
func (o Options) hides(i probe.Info) bool { return o.HidesHost && !slices.Contains(own, i.Family) }

// wants reports whether the options choose the check.
func (o Options) wants(i probe.Info) bool {
	return o.Families == nil || slices.Contains(o.Families, i.Family)
}

// A Failure is a check that did not come out as it must.
type Failure struct {
	Check   probe.Info
	Outcome probe.Outcome
	Problem string   // what is wrong
	Changed []string // outside
}

func (f Failure) String() string {
	s := f.Problem
	if f.Check.Name != "" {
		s = fmt.Sprintf("%s (%s: %s): %s", f.Check.Name, f.Check.Family, f.Check.Why, f.Problem)
	}
	if f.Outcome.Detail != "" {
		s += "; " + f.Outcome.Detail
	}
	if len(f.Changed) > 0 {
		s += "; changed outside: " + strings.Join(f.Changed, ", ")
	}
	return s
}

// Run runs the checks inside and fails t for each that works, that is refused
// with an errno that may mean something else, or that changes something
// outside.
func Run(t *testing.T, run Runner, f *Fixtures, o Options) {
	t.Helper()
	for _, failure := range Failures(t, run, f, o) {
		t.Error(failure)
	}
}

// Failures is Run for a caller that wants the list.
func Failures(t testing.TB, run Runner, f *Fixtures, o Options) []Failure {
	t.Helper()
	infos := f.List(t)
	var failures []Failure
	for _, state := range []string{probe.Present, probe.Absent} {
		failures = append(failures, f.in(state).runState(t, run, infos, o)...)
	}
	return failures
}

// List returns every check that the victim knows.
func (f *Fixtures) List(t testing.TB) []probe.Info {
	t.Helper()
	r := f.Exec(t, f.Victim, "list")
	infos, err := decode[probe.Info](r.Stdout)
	if err != nil || r.Code != 0 || len(infos) == 0 {
		t.Fatalf("victim list: %v, exit code %d: %s", err, r.Code, r.Stderr)
	}
	return infos
}

// decode reads one JSON object a line.
func decode[T any](text string) (list []T, err error) {
	s := bufio.NewScanner(strings.NewReader(text))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			return list, fmt.Errorf("%w in %.200q", err, s.Text())
		}
		list = append(list, v)
	}
	return list, s.Err()
}

// rounds is how often the list is run at most: once more after each time that
// something in it worked.
const rounds = 4

// runState runs all checks of a state at once, and repeats failed ones alone,
// so that none fails because of another. (Where testenv.Short says so, those
// that may work inside are not, if nothing is different outside after all of
// them.) Then it runs the list again without them: what they did may have
// hidden others.
func (f *Fixtures) runState(t testing.TB, run Runner, infos []probe.Info, o Options) []Failure {
	t.Helper()
	var failures []Failure
	left := slices.DeleteFunc(slices.Clone(infos), func(i probe.Info) bool { return i.State != f.State || !o.wants(i) })
	var changed []string
	worked := false // below a private git directory
	for range rounds {
		var failed []Failure
		failed, changed = f.round(t, run, left, failures, o)
		if testenv.Short() && len(changed) == 0 {
			failed = slices.DeleteFunc(failed, func(i Failure) bool {
				inside := o.inside(f, i)
				worked = worked || inside && i.Outcome.Outcome == probe.Succeeded
				return inside
			})
		}
		if len(failed) == 0 {
			break
		}
		for _, failure := range failed {
			if !o.Once {
				failure = f.again(t, run, failure, o)
			}
			worked = worked || o.privately(f, failure.Check) && failure.Outcome.Outcome == probe.Succeeded
			failures = append(failures, failure)
			left = slices.DeleteFunc(left, func(i probe.Info) bool { return i.Name == failure.Check.Name })
		}
	}
	failures = slices.DeleteFunc(failures, func(f Failure) bool { return f.Problem == "" })
	rest, stale := unexplained(changed, failures), o.stale(infos, f.State, failures)
	stale = append(stale, o.unused(f, infos, worked)...)
	failures = slices.DeleteFunc(append(failures, stale...), func(f Failure) bool { return o.excuse(f.Check) != "" && f.Outcome.Name != "" })
	if len(rest) > 0 {
		failures = append(failures, Failure{Problem: "after all checks something is different outside that no failed check explains", Changed: rest})
	}
	return failures
}

// stale lists the checks of a state that are excused and came out as they must.
func (o Options) stale(infos []probe.Info, state string, failures []Failure) (list []Failure) {
	for _, i := range infos {
		failed := slices.ContainsFunc(failures, func(f Failure) bool { return f.Check.Name == i.Name })
		if why := cmp.Or(o.InPart[i.Name], o.Otherwise[i.Name]); why != "" && i.State == state && o.wants(i) && !failed {
			list = append(list, Failure{Check: i, Problem: "came out as it must, so that its excuse is out of date: " + why})
		}
	}
	return list
}

// round runs the checks that are left, in one go.
func (f *Fixtures) round(t testing.TB, run Runner, left []probe.Info, before []Failure, o Options) (failed []Failure, changed []string) {
	t.Helper()
	f.reset(t)
	argv := []string{f.Victim, "-world", f.arg(), "all"}
	if o.Families != nil {
		argv = append(argv, "--families", strings.Join(o.Families, ","))
	}
	if len(before) > 0 {
		var names []string
		for _, b := range before {
			names = append(names, b.Check.Name)
		}
		argv = append(argv, "--except", strings.Join(names, ","))
	}
	r := run(t, f, argv...)
	outcomes, err := decode[probe.Outcome](r.Stdout)
	switch {
	case r.Elapsed >= testenv.Patience(t, execTime):
		t.Fatalf("a check hangs, the one after %s: %.1000s", lastOf(outcomes), r.Stderr)
	case err != nil || r.Code != 0:
		t.Errorf("the victim did not end well: exit code %d, %v: %.1000s", r.Code, err, r.Stderr)
	}
	if len(outcomes) == 0 && len(left) > 0 {
		t.Fatalf("nothing was tried: %q", r.Stdout)
	}
	return judgeAll(left, outcomes, o), f.losses(t, o, left...)
}

// lastOf names the last check that came to something.
func lastOf(outcomes []probe.Outcome) string {
	if len(outcomes) == 0 {
		return "none"
	}
	return outcomes[len(outcomes)-1].Name
}

// unexplained are the changes that no failure makes by itself.
func unexplained(changed []string, failures []Failure) []string {
	return slices.DeleteFunc(changed, func(c string) bool {
		return slices.ContainsFunc(failures, func(f Failure) bool { return slices.Contains(f.Changed, c) })
	})
}

// judgeAll judges the outcomes; a check without one has failed.
func judgeAll(infos []probe.Info, outcomes []probe.Outcome, o Options) []Failure {
	byName := map[string]probe.Outcome{}
	for _, out := range outcomes {
		byName[out.Name] = out
	}
	var failures []Failure
	for _, i := range infos {
		out, ok := byName[i.Name]
		problem := "no outcome"
		if ok {
			problem = judge(i, out, o)
		}
		if problem != "" {
			failures = append(failures, Failure{Check: i, Outcome: out, Problem: problem})
		}
	}
	return failures
}

// judge says what is wrong with an outcome inside, or "".
func judge(i probe.Info, out probe.Outcome, o Options) string {
	switch {
	case out.Outcome == probe.Failed:
		return "could not be tried"
	case i.Works && out.Outcome != probe.Succeeded:
		return "must work, but was refused with " + out.Errno
	case i.Works:
		return ""
	case out.Outcome != probe.Refused:
		return "worked"
	case slices.Contains(i.Want, out.Errno), slices.Contains(o.Also[i.Name], out.Errno), o.hides(i) && out.Errno == "ENOENT":
		return ""
	}
	return fmt.Sprintf("refused with %s, which proves nothing; want one of %q", out.Errno, i.Want)
}

// inside reports whether what the check came to is no failure unless something is
// different outside.
func (o Options) inside(f *Fixtures, i Failure) bool {
	return o.OutsideDecides && i.Outcome.Outcome == probe.Succeeded && i.Check.Changes ||
		o.privately(f, i.Check) && i.Outcome.Name != "" && i.Outcome.Outcome != probe.Failed
}

// again repeats a check that failed by itself.
func (f *Fixtures) again(t testing.TB, run Runner, before Failure, o Options) Failure {
	f.reset(t)
	r := run(t, f, f.Victim, "-world", f.arg(), before.Check.Name)
	outcomes, err := decode[probe.Outcome](r.Stdout)
	now := Failure{Check: before.Check, Changed: f.losses(t, o, before.Check)}
	switch {
	case err != nil || len(outcomes) != 1:
		now.Problem = fmt.Sprintf("no outcome: exit code %d, %v: %.300s", r.Code, err, r.Stderr)
		return now
	default:
		now.Outcome = outcomes[0]
		now.Problem = judge(before.Check, now.Outcome, o)
	}
	switch {
	case o.inside(f, now) && len(now.Changed) == 0:
		now.Problem = ""
	case now.Problem == "" && len(now.Changed) > 0:
		now.Problem = "something is different outside"
	case now.Problem == "":
		before.Problem += " (in the whole list only)"
		return before
	}
	return now
}
