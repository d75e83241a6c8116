// Command sessions measures what many sessions cost that live at once: their
// memory, their idle work, and what a command, a list and an end take among
// them. See bench/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// options are the flags.
type options struct {
	*measure.Bench
	plain, split, rounds, floor int
	net                         string
	idle                        time.Duration
	serve                       bool
}

func main() {
	o := options{Bench: measure.Flags("sessions", "user")}
	flag.IntVar(&o.plain, "n", 500, "how many sessions of one zone live at once")
	flag.StringVar(&o.net, "net", "none", "`network` of the sessions of one zone: none or allowlist")
	flag.IntVar(&o.split, "split", 50, "how many split sessions live beside them")
	flag.IntVar(&o.rounds, "rounds", 60, "how often each command runs, alone and among them")
	flag.DurationVar(&o.idle, "idle", 10*time.Second, "how long all are watched while they do nothing")
	flag.IntVar(&o.floor, "floor", 4096, "MiB of available memory below which the benchmark stops")
	flag.BoolVar(&o.serve, "serve", false, "take samples for another sessions (internal)")
	o.Main(o.main)
}

func (o *options) main() error {
	if o.serve {
		return measure.Serve(os.Stdin, os.Stdout, command)
	}
	if o.plain < 1 || o.split < 1 || o.rounds < 1 || o.idle <= 0 {
		return errors.New("-n, -split, -rounds, -idle: want more than 0")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return o.OnGround(func(g *measure.Ground) error { return o.measure(ctx, g) })
}

func (o *options) measure(ctx context.Context, g *measure.Ground) error {
	self, whos, err := o.Ready(g, "cmd/bawn", "cmd/bawn-egress")
	if err != nil {
		return err
	}
	r := measure.NewReport(fmt.Sprintf("sessions: what %d sessions (--net %s), and %d split ones, cost that live at once", o.plain, o.net, o.split), os.Stdout)
	err = measure.Each(whos, func(who measure.Who) error {
		r.Line("\nas %s", who.Name)
		c := &crowd{who: who, bawn: filepath.Join(g.Dir, "bin", "bawn"), self: self, floor: o.floor}
		return errors.Join(o.user(ctx, r, c), c.clear())
	})
	if err != nil {
		return err
	}
	r.Load("after")
	return o.Write(r)
}

// user makes the crowd of one user, and measures it.
func (o *options) user(ctx context.Context, r *measure.Report, c *crowd) error {
	peers, err := c.peers()
	if err != nil {
		return err
	}
	defer peers.kill()
	alone, err := o.turns(ctx, peers)
	if err != nil {
		return err
	}
	before := available()
	plain, err := c.start(ctx, o.plain, "--net", o.net)
	if err != nil {
		return err
	}
	between := available()
	split, err := c.start(ctx, o.split, "--net", "none", "--split")
	if err != nil {
		return err
	}
	r.Line("available memory that is gone: %.2f MiB a session, %.2f MiB a split one", gone(before, between, o.plain), gone(between, available(), o.split))
	if err := errors.Join(c.memory(r), c.idle(ctx, r, o.idle)); err != nil {
		return err
	}
	among, err := o.turns(ctx, peers)
	if err != nil {
		return err
	}
	writeTurns(r, alone, among)
	writeStarts(r, plain, split)
	return c.end(ctx, r)
}
