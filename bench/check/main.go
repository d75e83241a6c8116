// Command check compares two programs bawn: that of a change and that of the commit
// before. It measures file calls and the start of a session, by turns in one run,
// beside unsandboxed runs. It fails where the change takes a tenth longer, twice.
// See scripts/bench-check.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/bench/measure"
)

// most is how many times longer a task may take than before.
const most = 1.10

// The programs that take turns.
const (
	bare = iota
	before
	after
	programs
)

type options struct {
	bawn    [programs]string
	rounds  int
	dir, as string
	only    string
	copied  bool
	serve   bool
}

func main() {
	var o options
	flag.StringVar(&o.bawn[before], "before", "", "bawn `program` of the commit before")
	flag.StringVar(&o.bawn[after], "after", "", "bawn `program` of the change")
	flag.IntVar(&o.rounds, "rounds", 15, "how often each task runs")
	flag.StringVar(&o.dir, "dir", "", "`directory` for the workspaces, such as one of a tmpfs (default: one of its own)")
	flag.StringVar(&o.as, "as", "user", "who runs them: root or user")
	flag.StringVar(&o.only, "only", "", "compare only the tasks whose names contain `text`")
	flag.BoolVar(&o.copied, "copy", false, "measure sessions on a copy of the workspace")
	flag.BoolVar(&o.serve, "serve", false, "run tasks for another check in this directory (internal)")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintf(os.Stderr, "check: %v\n", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	switch {
	case o.serve:
		return measure.Serve(os.Stdin, os.Stdout, func(q question) (any, error) { return q.answer() })
	case o.bawn[before] == "" || o.bawn[after] == "" || o.rounds < 1:
		return errors.New("want -before PROGRAM and -after PROGRAM, and -rounds of at least 1")
	}
	g, err := measure.NewGround()
	if err != nil {
		return err
	}
	if o.dir == "" {
		o.dir = g.Dir
	}
	return errors.Join(o.compare(g), g.Close())
}

// compare measures all tasks, and those again that have become slower.
func (o *options) compare(g *measure.Ground) error {
	s, err := o.open(g)
	if err != nil {
		return errors.Join(err, s.close())
	}
	defer s.close()
	tasks := o.chosen()
	for range 2 {
		fmt.Printf("load before %s", load())
		taken, err := s.measure(tasks, o.rounds)
		if err != nil {
			return err
		}
		fmt.Printf(", after %s\n", load())
		if tasks = taken.show(tasks); len(tasks) == 0 {
			return nil
		}
	}
	return fmt.Errorf("slower than before by more than a tenth, twice: %s", strings.Join(tasks, "; "))
}

// load is the average of the last minute, or "unknown".
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	first, _, ok := strings.Cut(string(text), " ")
	if err != nil || !ok {
		return "unknown"
	}
	return first
}

func (o *options) chosen() []string {
	return slices.DeleteFunc(append([]string{start}, names()...), func(n string) bool { return !strings.Contains(n, o.only) })
}

// start is the one task that runs outside of the sessions.
const start = "start of a session"

// A stage is what the tasks run on.
type stage struct {
	whos  [programs]measure.Who
	bawn  [programs]string
	flags []string
	peers [programs]*measure.Peer
}

// open starts a session of each program, and a driver without one.
func (o *options) open(g *measure.Ground) (s *stage, err error) {
	s = &stage{bawn: o.bawn, flags: []string{"run", "-q", "--net", "none"}}
	if o.copied {
		s.flags = append(s.flags, "--copy")
	}
	self, err := g.Self()
	if err != nil {
		return s, err
	}
	whos, err := g.Whos(o.as)
	if err != nil {
		return s, err
	}
	for p := range programs {
		who := whos[0]
		who.Workspace = filepath.Join(o.dir, fmt.Sprintf("workspace-%d-%d", os.Getpid(), p))
		if err := who.Mkdir(who.Workspace); err != nil {
			return s, err
		}
		s.whos[p] = who
		if s.peers[p], err = measure.StartPeer(who.Command(s.argv(p, self, "-serve")...)); err != nil {
			return s, err
		}
	}
	return s, nil
}

// argv is how a program starts a command.
func (s *stage) argv(p int, command ...string) []string {
	if p == bare {
		return command
	}
	return slices.Concat([]string{s.bawn[p]}, s.flags, []string{"--"}, command)
}

func (s *stage) close() error {
	var errs []error
	for p := range programs {
		if s.peers[p] != nil {
			errs = append(errs, s.peers[p].Close())
		}
		if dir := s.whos[p].Workspace; dir != "" {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// results are the samples of each task.
type results map[string]*[programs]measure.Series

// measure takes the samples. The first round warms up.
func (s *stage) measure(tasks []string, rounds int) (results, error) {
	r := results{}
	for _, t := range tasks {
		r[t] = new([programs]measure.Series)
	}
	for n := range rounds + 1 {
		for _, p := range measure.Order(n, programs) {
			got, err := s.round(p, tasks)
			if err != nil {
				return nil, err
			}
			for _, t := range tasks {
				if n > 0 {
					r[t][p] = append(r[t][p], got[t])
				}
			}
		}
	}
	return r, nil
}

// round runs the tasks with one program.
func (s *stage) round(p int, tasks []string) (map[string]measure.Sample, error) {
	got := map[string]measure.Sample{}
	if err := s.peers[p].Ask(question{Tasks: tasks}, &got); err != nil {
		return nil, err
	}
	if !slices.Contains(tasks, start) {
		return got, nil
	}
	cmd := s.whos[p].Command(s.argv(p, "/bin/true")...)
	cmd.Stderr = os.Stderr
	sample, err := measure.Run(cmd)
	got[start] = sample
	return got, err
}

// show prints the results, and returns the tasks that take too long.
func (r results) show(tasks []string) (slow []string) {
	fmt.Printf("%-26s %9s %9s %9s  %-18s %s\n", "least and ratios", "bare", "before", "after", "after/before", "after/bare")
	for _, t := range tasks {
		s := r[t]
		change := measure.Ratio(s[after], s[before])
		least := float64(s[after].Min()) / float64(s[before].Min())
		fmt.Printf("%-26s %9s %9s %9s  %-18s %s, least %.2f\n", t, measure.Milliseconds(s[bare].Min()), measure.Milliseconds(s[before].Min()), measure.Milliseconds(s[after].Min()),
			change, measure.Ratio(s[after], s[bare]), float64(s[after].Min())/float64(s[bare].Min()))
		if change.Median > most && change.Low > 1 && least > 1 {
			slow = append(slow, t)
		}
	}
	return slow
}
