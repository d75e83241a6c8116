// Command check compares the programs of a change with those of the commit before. It
// measures file calls, connections, starts of sessions and decisions, by turns in one
// run, beside unsandboxed runs. It fails where the change takes a tenth longer, twice.
// See scripts/bench-check.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
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
	dirs    [programs]string
	rounds  int
	dir, as string
	only    string
	serve   bool
}

func main() {
	var o options
	flag.StringVar(&o.dirs[before], "before", "", "`directory` of the commit before: its programs, policy.test, and policy, where that runs")
	flag.StringVar(&o.dirs[after], "after", "", "`directory` of the change")
	flag.IntVar(&o.rounds, "rounds", 15, "how often each task runs")
	flag.StringVar(&o.dir, "dir", "", "`directory` for the workspaces, such as one of a tmpfs (default: one of its own)")
	flag.StringVar(&o.as, "as", "user", "who runs them: root or user")
	flag.StringVar(&o.only, "only", "", "compare only the tasks whose names contain `text`")
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
	case o.dirs[before] == "" || o.dirs[after] == "" || o.rounds < 1:
		return errors.New("want -before DIRECTORY and -after DIRECTORY, and -rounds of at least 1")
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

func (o *options) chosen() (list []string) {
	for _, t := range outsiders {
		list = append(list, t.name)
	}
	return slices.DeleteFunc(append(list, names()...), func(n string) bool { return !strings.Contains(n, o.only) })
}

// A stage is what the tasks run on.
type stage struct {
	whos    [programs]measure.Who
	dirs    [programs]string
	peers   [programs]*measure.Peer
	greeter net.Listener
	port    string // of greeter
}

// open starts a session of each program, and a driver without one.
func (o *options) open(g *measure.Ground) (s *stage, err error) {
	s = &stage{dirs: o.dirs}
	if s.greeter, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return s, err
	}
	go greet(s.greeter)
	if _, s.port, err = net.SplitHostPort(s.greeter.Addr().String()); err != nil {
		return s, err
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
		if s.peers[p], err = measure.StartPeer(who.Command(s.argv(p, []string{"--host-port", s.port}, self, "-serve")...)); err != nil {
			return s, err
		}
	}
	return s, nil
}

// argv is how a program starts a command.
func (s *stage) argv(p int, flags []string, command ...string) []string {
	if p == bare {
		return command
	}
	return slices.Concat([]string{filepath.Join(s.dirs[p], "bawn"), "run", "-q"}, flags, []string{"--"}, command)
}

func (s *stage) close() error {
	var errs []error
	if s.greeter != nil {
		errs = append(errs, s.greeter.Close())
	}
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
				if sample, ok := got[t]; ok && n > 0 {
					r[t][p] = append(r[t][p], sample)
				}
			}
		}
	}
	return r, nil
}

// round runs the tasks with one program.
func (s *stage) round(p int, tasks []string) (map[string]measure.Sample, error) {
	got := map[string]measure.Sample{}
	if err := s.peers[p].Ask(question{Tasks: tasks, Port: s.port}, &got); err != nil {
		return nil, err
	}
	for _, t := range outsiders {
		if !slices.Contains(tasks, t.name) || t.name == decide && p == bare {
			continue
		}
		sample, err := t.take(s, p)
		if err != nil {
			return nil, err
		}
		got[t.name] = sample
	}
	return got, nil
}

// show prints the results, and returns the tasks that take too long.
func (r results) show(tasks []string) (slow []string) {
	fmt.Printf("%-26s %9s %9s %9s  %-18s %s\n", "least and ratios", "bare", "before", "after", "after/before", "after/bare")
	for _, t := range tasks {
		s := r[t]
		change := measure.Ratio(s[after], s[before])
		least := float64(s[after].Min()) / float64(s[before].Min())
		fmt.Printf("%-26s %9s %9s %9s  %-18s %s\n", t, measure.Milliseconds(s[bare].Min()), measure.Milliseconds(s[before].Min()), measure.Milliseconds(s[after].Min()),
			change, measure.Ratio(s[after], s[bare]))
		if change.Median > most && change.Low > 1 && least > 1 {
			slow = append(slow, t)
		}
	}
	return slow
}
