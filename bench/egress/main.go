// Command egress measures what a network by name costs a guest: bare loopback,
// bawn, and other ways to give a network namespace a network without
// privileges, where they are installed. All of them take turns in one run, in a
// network namespace that is made for it. See bench/README.md.
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
	*measure.Bench
	rounds, warmup int
	quick          bool
	bawn, peers    string
	role, dir      string
	uid            int
}

func main() {
	o := options{Bench: measure.Flags("egress", "")}
	flag.IntVar(&o.rounds, "rounds", 15, "how often each variant is measured")
	flag.IntVar(&o.warmup, "warmup", 1, "rounds before these that do not count")
	flag.BoolVar(&o.quick, "quick", false, "fewer rounds and less in each")
	flag.StringVar(&o.bawn, "bawn", "", "`directory` of bawn and bawnd to measure (default: built from this tree)")
	flag.StringVar(&o.peers, "peers", "", "`directory` that bench/launch/install-peers filled")
	flag.StringVar(&o.role, "role", "", "what this process does in the measurement (internal)")
	flag.StringVar(&o.dir, "dir", "", "where the measurement happens (internal)")
	flag.IntVar(&o.uid, "uid", 0, "user that the measurement runs as (internal)")
	o.Main(o.main)
}

func (o *options) main() error {
	if o.role != "" {
		return o.play()
	}
	if o.quick {
		o.rounds = min(o.rounds, 7)
	}
	if o.rounds < 1 || o.warmup < 0 {
		return fmt.Errorf("-rounds %d -warmup %d: want at least 1 and 0", o.rounds, o.warmup)
	}
	return o.OnGround(o.measure)
}

// play is what the processes do that the measurement starts.
func (o *options) play() error {
	switch o.role {
	case roleInside:
		return inside(o.dir, o.uid)
	case roleTurns:
		return measure.Serve(os.Stdin, os.Stdout, (&turns{}).answer)
	case roleServer:
		return measure.Serve(os.Stdin, os.Stdout, startServer)
	case roleProxy:
		return measure.Serve(os.Stdin, os.Stdout, startProxy)
	case roleClient:
		return measure.Serve(os.Stdin, os.Stdout, take)
	}
	return fmt.Errorf("-role %q: no such role", o.role)
}

// What the processes of a measurement do.
const (
	roleInside = "inside" // makes the network, then takes turns
	roleTurns  = "turns"
	roleServer = "server"
	roleProxy  = "proxy"
	roleClient = "client"
)

// measure takes all samples and writes the result.
func (o *options) measure(g *measure.Ground) error {
	q, whos, err := o.prepare(g)
	if err != nil {
		return err
	}
	r := measure.NewReport("egress: what a network by name costs a guest", os.Stdout)
	peer, err := measure.StartPeer(namespaced(q.Self, g.Dir, whos[0]))
	if err != nil {
		return err
	}
	defer peer.Kill() // all that is left in the namespace ends with it
	var missing []string
	if err := peer.Ask(question{Setup: q}, &missing); err != nil {
		return err
	}
	all := results{}
	for n := range o.warmup + o.rounds {
		var got results
		if err := peer.Ask(question{Round: n}, &got); err != nil {
			return err
		}
		if n >= o.warmup {
			all.add(got)
		}
	}
	r.Load("after")
	r.Line("# %d rounds after %d of warm-up, everything once per round, in an order that changes from round to round", o.rounds, o.warmup)
	for _, m := range missing {
		r.Line("# %s", m)
	}
	write(r, all, q.Load)
	fmt.Println()
	return o.Write(r)
}

// prepare builds what is measured.
func (o *options) prepare(g *measure.Ground) (*setup, []measure.Who, error) {
	q := &setup{Dir: g.Dir, Load: fullLoad}
	if o.quick {
		q.Load = quickLoad
	}
	var errs [5]error
	q.Self, errs[0] = g.Self()
	if o.bawn == "" {
		q.Bawn, errs[1] = g.Build("cmd/bawn")
		_, errs[2] = g.Build("cmd/bawnd")
		_, errs[3] = g.Build("cmd/bawn-egress")
	} else if q.Bawn, errs[1] = filepath.Abs(filepath.Join(o.bawn, "bawn")); errs[1] == nil {
		_, errs[2] = os.Stat(q.Bawn)
	}
	if o.peers != "" {
		q.Peers, errs[4] = filepath.Abs(o.peers)
	}
	whos, err := g.Whos("user")
	if err := errors.Join(append(errs[:], err)...); err != nil {
		return nil, nil, err
	}
	q.Who = whos[0]
	return q, whos, makeCertificates(g.Dir)
}
