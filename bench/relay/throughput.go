package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/bench/measure"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/policy"
)

// samples is how many stretches the decisions are counted in.
const samples = 10

// decider decides by the built-in rules.
type decider struct{ policy *policy.Policy }

func (d decider) Decide(_ context.Context, a bawn.Action) (bawn.Decision, error) {
	return d.policy.Decide(&policy.Question{
		Action: a, Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate, Contained: bawn.ContainedFully, Workspace: "/w", Home: "/home/u", System: "linux",
	}), nil
}

// throughput counts decisions whose events are on the disk when they are made:
// the whole guard, the real policy, the real log with fsync(2).
func (o *options) throughput(r *measure.Report, dir string) error {
	p, err := policy.New(nil, policy.Options{})
	if err != nil {
		return err
	}
	log, err := audit.Open(filepath.Join(dir, "audit"), audit.Options{Sync: true})
	if err != nil {
		return err
	}
	g := guard.Guard{Decider: decider{p}, Recorder: log}
	alone := rate(g, 1, 300)
	var many measure.Series
	for range samples {
		took := rate(g, o.deciders, o.decisions/samples)
		if took == 0 {
			return errors.Join(errors.New("a decision was not allowed, or not recorded"), log.Close())
		}
		many = append(many, measure.Sample{Wall: took})
	}
	r.Line("\ndecisions with their events on the disk: %.0f a second from one caller, %.0f a second from %d at once (median of %d)",
		persecond(alone), persecond(many.Median()), o.deciders, samples)
	low := measure.Value(many) // milliseconds for one
	r.Goal("decisions a second, each on the disk", measure.Estimate{Median: 1e3 / low.Median, Low: 1e3 / low.High, High: 1e3 / low.Low, N: low.N}, measure.AtLeast(20_000))
	return log.Close()
}

func persecond(one time.Duration) float64 { return float64(time.Second) / float64(one) }

// rate returns how long one of n decisions takes with that many callers, or 0
// where one is not allowed.
func rate(g guard.Guard, callers, n int) time.Duration {
	var left, failed atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	began := time.Now()
	for range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				a := bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "ls -la src", Dir: "/w", Session: "bench", Agent: "bench", At: began}
				if g.Check(context.Background(), a, bawn.Event{}).Verdict != bawn.Allow {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if failed.Load() > 0 {
		return 0
	}
	return time.Since(began) / time.Duration(n)
}
