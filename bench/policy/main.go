// Command policy measures a decision of Bawn's policy beside cedar-go and OPA
// with an equivalent set of rules, by turns in one run. It is a module of its
// own: what the peers need is no dependency of ours. See bench/README.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// enough is how long one sample takes at least.
const enough = 2 * time.Millisecond

func main() {
	rounds := flag.Int("rounds", 60, "how often each engine is measured")
	out := flag.String("out", "", "directory of the result (default: bench/results)")
	flag.Parse()
	if err := run(*rounds, *out); err != nil {
		fmt.Fprintf(os.Stderr, "policy: %v\n", err)
		os.Exit(1)
	}
}

func run(rounds int, out string) error {
	if rounds < 1 {
		return fmt.Errorf("-rounds %d: want at least 1", rounds)
	}
	root, err := measure.Root()
	if err != nil {
		return err
	}
	if out == "" {
		out = filepath.Join(root, "..", "results")
	}
	r := measure.NewReport("policy: a decision, beside cedar-go and OPA", os.Stdout)
	r.Line("# %d rounds after one of warm-up, every engine once per round, in an order that changes from round to round", rounds)
	r.Line("# a sample decides 12 requests again and again for %v at least: paths, commands and hosts, early and late rules and none", enough)
	if err := report(r, rounds); err != nil {
		return err
	}
	r.Load("after")
	path, err := r.Save(out, "policy")
	if err == nil {
		fmt.Println("\npolicy: written to " + path)
	}
	return err
}

// report measures few and many rules, in the same rounds.
func report(r *measure.Report, rounds int) error {
	var rows []*row
	for _, n := range []int{10, 10_000} {
		more, err := newRows(n)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	for round := range rounds + 1 {
		for _, i := range measure.Order(round, len(rows)) {
			if err := rows[i].sample(round > 0); err != nil {
				return err
			}
		}
	}
	half := len(rows) / 2
	write(r, rows[:half])
	write(r, rows[half:])
	r.Line("")
	r.Goal("bawn, 10,000 rules over 10", measure.Ratio(rows[half].series, rows[0].series), measure.AtMost(2))
	return nil
}

// A row is one engine with so many rules.
type row struct {
	name   string
	rules  int
	decide []func() error
	loops  int            // over all requests, per sample
	series measure.Series // of one decision each
}

func newRows(n int) (out []*row, err error) {
	list := statements(n)
	all, err := engines(list)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		w := &row{name: e.name, rules: n}
		if err := w.add(e, requests(list)); err != nil {
			return nil, err
		}
		w.calibrate()
		out = append(out, w)
	}
	return out, nil
}

// add prepares the requests and checks that the engine decides them rightly:
// what decides something else can't be compared.
func (w *row) add(e engine, list []request) error {
	for _, req := range list {
		decide, err := e.prepare(req)
		if err != nil {
			return err
		}
		if got, err := decide(); err != nil || got != req.want {
			return fmt.Errorf("%s with %d rules: %s %q: got %s (%v), want %s", e.name, w.rules, req.kind, req.value, got, err, req.want)
		}
		w.decide = append(w.decide, func() error { _, err := decide(); return err })
	}
	return nil
}

// calibrate finds how many loops take long enough.
func (w *row) calibrate() {
	for w.loops = 1; w.loops < 1<<20; w.loops *= 2 {
		if took, err := w.once(); err != nil || took >= enough {
			return
		}
	}
}

// once decides all requests so many times.
func (w *row) once() (time.Duration, error) {
	start := time.Now()
	for range w.loops {
		for _, decide := range w.decide {
			if err := decide(); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(start), nil
}

// sample takes one sample, and keeps it if it counts. Durations are of a
// thousand decisions, so that nothing is lost to rounding.
func (w *row) sample(counts bool) error {
	took, err := w.once()
	if counts {
		w.series = append(w.series, measure.Sample{Wall: took * 1000 / time.Duration(w.loops*len(w.decide))})
	}
	return err
}

// write adds the table of one number of rules; the first row is Bawn's.
func write(r *measure.Report, rows []*row) {
	r.Line("")
	r.Line("%d rules", rows[0].rules)
	var lines [][]string
	for _, w := range rows {
		lines = append(lines, []string{w.name, micro(w.series.Min()), micro(w.series.Median()), micro(w.series.P95()), measure.Ratio(w.series, rows[0].series).String()})
	}
	r.Table([]string{"engine", "min µs", "median µs", "p95 µs", "× bawn"}, lines)
}

// micro prints a thousandth of a duration in microseconds.
func micro(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d)/1e6) }
