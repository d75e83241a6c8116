// Command providers measures what a session costs on each provider, against the
// engine's own command line. It measures the start, a command in a running
// session, a build of 200 MB and work with many small files. All ways take
// turns in one run. See bench/README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bawn-dev/bawn/bench/measure"
	"github.com/bawn-dev/bawn/internal/launch"
)

// options are the flags.
type options struct {
	*measure.Bench
	rounds, work, warmup int
	only                 string
	task, dir            string
}

const usage = `usage: go run ./bench/providers [flags]

  go run ./bench/providers                          everything that this machine has, some minutes
  go run ./bench/providers -only docker -work 0     the start and commands on one provider
  go run ./bench/providers -rounds 5 -work 1        quickly, to see whether it works
  BAWN_TEST_RUNSC=bin/runsc go run ./bench/providers -only gvisor,native

Root is needed for docker and gvisor; what is not here is left out and said.

`

func main() {
	args, code := launch.AsPart(os.Args)
	if args == nil { // the first process of a sandbox that was made here
		os.Exit(code)
	}
	o := options{Bench: measure.Flags("providers", "")}
	flag.IntVar(&o.rounds, "rounds", 30, "how often each way starts \"true\"")
	flag.IntVar(&o.work, "work", 5, "how often each way builds and works with files")
	flag.IntVar(&o.warmup, "warmup", 2, "rounds before these that do not count")
	flag.StringVar(&o.only, "only", "native,bwrap,docker,gvisor", "providers to measure, separated by commas")
	flag.StringVar(&o.task, "task", "", "do the work of that name and print a sample (internal)")
	flag.StringVar(&o.dir, "dir", "", "where (internal)")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	o.Main(o.main)
}

func (o *options) main() error {
	if o.task != "" {
		return doTask(o.task, o.dir, os.Stdout)
	}
	if o.rounds < 1 || o.work < 0 || o.warmup < 0 {
		return fmt.Errorf("-rounds %d -work %d -warmup %d: want at least 1, 0 and 0", o.rounds, o.work, o.warmup)
	}
	return o.OnGround(o.measure)
}

// measure takes all samples and writes the results.
func (o *options) measure(g *measure.Ground) error {
	f, err := newField(g)
	if err != nil {
		return err
	}
	list, missing, err := f.providers(o.only)
	if err != nil {
		return errors.Join(err, f.close())
	}
	r := measure.NewReport("providers: what a session costs on each, against the engine's own command line", os.Stdout)
	for _, m := range missing {
		r.Line("# left out: %s", m)
	}
	results, err := o.takeTurns(list)
	if err := errors.Join(err, f.close()); err != nil {
		return err
	}
	r.Load("after")
	r.Line("# %d rounds of starts and %d of work, after %d of warm-up; every way once per round, in an order that changes", o.rounds, o.work, o.warmup)
	report(r, list, results)
	fmt.Println()
	if err := o.Write(r); err != nil {
		return err
	}
	return saveJSON(filepath.Join(o.Out, "providers-"+measure.Kernel()+".json"), results)
}
