package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/bench/measure"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// place builds what is measured and returns it with the user that runs this.
func place(tb testing.TB) (*tools, measure.Who) {
	tb.Helper()
	testenv.Need(tb, "go")
	g, err := measure.NewGround()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := g.Close(); err != nil {
			tb.Error(err)
		}
	})
	t, err := (&options{dockerHost: "unix:///nonexistent"}).tools(g)
	if err != nil {
		tb.Fatal(err)
	}
	me := "user"
	if os.Geteuid() == 0 {
		me = "root"
	}
	whos, err := g.Whos(me)
	if err != nil {
		tb.Fatal(err)
	}
	return t, whos[0]
}

// BenchmarkLaunch runs each variant by itself, in the form benchstat reads. To
// compare variants use the command instead: there they take turns.
func BenchmarkLaunch(b *testing.B) {
	testenv.Need(b, "userns", "landlock", "seccomp", "notify")
	t, who := place(b)
	variants := t.variants(who)
	s, err := newSampler(who, variants)
	if err != nil {
		b.Fatal(err)
	}
	defer s.close()
	b.Chdir(who.Workspace)
	for _, v := range variants {
		b.Run(strings.NewReplacer(" ", "_", ",", "").Replace(v.Name), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.run(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestPeakMemory holds one session's bawn to its budget. It is no matter of
// time, so it is tested wherever there is a sandbox.
func TestPeakMemory(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	tools, who := place(t)
	for _, l := range loads {
		peak, err := peakOf(who.Command(append([]string{tools.bawn, "run", "-q", "--net", "none", "--"}, l.argv...)...))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("session that %s: %.1f MiB", l.name, float64(peak)/1024)
		if peak > memoryBudget {
			t.Errorf("session that %s: peak of %d KiB; the budget is %d", l.name, peak, memoryBudget)
		}
	}
}

// TestPeakIsSeen shows that the memory of a program that has too much of it
// is noticed.
func TestPeakIsSeen(t *testing.T) {
	testenv.Need(t, "python3")
	_, who := place(t)
	peak, err := peakOf(who.Command("python3", "-c", "import time; x = b'x' * (64 << 20); time.sleep(5)"))
	if err != nil || peak < 64*1024 {
		t.Errorf("got %d KiB, %v; want at least 64 MiB", peak, err)
	}
	if _, err := peakOf(who.Command("false")); err == nil {
		t.Error("a program that failed: no error")
	}
}

// TestStartUp prints what the initialisation of bawn's packages costs beside
// that of an empty Go program. It wants no time: machines differ.
func TestStartUp(t *testing.T) {
	tools, who := place(t)
	programs := []struct {
		name string
		argv []string
	}{{"empty", []string{tools.empty}}, {"bawn", []string{tools.bawn, "--version"}}}
	for _, p := range programs {
		total := inits(t, who, p.argv)
		t.Logf("%-6s %3d packages initialised in %.3f ms, %d bytes, %d allocations", p.name, total.packages, total.ms, total.bytes, total.allocs)
		for _, line := range total.slow {
			t.Logf("       %s", line)
		}
	}
}

// initTrace is the sum of GODEBUG=inittrace=1 (package runtime).
type initTrace struct {
	packages, bytes, allocs int
	ms                      float64
	slow                    []string // what takes 0.05 ms or more
}

func inits(t *testing.T, who measure.Who, argv []string) initTrace {
	t.Helper()
	cmd := who.Command(argv...)
	cmd.Env = append(cmd.Env, "GODEBUG=inittrace=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	var sum initTrace
	for line := range strings.Lines(stderr.String()) {
		sum.add(t, line)
	}
	if sum.packages == 0 {
		t.Fatalf("%q traces no initialisation:\n%s", argv, &stderr)
	}
	return sum
}

// add reads "init PACKAGE @0.1 ms, 0.02 ms clock, 512 bytes, 9 allocs".
func (i *initTrace) add(t *testing.T, line string) {
	t.Helper()
	f := strings.Fields(line)
	if len(f) != 11 || f[0] != "init" {
		t.Fatalf("not understood: %q", line)
	}
	ms, err := strconv.ParseFloat(f[4], 64)
	if err != nil {
		t.Fatalf("not understood: %q", line)
	}
	bytes, _ := strconv.Atoi(f[7])
	allocs, _ := strconv.Atoi(f[9])
	i.packages, i.ms, i.bytes, i.allocs = i.packages+1, i.ms+ms, i.bytes+bytes, i.allocs+allocs
	if ms >= 0.05 {
		i.slow = append(i.slow, strings.TrimSpace(line))
	}
}
