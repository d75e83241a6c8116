package measure

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// A Report is the text of one result. What is written to it is shown at once
// and kept for the file.
type Report struct {
	buf bytes.Buffer
	out io.Writer
}

// NewReport starts a report with what has to be known of the machine.
func NewReport(title string, out io.Writer) *Report {
	r := &Report{out: out}
	r.Line("# %s", title)
	r.Line("# %s, %s/%s, %s, kernel %s", time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.Version(), Kernel())
	r.Line("# %s", processor())
	r.Load("before")
	return r
}

// Line adds one line.
func (r *Report) Line(format string, args ...any) {
	fmt.Fprintf(io.MultiWriter(&r.buf, r.out), format+"\n", args...)
}

// Load adds the load averages: with much else going on, only ratios count.
func (r *Report) Load(when string) {
	text := firstLine("/proc/loadavg")
	if fields := strings.Fields(text); len(fields) > 3 {
		text = strings.Join(fields[:3], " ")
	}
	r.Line("# load average %s: %s", when, text)
}

// Table adds rows under a heading. Columns are as wide as they must be; all
// but the first are flush right.
func (r *Report) Table(heading []string, rows [][]string) {
	width := make([]int, len(heading))
	for _, row := range append([][]string{heading}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	for _, row := range append([][]string{heading}, rows...) {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-len([]rune(cell)))
			if i == 0 {
				b.WriteString(cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		r.Line("%s", strings.TrimRight(b.String(), " "))
	}
}

// Compare adds a table of what somebody's variants take, each against the first
// of names, which is bare.
func (r *Report) Compare(who Who, names []string, series map[string]Series) {
	r.Line("\nas %s", who.Name)
	first := series[names[0]]
	var rows [][]string
	for _, name := range names {
		s := series[name]
		rows = append(rows, []string{name, Milliseconds(s.Min()), Milliseconds(s.Median()), Milliseconds(s.P95()), Over(s, first).String(), Ratio(s, first).String()})
	}
	r.Table([]string{"variant", "min ms", "median ms", "p95 ms", "added ms", "× bare"}, rows)
}

// Save writes the report to NAME-KERNEL.txt in dir and returns the path.
func (r *Report) Save(dir, name string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name+"-"+Kernel()+".txt")
	return path, os.WriteFile(path, r.buf.Bytes(), 0o644)
}

// A Limit is a goal of the project.
type Limit struct {
	text string
	met  func(float64) bool
}

// AtMost wants x or less.
func AtMost(x float64) Limit {
	return Limit{fmt.Sprintf("≤ %g", x), func(v float64) bool { return v <= x }}
}

// AtLeast wants x or more.
func AtLeast(x float64) Limit {
	return Limit{fmt.Sprintf("≥ %g", x), func(v float64) bool { return v >= x }}
}

// Goal says whether an estimate meets a limit, or is too wide to tell. It
// fails nothing: a busy machine is no defect.
func (r *Report) Goal(what string, e Estimate, l Limit) {
	if e.N == 0 {
		r.Line("goal: %s %s: not measured", what, l.text)
		return
	}
	verdict := "not met"
	if low, high := l.met(e.Low), l.met(e.High); low && high {
		verdict = "met"
	} else if low || high {
		verdict = "undecided: the interval crosses it"
	}
	r.Line("goal: %s %s: %s, %s", what, l.text, e, verdict)
}

// Milliseconds prints d with three digits behind the point, and 0 as "-".
func Milliseconds(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", float64(d)/1e6)
}

// Kernel returns the kernel's release, or the system's name where /proc does
// not tell.
func Kernel() string {
	if release := firstLine("/proc/sys/kernel/osrelease"); release != "" {
		return release
	}
	return runtime.GOOS
}

func processor() string {
	model := "unknown processor"
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%d cores, %s", runtime.NumCPU(), model)
}

func firstLine(path string) string {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}
