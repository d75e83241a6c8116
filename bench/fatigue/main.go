// Command fatigue counts how often coding agents ask in whole tasks. The agents
// are real, their model is a script. They run without Bawn and in each way in
// which Bawn runs them. Each task is run once as it is, and once with an attack
// in it that Bawn has to stop. See bench/README.md.
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
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/clients"
	"github.com/bawn-dev/bawn/internal/testenv/world"
)

// options are the flags.
type options struct {
	*measure.Bench
	agents, tasks, frontends, variants string
	installed, with                    string
	quick, keep, noisy                 bool
}

// agentNames are tried without -agents.
var agentNames = []string{"claude", "codex", "opencode", "gemini", "pi"}

func main() {
	flag.Usage = usage
	o := options{Bench: measure.Flags("fatigue", "")}
	flag.StringVar(&o.agents, "agents", "", "run only these agents, separated by commas (default: "+strings.Join(agentNames, ",")+")")
	flag.StringVar(&o.tasks, "tasks", "", "run only the tasks of which one of these words, separated by commas, is a part of the name")
	flag.StringVar(&o.frontends, "frontends", "", "run only these frontends, separated by commas (default: "+strings.Join(frontendNames(), ",")+"; also "+asking.name+")")
	flag.StringVar(&o.variants, "variants", "", "run only these variants, separated by commas (default: "+strings.Join(variants, ",")+")")
	flag.StringVar(&o.installed, "installed", clients.Installed(), "`directory` where test/agent/install has put the agents (default: $"+testenv.AgentsVariable+")")
	flag.StringVar(&o.with, "with", "", "count the results of this `file` of JSON, too: of an earlier run, with other agents or tasks")
	flag.BoolVar(&o.quick, "quick", false, "run Claude Code and Codex only, each with a third of the tasks")
	flag.BoolVar(&o.noisy, "noisy", false, "leave the agents' telemetry and updates on, which the tests' variables switch off")
	flag.BoolVar(&o.keep, "v", false, "print of each run what was asked, denied and missing")
	o.Main(o.main)
}

func usage() {
	fmt.Fprint(flag.CommandLine.Output(), `usage: BAWN_TEST_AGENTS=$(test/agent/install) go run ./bench/fatigue [flags]

Runs coding agents through whole tasks with a scripted model and a scripted human,
in a network of namespaces, and counts questions, dead ends and attacks stopped.

`)
	flag.PrintDefaults()
}

// main enters the world, and measures on its machine.
func (o *options) main() error {
	var code int
	var err error
	switch world.Role() {
	case world.Machine:
		return o.measure()
	case world.First, world.Outside:
		code, err = part()
	default:
		if _, err := o.plan(); err != nil {
			return err
		}
		code, err = enter(os.Args[1:])
	}
	if err == nil && code != 0 {
		os.Exit(code)
	}
	return err
}

// A plan is what the flags choose.
type plan struct {
	agents, frontends, variants []string
	tasks                       []*task
}

func (o *options) plan() (p plan, err error) {
	if o.installed == "" {
		return p, fmt.Errorf("no agents are installed: want -installed, or $%s from test/agent/install", testenv.AgentsVariable)
	}
	all, err := tasks()
	if err != nil {
		return p, err
	}
	among := agentNames
	if o.quick {
		among = []string{"claude", "codex"}
	}
	var errs [3]error
	p.agents, errs[0] = chosen("-agents", o.agents, every(), among)
	p.frontends, errs[1] = chosen("-frontends", o.frontends, append(frontendNames(), asking.name), frontendNames())
	p.variants, errs[2] = chosen("-variants", o.variants, variants, variants)
	for i, t := range all {
		named := o.tasks == "" || slices.ContainsFunc(strings.Split(o.tasks, ","), func(word string) bool { return strings.Contains(t.Name, word) })
		if named && (!o.quick || o.tasks != "" || i%3 == 0) {
			p.tasks = append(p.tasks, t)
		}
	}
	if len(p.tasks) == 0 {
		return p, fmt.Errorf("-tasks %q: no task has such a name", o.tasks)
	}
	return p, errors.Join(errs[:]...)
}

// every are the names of all agents that the tests can drive.
func every() (names []string) {
	for _, c := range clients.All() {
		names = append(names, c.Name)
	}
	return names
}

// chosen are the names that a flag gives, or else a default.
func chosen(flag, value string, known, among []string) ([]string, error) {
	if value == "" {
		return among, nil
	}
	list := strings.Split(value, ",")
	for _, name := range list {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%s %q: want some of %q", flag, name, known)
		}
	}
	return list, nil
}

// measure runs all that is planned and writes the result.
func (o *options) measure() error {
	p, err := o.plan()
	if err != nil {
		return err
	}
	b, err := newBench(world.Dir(), o.installed)
	if err != nil {
		return err
	}
	b.noisy = o.noisy
	all, err := readJSON(o.with)
	if err != nil {
		return err
	}
	earlier := len(all)
	for _, t := range p.tasks {
		for _, agent := range p.agents {
			for _, frontend := range p.frontends {
				for _, variant := range p.variants {
					r := b.try(agent, frontend, variant, t)
					fmt.Println(r.line())
					if o.keep {
						fmt.Print(r.text())
					}
					all = append(all, r)
				}
			}
		}
	}
	return o.write(all, earlier)
}

// write prints the tables and keeps them, beside the results as JSON. The first
// ones are of earlier runs.
func (o *options) write(all []result, earlier int) error {
	if o.Out == "" {
		root, err := measure.Root()
		if err != nil {
			return err
		}
		o.Out = filepath.Join(root, "bench", "results")
	}
	for i := range all {
		all[i] = all[i].plain()
	}
	r := measure.NewReport("fatigue: what a human is asked in whole tasks", os.Stdout)
	if earlier > 0 {
		r.Line("# %d of %d results are of earlier runs (-with), perhaps with another build", earlier, len(all))
	}
	tables(r, all)
	return errors.Join(o.Write(r), writeJSON(filepath.Join(o.Out, "fatigue-"+measure.Kernel()+".json"), all))
}
