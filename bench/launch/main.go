// Command launch measures what it costs to start a program as a guest: bare,
// with bawn, with bubblewrap, and with other sandboxes where they are
// installed; and a command in a session that runs already. All variants take
// turns in one run. See bench/README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bawn-dev/bawn/bench/measure"
)

// options are the flags.
type options struct {
	rounds, warmup                   int
	as, bawn, peers, dockerHost, out string
	serve                            bool
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 100, "how often each variant runs")
	flag.IntVar(&o.warmup, "warmup", 5, "rounds before these that do not count")
	flag.StringVar(&o.as, "as", "root,user", "users to run as: root, user or both")
	flag.StringVar(&o.bawn, "bawn", "", "bawn `program` to measure (default: built from this tree)")
	flag.StringVar(&o.peers, "peers", "", "`directory` that install-peers filled")
	flag.StringVar(&o.dockerHost, "docker", "", "`address` of a Docker daemon (default: the client's own)")
	flag.StringVar(&o.out, "out", "", "directory of the result (default: bench/results)")
	flag.BoolVar(&o.serve, "serve", false, "take samples for another launch (internal)")
	flag.Parse()
	if err := o.main(); err != nil {
		fmt.Fprintf(os.Stderr, "launch: %v\n", err)
		os.Exit(1)
	}
}

func (o *options) main() error {
	if o.serve {
		return serve(os.Stdin, os.Stdout)
	}
	if o.rounds < 1 || o.warmup < 0 {
		return fmt.Errorf("-rounds %d -warmup %d: want at least 1 and 0", o.rounds, o.warmup)
	}
	if o.out == "" {
		root, err := measure.Root()
		if err != nil {
			return err
		}
		o.out = filepath.Join(root, "bench", "results")
	}
	g, err := measure.NewGround()
	if err != nil {
		return err
	}
	return errors.Join(o.measure(g), g.Close())
}

// measure takes all samples and writes the result. It errs when the budget of
// memory is exceeded, which does not depend on how busy the machine is.
func (o *options) measure(g *measure.Ground) error {
	t, err := o.tools(g)
	if err != nil {
		return err
	}
	defer t.close()
	whos, err := g.Whos(o.as)
	if err != nil {
		return err
	}
	r := measure.NewReport("launch: what it costs to start \"true\" as a guest", os.Stdout)
	results, err := o.takeTurns(t, whos)
	if err != nil {
		return err
	}
	r.Load("after")
	r.Line("# %d rounds after %d of warm-up, every variant once per round, in an order that changes from round to round", o.rounds, o.warmup)
	for _, missing := range t.missing {
		r.Line("# %s", missing)
	}
	for _, res := range results {
		res.write(r)
	}
	peaks := writePeaks(r, t, whos)
	path, err := r.Save(o.out, "launch")
	if err == nil {
		fmt.Println("\nlaunch: written to " + path)
	}
	return errors.Join(err, peaks)
}
