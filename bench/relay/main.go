// Command relay measures a shell command that is judged and executed in the
// other zone of a split session, against the same command unsandboxed. It also
// measures how many decisions a second are made with their events on the disk.
// See bench/README.md.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bawn-dev/bawn/bench/measure"
)

type options struct {
	*measure.Bench
	rounds, warmup, deciders, decisions int
	serve                               bool
}

func main() {
	o := options{Bench: measure.Flags("relay", "root,user")}
	flag.IntVar(&o.rounds, "rounds", 200, "how often each variant runs")
	flag.IntVar(&o.warmup, "warmup", 10, "rounds before these that do not count")
	flag.IntVar(&o.deciders, "deciders", 256, "how many ask at once where decisions are counted")
	flag.IntVar(&o.decisions, "decisions", 60_000, "how many decisions are counted")
	flag.BoolVar(&o.serve, "serve", false, "take samples for another relay (internal)")
	o.Main(o.main)
}

func (o *options) main() error {
	if o.serve {
		return serve(os.Stdin, os.Stdout)
	}
	if o.rounds < 1 || o.warmup < 0 || o.deciders < 1 || o.decisions < o.deciders {
		return errors.New("-rounds, -warmup, -deciders, -decisions: want numbers above 0, and more decisions than deciders")
	}
	return o.OnGround(o.measure)
}

// The variants of one user.
const (
	bare      = "sh -c, bare"
	fresh     = "sh -c in a split session, through the shim"
	connected = "sh -c in a split session, from a process that runs"
)

func (o *options) measure(g *measure.Ground) error {
	self, whos, err := o.Ready(g, "cmd/bawn", "cmd/bawnd")
	if err != nil {
		return err
	}
	r := measure.NewReport("relay: what it costs to have a command judged, and executed in another zone", os.Stdout)
	if err := measure.Each(whos, func(who measure.Who) error { return o.user(r, who, self, filepath.Join(g.Dir, "bin", "bawn")) }); err != nil {
		return err
	}
	if err := o.throughput(r, g.Dir); err != nil {
		return err
	}
	r.Load("after")
	return o.Write(r)
}

// user takes turns between a process outside and one in the agent's zone.
func (o *options) user(r *measure.Report, who measure.Who, self, bawn string) error {
	outside, err := measure.StartPeer(who.Command(self, "-serve"))
	if err != nil {
		return err
	}
	inside, err := measure.StartPeer(who.Command(bawn, "run", "--split", "--net", "none", "--quiet", "--", self, "-serve"))
	if err != nil {
		return errors.Join(err, outside.Close())
	}
	series := map[string]measure.Series{}
	for n := range o.warmup + o.rounds {
		if err = round(n, outside, inside, series, n >= o.warmup); err != nil {
			break
		}
	}
	if err := errors.Join(err, inside.Close(), outside.Close()); err != nil {
		return err
	}
	write(r, who, series)
	return nil
}

func round(n int, outside, inside *measure.Peer, series map[string]measure.Series, counts bool) error {
	variants := []struct {
		name string
		peer *measure.Peer
	}{{bare, outside}, {fresh, inside}, {connected, inside}}
	for _, i := range measure.Order(n, len(variants)) {
		v := variants[i]
		var s measure.Sample
		if err := v.peer.Ask(json.RawMessage(fmt.Sprintf("%q", v.name)), &s); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		if counts {
			series[v.name] = append(series[v.name], s)
		}
	}
	return nil
}

func write(r *measure.Report, who measure.Who, series map[string]measure.Series) {
	r.Compare(who, []string{bare, fresh, connected}, series)
	r.Goal("added by a shell of its own, ms", measure.Over(series[fresh], series[bare]), measure.AtMost(5))
	r.Goal("added from a process that runs, ms", measure.Over(series[connected], series[bare]), measure.AtMost(1.5))
}
