// Package measure is shared by the benchmarks below bench/. It has samples and
// their statistics, a table, the place and users of a run, and the processes
// that take samples in turn.
package measure

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// A Sample is one run of something.
type Sample struct {
	Wall time.Duration `json:"wall"`
	CPU  time.Duration `json:"cpu"` // user and system time, 0 where it can't be told
}

// A Series holds the samples of one variant, one for each round.
type Series []Sample

// Min returns the shortest wall time, or 0 of an empty series.
func (s Series) Min() time.Duration { return s.percentile(0) }

// Median returns the median wall time, or 0 of an empty series.
func (s Series) Median() time.Duration { return s.percentile(50) }

// P95 returns the wall time that 95 of 100 runs stay below (nearest rank), or
// 0 of an empty series.
func (s Series) P95() time.Duration { return s.percentile(95) }

func (s Series) percentile(p int) time.Duration {
	if len(s) == 0 {
		return 0
	}
	walls := make([]time.Duration, len(s))
	for i := range s {
		walls[i] = s[i].Wall
	}
	slices.Sort(walls)
	rank := (p*len(walls) + 99) / 100
	return walls[max(rank, 1)-1]
}

// CPU returns the mean processor time of a run, or 0 of an empty series.
func (s Series) CPU() time.Duration {
	if len(s) == 0 {
		return 0
	}
	var sum time.Duration
	for i := range s {
		sum += s[i].CPU
	}
	return sum / time.Duration(len(s))
}

// An Estimate is a median with the interval that holds the true one with 95 %
// confidence. It assumes no distribution: it counts ranks (sign test). Below
// six values the interval is all of them, and holds it less often.
type Estimate struct {
	Median, Low, High float64
	N                 int
}

func (e Estimate) String() string {
	if e.N == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f [%.2f %.2f]", e.Median, e.Low, e.High)
}

// Ratio estimates a's wall time divided by b's, round by round: what slowed
// the machine down in one round slowed both.
func Ratio(a, b Series) Estimate {
	return paired(a, b, Sample.wall, func(x, y float64) float64 { return x / y })
}

// CPURatio is Ratio of the processor time.
func CPURatio(a, b Series) Estimate {
	return paired(a, b, Sample.cpu, func(x, y float64) float64 { return x / y })
}

// Over estimates by how many milliseconds a exceeds b, round by round.
func Over(a, b Series) Estimate {
	return paired(a, b, Sample.wall, func(x, y float64) float64 { return (x - y) / 1e6 })
}

// Value estimates the wall time itself, in milliseconds.
func Value(s Series) Estimate {
	return paired(s, s, Sample.wall, func(x, _ float64) float64 { return x / 1e6 })
}

func (s Sample) wall() float64 { return float64(s.Wall) }
func (s Sample) cpu() float64  { return float64(s.CPU) }

// paired estimates f of what two series have of each round.
func paired(a, b Series, of func(Sample) float64, f func(x, y float64) float64) Estimate {
	n := min(len(a), len(b))
	values := make([]float64, n)
	for i := range values {
		values[i] = f(of(a[i]), of(b[i]))
	}
	return estimate(values)
}

func estimate(values []float64) Estimate {
	n := len(values)
	if n == 0 {
		return Estimate{}
	}
	slices.Sort(values)
	half := 0.98 * math.Sqrt(float64(n)) // 1.96 deviations of the number of values below the median
	low := max(int(math.Floor(float64(n)/2-half)), 1)
	high := min(int(math.Ceil(float64(n)/2+1+half)), n)
	return Estimate{(values[(n-1)/2] + values[n/2]) / 2, values[low-1], values[high-1], n}
}

// Order returns 0 to n-1 in an order that depends only on the round. A program that
// always followed the same neighbour would pay for what that neighbour left to the
// kernel to clean up.
func Order(round, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	x := uint64(round)*0x9e3779b97f4a7c15 + 0x2545f4914f6cdd1d // xorshift64: any seed but 0
	for i := n - 1; i > 0; i-- {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		j := int((x >> 33) % uint64(i+1))
		order[i], order[j] = order[j], order[i]
	}
	return order
}
