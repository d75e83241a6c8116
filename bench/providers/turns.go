package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/bawn-dev/bawn/bench/measure"
)

// A way does one thing that is measured.
type way struct {
	Provider string `json:"provider"`
	Who      string `json:"who"` // "bawn", the engine's own command, or "bare"
	Measure  string `json:"measure"`
	sample   func() (measure.Sample, error)
}

func (w way) String() string { return w.Provider + ", " + w.Who + ": " + w.Measure }

// key tells ways apart.
func (w way) key() [3]string { return [3]string{w.Provider, w.Who, w.Measure} }

// results are the samples of each way.
type results map[[3]string]measure.Series

// takeTurns runs every way once per round, the quick ones more often.
func (o *options) takeTurns(list []way) (results, error) {
	all := results{}
	isWork := func(w way) bool { return w.Measure == build || w.Measure == files }
	quick := slices.DeleteFunc(slices.Clone(list), isWork)
	long := slices.DeleteFunc(slices.Clone(list), func(w way) bool { return !isWork(w) })
	if err := all.rounds(quick, o.warmup, o.rounds); err != nil || o.work == 0 {
		return all, err
	}
	return all, all.rounds(long, min(o.warmup, 1), o.work)
}

func (all results) rounds(list []way, warmup, rounds int) error {
	for n := range warmup + rounds {
		for _, i := range measure.Order(n, len(list)) {
			s, err := list[i].sample()
			if err != nil {
				return fmt.Errorf("%s: %w", list[i], err)
			}
			if n >= warmup {
				all[list[i].key()] = append(all[list[i].key()], s)
			}
		}
	}
	return nil
}

// report writes one table for each measure, and how the run stands to the goals.
func report(r *measure.Report, list []way, all results) {
	for _, m := range measures {
		var rows [][]string
		for _, w := range list {
			if w.Measure != m || len(all[w.key()]) == 0 {
				continue
			}
			s := all[w.key()]
			row := []string{w.Provider, w.Who, measure.Milliseconds(s.Median()), measure.Milliseconds(s.Min()), measure.Milliseconds(s.P95()), "", measure.Ratio(s, all[[3]string{bareName, bareName, m}]).String()}
			if e, ok := rival(list, w); ok {
				row[5] = measure.Ratio(s, all[e.key()]).String()
			}
			rows = append(rows, row)
		}
		if rows != nil {
			r.Line("\n%s", m)
			r.Table([]string{"provider", "by", "median ms", "min ms", "p95 ms", "× the engine's own", "× bare"}, rows)
		}
	}
	r.Line("")
	for _, w := range list {
		if e, ok := rival(list, w); ok && len(all[w.key()]) > 0 {
			r.Goal(fmt.Sprintf("%s: %s / %s", w.Measure, w.Provider, e.Who), measure.Ratio(all[w.key()], all[e.key()]), limit(w))
		}
	}
}

// limit is the goal: never slower than the engine's own command line, and a
// command in a running container in much less time.
func limit(w way) measure.Limit {
	if w.Provider == "docker" && w.Measure == warm {
		return measure.AtMost(0.6)
	}
	return measure.AtMost(1)
}

// rival is the engine's own way to what bawn does on a provider.
func rival(list []way, w way) (way, bool) {
	if w.Who != bawnName {
		return way{}, false
	}
	i := slices.IndexFunc(list, func(o way) bool { return o.Provider == w.Provider && o.Measure == w.Measure && o.Who != bawnName })
	if i < 0 {
		return way{}, false
	}
	return list[i], true
}

// saveJSON writes the medians and ratios for programs.
func saveJSON(path string, all results) error {
	type line struct {
		Provider, Measure, Who string
		MedianMS, MinMS        float64
		Rounds                 int
		Samples                []float64 // milliseconds, in the order of the rounds
	}
	var lines []line
	for key, s := range all {
		l := line{Provider: key[0], Who: key[1], Measure: key[2], MedianMS: ms(s.Median()), MinMS: ms(s.Min()), Rounds: len(s)}
		for _, sample := range s {
			l.Samples = append(l.Samples, ms(sample.Wall))
		}
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b line) int {
		return slices.Compare([]string{a.Measure, a.Provider, a.Who}, []string{b.Measure, b.Provider, b.Who})
	})
	text, err := json.MarshalIndent(lines, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
