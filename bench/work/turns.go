package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/bawn-dev/bawn/bench/measure"
)

// The four ways each task runs: by a driver that is there already, and as a
// process of its own, which for a guest includes the session.
const (
	bare = iota
	guest
	bareStart
	guestStart
	ways
)

// A place is a workspace with its two drivers.
type place struct {
	who     measure.Who
	drivers [2]*measure.Peer // bare and guest
}

// A run is all that happens as one user.
type run struct {
	who        measure.Who
	self, bawn string
	places     map[string]*place
	series     map[string]*[ways]measure.Series
	tasks      []task
	missing    []string
}

func (o *options) takeTurns(r *run) error {
	r.tasks, r.missing = o.chosen()
	r.series = map[string]*[ways]measure.Series{}
	for _, t := range r.tasks {
		r.series[t.name] = new([ways]measure.Series)
		if err := r.open(t.where); err != nil {
			return err
		}
	}
	for n := range max(o.rounds, o.cold) + 1 { // the first one warms up
		for _, i := range measure.Order(n, len(r.tasks)) {
			if t := r.tasks[i]; n <= t.rounds(o) {
				if err := r.round(t, n); err != nil {
					return fmt.Errorf("as %s, %s: %w", r.who.Name, t.name, err)
				}
			}
		}
	}
	return nil
}

// open makes a workspace and starts its drivers.
func (r *run) open(name string) error {
	if r.places[name] != nil {
		return nil
	}
	who, err := r.who.In(name)
	if err != nil {
		return err
	}
	p := &place{who: who}
	r.places[name] = p
	serve := []string{r.self, "-serve", who.Workspace}
	for way, argv := range [][]string{serve, append([]string{r.bawn, "run", "-q", "--net", "none", "--"}, serve...)} {
		if way == guest {
			if err := p.drivers[bare].Ask(question{Fixture: name}, nil); err != nil {
				return err
			}
		}
		if p.drivers[way], err = measure.StartPeer(who.Command(argv...)); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) close() error {
	var err error
	for _, p := range r.places {
		for _, d := range p.drivers {
			if d != nil {
				err = errors.Join(err, d.Close())
			}
		}
	}
	return err
}

// round runs one task in each way.
func (r *run) round(t task, n int) error {
	p := r.places[t.where]
	for _, way := range measure.Order(n, ways) {
		if err := p.drivers[bare].Ask(question{Prepare: t.name}, nil); err != nil {
			return err
		}
		s, err := r.sample(t, p, way)
		if err != nil {
			return err
		}
		if n > 0 {
			r.series[t.name][way] = append(r.series[t.name][way], s)
		}
	}
	return nil
}

func (r *run) sample(t task, p *place, way int) (s measure.Sample, err error) {
	switch way {
	case bare:
		err = p.drivers[bare].Ask(question{Task: t.name}, &s)
		return s, err
	case guest: // the peer is bawn, the driver its child
		before := p.drivers[guest].CPU()
		err = p.drivers[guest].Ask(question{Task: t.name}, &s)
		s.CPU += max(0, p.drivers[guest].CPU()-before)
		return s, err
	}
	var argv []string
	if way == guestStart {
		argv = []string{r.bawn, "run", "-q", "--net", "none"}
		for _, v := range environ(p.who.Workspace) {
			argv = append(argv, "--env", v)
		}
		argv = append(argv, "--")
	}
	if t.argv != nil {
		argv = append(argv, t.argv...)
	} else {
		argv = append(argv, r.self, "-once", t.name)
	}
	cmd := p.who.Command(argv...)
	cmd.Env, cmd.Stderr = append(cmd.Env, environ(p.who.Workspace)...), os.Stderr
	return measure.Run(cmd)
}

// write adds the tables of one user and how it stands to the goals.
func (r *run) write(w *measure.Report) {
	w.Line("# every task in four ways per round, in an order that changes from round to round")
	for _, m := range r.missing {
		w.Line("# %s", m)
	}
	for _, part := range []struct {
		title       string
		bare, guest int
	}{{"in a session that runs already", bare, guest}, {"with the start of the process and, for the guest, of the session", bareStart, guestStart}} {
		w.Line("\nas %s, %s", r.who.Name, part.title)
		var rows [][]string
		for _, t := range r.tasks {
			b, g := r.series[t.name][part.bare], r.series[t.name][part.guest]
			rows = append(rows, []string{
				t.name, fmt.Sprint(len(b)), measure.Milliseconds(b.Min()), measure.Milliseconds(g.Min()), measure.Milliseconds(b.Median()), measure.Milliseconds(g.Median()),
				measure.Milliseconds(b.CPU()), measure.Milliseconds(g.CPU()), measure.CPURatio(g, b).String(), measure.Ratio(g, b).String(),
			})
		}
		w.Table([]string{"task", "n", "bare min", "bawn min", "bare ms", "bawn ms", "bare CPU", "bawn CPU", "CPU × bare", "× bare"}, rows)
	}
	for _, t := range r.tasks {
		if t.goal > 0 {
			b, g := r.series[t.name][bare], r.series[t.name][guest]
			w.Goal(t.name+", times bare", measure.Ratio(g, b), measure.AtMost(t.goal))
			w.Goal(t.name+", times bare by processor time", measure.CPURatio(g, b), measure.AtMost(t.goal))
		}
	}
}
