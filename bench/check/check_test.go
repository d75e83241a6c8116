package main

import (
	"slices"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// TestSlower: a task counts as slower where nearly every round says so, and not for a
// few of them.
func TestSlower(t *testing.T) {
	r := results{}
	for name, times := range map[string][]float64{
		"as before": {1, 1.02, 0.98, 1, 1.01, 0.99, 1, 1}, "slower": {1.2, 1.18, 1.25, 1.2, 1.15, 1.2, 1.3, 1.2},
		"a little": {1.05, 1.06, 1.04, 1.05, 1.05, 1.06, 1.05, 1.05}, "by chance": {0.9, 1.5, 0.95, 1.4, 0.9, 1.3, 0.9, 1.4}, "faster": {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5},
	} {
		s := new([programs]measure.Series)
		for _, x := range times {
			for p, d := range [programs]float64{1, 2, 2 * x} {
				s[p] = append(s[p], measure.Sample{Wall: time.Duration(d * float64(time.Millisecond))})
			}
		}
		r[name] = s
	}
	if got := r.show([]string{"as before", "slower", "a little", "by chance", "faster"}); !slices.Equal(got, []string{"slower"}) {
		t.Errorf("slower are %q", got)
	}
}

// TestPerOperation: the mean of all lines counts, and no line is an error.
func TestPerOperation(t *testing.T) {
	got, err := perOperation("goos: linux\nBenchmarkContained/ls-2 \t 300\t 1000 ns/op\t 12 B/op\nBenchmarkContained/make-2 300 3000.0 ns/op\nPASS\n")
	if err != nil || got.Wall != 2*time.Microsecond {
		t.Errorf("%v, %v; want 2 µs", got.Wall, err)
	}
	if got, err := perOperation("PASS\n"); err == nil {
		t.Errorf("no benchmark: %v", got.Wall)
	}
}
