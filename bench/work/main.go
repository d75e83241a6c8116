// Command work measures what ordinary work costs a guest: the same tasks
// unsandboxed and in a session of bawn, by turns in one run, without and with
// the start of the session. See bench/README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn/bench/measure"
)

// options are the flags.
type options struct {
	*measure.Bench
	rounds, cold int
	bawn, only   string
	serve, once  string
	beside       bool
	docker       string
}

func main() {
	o := options{Bench: measure.Flags("work", "user")}
	flag.IntVar(&o.rounds, "rounds", 20, "how often each task runs")
	flag.IntVar(&o.cold, "cold", 3, "how often those run that take long")
	flag.StringVar(&o.bawn, "bawn", "", "bawn `program` to measure (default: built from this tree)")
	flag.StringVar(&o.only, "only", "", "run only the tasks whose names contain `text`")
	flag.BoolVar(&o.beside, "beside", false, "run the tasks on a copy, beside a live session, bwrap, a git worktree and a Docker volume")
	flag.StringVar(&o.docker, "docker", "", "`address` of an engine for -beside, such as unix:///run/docker.sock")
	flag.StringVar(&o.serve, "serve", "", "run tasks for another work in this `workspace` (internal)")
	flag.StringVar(&o.once, "once", "", "run one `task` in the current directory (internal)")
	o.Main(o.main)
}

func (o *options) main() error {
	switch {
	case o.serve != "":
		return serve(o.serve, os.Stdin, os.Stdout)
	case o.once != "":
		return once(o.once)
	case o.rounds < 1 || o.cold < 1:
		return fmt.Errorf("-rounds %d -cold %d: want at least 1", o.rounds, o.cold)
	}
	return o.OnGround(o.measure)
}

// measure takes all samples and writes the result.
func (o *options) measure(g *measure.Ground) error {
	self, err := g.Self()
	if err != nil {
		return err
	}
	program := o.bawn
	if program == "" {
		program, err = g.Build("cmd/bawn")
	} else {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return err
	}
	whos, err := o.Users(g)
	if err != nil {
		return err
	}
	if o.beside {
		return o.measureBeside(self, program, whos)
	}
	r := measure.NewReport("work: ordinary work as a guest, against bare", os.Stdout)
	for _, who := range whos {
		res := &run{who: who, self: self, bawn: program, places: map[string]*place{}}
		if err := errors.Join(o.takeTurns(res), res.close()); err != nil {
			return err
		}
		res.write(r)
	}
	r.Load("after")
	fmt.Println()
	return o.Write(r)
}

// chosen are the tasks that -only and the installed programs leave.
func (o *options) chosen() (list []task, missing []string) {
	for _, t := range tasks {
		switch {
		case !strings.Contains(t.name, o.only):
		case !t.installed():
			missing = append(missing, t.name+": "+t.argv[0]+" is not installed")
		default:
			list = append(list, t)
		}
	}
	return list, missing
}
