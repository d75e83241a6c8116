// Command launch measures what it costs to start a program as a guest:
// unsandboxed, with bawn, with bubblewrap, and with other sandboxes that are
// installed. It also measures a command in a running session. All variants take
// turns in one run. See bench/README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/bawn-dev/bawn/bench/measure"
)

// options are the flags.
type options struct {
	*measure.Bench
	rounds, warmup                  int
	bawn, before, peers, dockerHost string
	serve                           bool
}

func main() {
	o := options{Bench: measure.Flags("launch", "root,user")}
	flag.IntVar(&o.rounds, "rounds", 100, "how often each variant runs")
	flag.IntVar(&o.warmup, "warmup", 5, "rounds before these that do not count")
	flag.StringVar(&o.bawn, "bawn", "", "bawn `program` to measure (default: built from this tree)")
	flag.StringVar(&o.before, "before", "", "another bawn `program` to measure beside it, such as that of an earlier commit")
	flag.StringVar(&o.peers, "peers", "", "`directory` that install-peers filled")
	flag.StringVar(&o.dockerHost, "docker", "", "`address` of a Docker daemon (default: the client's own)")
	flag.BoolVar(&o.serve, "serve", false, "take samples for another launch (internal)")
	o.Main(o.main)
}

func (o *options) main() error {
	if o.serve {
		return serve(os.Stdin, os.Stdout)
	}
	if o.rounds < 1 || o.warmup < 0 {
		return fmt.Errorf("-rounds %d -warmup %d: want at least 1 and 0", o.rounds, o.warmup)
	}
	return o.OnGround(o.measure)
}

// measure takes all samples and writes the result. It errs when the budget of
// memory is exceeded, which does not depend on how busy the machine is.
func (o *options) measure(g *measure.Ground) error {
	t, err := o.tools(g)
	if err != nil {
		return err
	}
	defer t.close()
	whos, err := o.Users(g)
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
	fmt.Println()
	return errors.Join(o.Write(r), peaks)
}
