package bwrap

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// BenchmarkSession starts a session, runs a program in it and ends it, in turn
// with bwrap alone doing what its words say and running that program. It reports
// the medians and how many times bwrap's the session takes.
func BenchmarkSession(b *testing.B) {
	need(b)
	plan := planned(b, here(workspace(b), bawn.NetworkNone))
	var ours, alone []time.Duration
	for b.Loop() {
		ours = append(ours, timed(func() { session(b, plan) }))
		alone = append(alone, timed(func() { bwrapAlone(b, plan) }))
	}
	report(b, ours, alone)
}

// BenchmarkExec runs a program in a session that is there, in turn with bwrap
// alone, which has to make a sandbox each time.
func BenchmarkExec(b *testing.B) {
	need(b)
	plan := planned(b, here(workspace(b), bawn.NetworkNone))
	g, err := tried.Start(plan, func(sandbox.Denial) {})
	check(b, err)
	defer g.Close()
	var ours, alone []time.Duration
	for b.Loop() {
		ours = append(ours, timed(func() { nothing(b, g) }))
		alone = append(alone, timed(func() { bwrapAlone(b, plan) }))
	}
	report(b, ours, alone)
}

func timed(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}

func session(b *testing.B, plan *Plan) {
	g, err := tried.Start(plan, func(sandbox.Denial) {})
	check(b, err)
	nothing(b, g)
	check(b, g.Close())
}

// nothing runs a program that does nothing.
func nothing(b *testing.B, g sandbox.Guest) {
	proc, err := g.Exec(sandbox.Command{Argv: []string{"/bin/true"}})
	check(b, err)
	for range proc.Changes() {
	}
}

// bwrapAlone has bwrap do what the plan's words say.
func bwrapAlone(b *testing.B, plan *Plan) {
	files, err := plan.open()
	check(b, err)
	defer closeAll(files)
	words, err := argumentFile(plan.bytes())
	check(b, err)
	defer words.Close()
	cmd := exec.Command(Name, "--args", strconv.Itoa(argsFD), "--", "/bin/true")
	cmd.ExtraFiles = append([]*os.File{words, words}, files...)
	check(b, cmd.Run())
}

func report(b *testing.B, ours, alone []time.Duration) {
	slices.Sort(ours)
	slices.Sort(alone)
	a, p := ours[len(ours)/2], alone[len(alone)/2]
	b.ReportMetric(float64(a.Microseconds())/1000, "ms/ours")
	b.ReportMetric(float64(p.Microseconds())/1000, "ms/bwrap")
	b.ReportMetric(float64(a)/float64(p), "times-bwrap")
	b.ReportMetric(0, "ns/op")
}
