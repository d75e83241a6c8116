package main

import (
	"errors"
	"fmt"

	"github.com/bawn-dev/bawn/bench/measure"
)

// A result is what was measured as one user.
type result struct {
	who      measure.Who
	variants []variant
	series   map[string]measure.Series
	sampler  *measure.Peer
}

// takeTurns runs the rounds, the users by turns within each.
func (o *options) takeTurns(t *tools, whos []measure.Who) (_ []*result, err error) {
	var results []*result
	defer func() {
		for _, r := range results {
			err = errors.Join(err, r.sampler.Close())
		}
	}()
	for _, who := range whos {
		peer, err := measure.StartPeer(who.Command(t.self, "-serve"))
		if err != nil {
			return nil, err
		}
		r := &result{who: who, variants: t.variants(who), series: map[string]measure.Series{}, sampler: peer}
		results = append(results, r)
		if err := peer.Ask(question{Variants: r.variants, Who: who}, nil); err != nil {
			return nil, err
		}
	}
	for n := range o.warmup + o.rounds {
		for _, i := range measure.Order(n, len(results)) {
			if err := results[i].round(n, n >= o.warmup); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

func (r *result) round(n int, counts bool) error {
	var samples []measure.Sample
	if err := r.sampler.Ask(question{Round: n}, &samples); err != nil {
		return fmt.Errorf("as %s: %w", r.who.Name, err)
	}
	for i, v := range r.variants {
		if counts {
			r.series[v.Name] = append(r.series[v.Name], samples[i])
		}
	}
	return nil
}

// write adds the table of one user and how it stands to the goals.
func (r *result) write(w *measure.Report) {
	w.Line("\nas %s", r.who.Name)
	var rows [][]string
	for _, v := range r.variants {
		s := r.series[v.Name]
		rows = append(rows, []string{
			v.Name, measure.Milliseconds(s.Min()), measure.Milliseconds(s.Median()), measure.Milliseconds(s.P95()),
			measure.Milliseconds(s.CPU()), measure.Ratio(s, r.series[bare]).String(), measure.Ratio(s, r.series[bwrapSame]).String(), measure.CPURatio(s, r.series[bwrapSame]).String(),
		})
	}
	w.Table([]string{"variant", "min ms", "median ms", "p95 ms", "CPU ms", "× true", "× bwrap", "CPU × bwrap"}, rows)
	w.Goal("bawn / bwrap with the same namespaces", measure.Ratio(r.series[native], r.series[bwrapSame]), measure.AtMost(1.5))
	w.Goal("network by name / the same bwrap", measure.Ratio(r.series[byName], r.series[bwrapSame]), measure.AtMost(2.8))
	w.Goal(srtName+" / bawn", measure.Ratio(r.series[srtName], r.series[native]), measure.AtLeast(40))
	w.Goal("in a running session over bare, ms", measure.Over(r.series[inSession], r.series[bareAgain]), measure.AtMost(1))
}
