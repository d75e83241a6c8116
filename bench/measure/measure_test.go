package measure

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// series makes one with these wall times in milliseconds.
func series(ms ...int) Series {
	s := make(Series, len(ms))
	for i, n := range ms {
		s[i] = Sample{Wall: time.Duration(n) * time.Millisecond, CPU: time.Millisecond}
	}
	return s
}

func TestSeries(t *testing.T) {
	for _, c := range []struct {
		s                Series
		min, median, p95 time.Duration // milliseconds
	}{
		{nil, 0, 0, 0},
		{series(7), 7, 7, 7},
		{series(9, 1), 1, 1, 9},
		{series(3, 1, 2), 1, 2, 3},
		{series(20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1), 1, 10, 19},
	} {
		got := []time.Duration{c.s.Min(), c.s.Median(), c.s.P95()}
		want := []time.Duration{c.min * time.Millisecond, c.median * time.Millisecond, c.p95 * time.Millisecond}
		if !slices.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", c.s, got, want)
		}
	}
	if got := series(1, 2).CPU(); got != time.Millisecond {
		t.Errorf("CPU: got %v", got)
	}
}

// Rounds are compared with themselves: a slow round is slow for both.
func TestRatioIsPaired(t *testing.T) {
	a, b := series(2, 20, 200, 2, 2, 2, 2, 2), series(1, 10, 100, 1, 1, 1, 1, 1)
	if got := Ratio(a, b).String(); got != "2.00 [2.00 2.00]" {
		t.Errorf("ratio: got %s", got)
	}
	if got := CPURatio(a, b).String(); got != "1.00 [1.00 1.00]" {
		t.Errorf("ratio of processor time: got %s", got)
	}
	if got := Over(series(3, 5), series(1, 1)); got.Median != 3 || got.Low != 2 || got.High != 4 {
		t.Errorf("difference: got %v", got)
	}
	if got := Ratio(nil, b).String(); got != "-" {
		t.Errorf("nothing measured: got %s", got)
	}
}

// The interval of 100 values by the sign test: ranks 40 and 61.
func TestInterval(t *testing.T) {
	var values []float64
	for i := range 100 {
		values = append(values, float64(100-i))
	}
	if got := estimate(values); got.Median != 50.5 || got.Low != 40 || got.High != 61 {
		t.Errorf("got %v", got)
	}
}

func TestOrderIsAPermutation(t *testing.T) {
	followers := map[[2]int]bool{}
	for round := range 200 {
		order := Order(round, 5)
		if !slices.Equal(order, Order(round, 5)) {
			t.Fatalf("round %d has two orders", round)
		}
		for i := 1; i < len(order); i++ {
			followers[[2]int{order[i-1], order[i]}] = true
		}
		slices.Sort(order)
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Fatalf("round %d leaves some out: %v", round, order)
		}
	}
	if len(followers) != 20 {
		t.Errorf("%d of 20 neighbourhoods occur", len(followers))
	}
}

func TestServe(t *testing.T) {
	var out bytes.Buffer
	err := Serve(strings.NewReader(`1 2`), &out, func(n int) (any, error) {
		if n == 2 {
			return nil, errors.New("no two")
		}
		return n + 1, nil
	})
	if want := "{\"value\":2}\n{\"error\":\"no two\"}\n"; err != nil || out.String() != want {
		t.Errorf("got %q, %v; want %q", out.String(), err, want)
	}
	if err := Serve(strings.NewReader(`{`), io.Discard, func(int) (any, error) { return 0, nil }); err == nil {
		t.Error("half a question: no error")
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	(&Report{out: &out}).Table([]string{"what", "ms"}, [][]string{{"é", "10.5"}, {"longer", "-"}})
	if want := "what      ms\né       10.5\nlonger     -\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestWhos(t *testing.T) {
	g := &Ground{t.TempDir()}
	if _, err := g.Whos("root,guest"); err == nil {
		t.Error("an unknown user: no error")
	}
	whos, err := g.Whos("user")
	if err != nil || len(whos) != 1 || whos[0].UID == 0 {
		t.Fatalf("got %+v, %v", whos, err)
	}
	for _, v := range whos[0].Environ() {
		if name, value, _ := strings.Cut(v, "="); name == "HOME" && !strings.HasPrefix(value, g.Dir) {
			t.Errorf("the user's home is %q", value)
		}
	}
}

func TestGoal(t *testing.T) {
	for _, c := range []struct {
		e    Estimate
		l    Limit
		want string
	}{
		{Estimate{0.7, 0.6, 0.8, 9}, AtMost(0.8), "goal: x ≤ 0.8: 0.70 [0.60 0.80], met\n"},
		{Estimate{0.7, 0.6, 0.81, 9}, AtMost(0.8), "goal: x ≤ 0.8: 0.70 [0.60 0.81], undecided: the interval crosses it\n"},
		{Estimate{0.9, 0.81, 1, 9}, AtMost(0.8), "goal: x ≤ 0.8: 0.90 [0.81 1.00], not met\n"},
		{Estimate{50, 40, 60, 9}, AtLeast(40), "goal: x ≥ 40: 50.00 [40.00 60.00], met\n"},
		{Estimate{}, AtLeast(40), "goal: x ≥ 40: not measured\n"},
	} {
		var out bytes.Buffer
		(&Report{out: &out}).Goal("x", c.e, c.l)
		if out.String() != c.want {
			t.Errorf("got %q, want %q", out.String(), c.want)
		}
	}
}

// A program that fails says why.
func TestRunFails(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "errors"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("sh", "-c", "echo broken >&2; exit 3")
	cmd.Stderr = f
	if _, err := Run(cmd); err == nil || !strings.Contains(err.Error(), "exit status 3\nbroken") {
		t.Errorf("got %v", err)
	}
	if s, err := Run(exec.Command("true")); err != nil || s.Wall <= 0 || s.CPU <= 0 {
		t.Errorf("got %+v, %v", s, err)
	}
}

// A peer's own work is seen from outside.
func TestPeerCPU(t *testing.T) {
	if Kernel() == runtime.GOOS {
		return // no /proc
	}
	p, err := StartPeer(exec.Command("sh", "-c", `read q; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo '{"value":7}'; read q`))
	if err != nil {
		t.Fatal(err)
	}
	before, got := p.CPU(), 0
	if err := p.Ask("work", &got); err != nil || got != 7 {
		t.Fatalf("got %d, %v", got, err)
	}
	if after := p.CPU(); after-before < time.Millisecond {
		t.Errorf("20,000 rounds of a shell took %v", after-before)
	}
	if err := p.Ask("more", nil); err == nil {
		t.Error("a peer that has ended: no error")
	}
	_ = p.Close() // read failed: exit status 1
}
