package main

import (
	"context"
	"fmt"

	"github.com/bawn-dev/bawn/bench/measure"
)

var variants = []string{bare, started, inSplit, list}

// warmup is how many rounds do not count.
const warmup = 3

// turns takes samples of every variant, once a round.
func (o *options) turns(ctx context.Context, p *pair) (map[string]measure.Series, error) {
	series := map[string]measure.Series{}
	for n := range warmup + o.rounds {
		for _, i := range measure.Order(n, len(variants)) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			s, err := p.sample(variants[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", variants[i], err)
			}
			if n >= warmup {
				series[variants[i]] = append(series[variants[i]], s)
			}
		}
	}
	return series, nil
}

// writeTurns sets what a command takes alone beside what it takes in the crowd.
func writeTurns(r *measure.Report, alone, among map[string]measure.Series) {
	var rows [][]string
	for _, v := range variants {
		a, b := alone[v], among[v]
		rows = append(rows, []string{
			v, measure.Milliseconds(a.Median()), measure.Milliseconds(b.Median()), measure.Milliseconds(b.P95()),
			measure.Ratio(a, alone[bare]).String(), measure.Ratio(b, among[bare]).String(),
		})
	}
	r.Table([]string{"command", "alone ms", "among them ms", "p95 ms", "alone × bare", "among them × bare"}, rows)
}

// writeStarts says how long starts take, of the first and of the last.
func writeStarts(r *measure.Report, plain, split measure.Series) {
	var rows [][]string
	for _, s := range []struct {
		name string
		all  measure.Series
	}{{"bawn run --detach", plain}, {"bawn run --detach --split", split}} {
		tenth := max(len(s.all)/10, 1)
		rows = append(rows, []string{
			s.name, measure.Milliseconds(s.all.Median()), measure.Milliseconds(s.all[:tenth].Median()), measure.Milliseconds(s.all[len(s.all)-tenth:].Median()),
			measure.Milliseconds(s.all.P95()),
		})
	}
	r.Table([]string{"start", "median ms", "first tenth", "last tenth", "p95 ms"}, rows)
}
