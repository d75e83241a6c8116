package main

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// A question is the first one with Setup, and then one for each round.
type question struct {
	Setup *setup `json:"setup,omitempty"`
	Round int    `json:"round"`
}

// A setup is what the measurement works with.
type setup struct {
	Dir, Self, Bawn string
	Peers           string // directory of srt, or ""
	Who             measure.Who
	Load            load
}

// A load is how much is done in one round.
type load struct {
	Bytes, Connections, Parallel, Requests int64
	Starts                                 int
}

var (
	fullLoad  = load{Bytes: 1 << 30, Connections: 300, Parallel: 2000, Requests: 2000, Starts: 9}
	quickLoad = load{Bytes: 256 << 20, Connections: 150, Parallel: 1000, Requests: 1000, Starts: 5}
)

// results are the series of each kind and variant, and what could not be
// measured.
type results struct {
	Series map[string]map[string]measure.Series `json:"series"`
	Notes  []string                             `json:"notes,omitempty"`
}

func (r *results) put(kind, variant string, s ...measure.Sample) {
	if r.Series == nil {
		r.Series = map[string]map[string]measure.Series{}
	}
	if r.Series[kind] == nil {
		r.Series[kind] = map[string]measure.Series{}
	}
	r.Series[kind][variant] = append(r.Series[kind][variant], s...)
}

func (r *results) add(more results) {
	r.Notes = append(r.Notes, more.Notes...)
	for kind, variants := range more.Series {
		for variant, s := range variants {
			r.put(kind, variant, s...)
		}
	}
}

// turns is the process that asks every variant in turn.
type turns struct {
	setup    *setup
	variants []*variant
	starts   []*start
	servers  []*measure.Peer
}

func (t *turns) answer(q question) (any, error) {
	if q.Setup == nil {
		return t.round(q.Round)
	}
	t.setup = q.Setup
	if err := t.serve(); err != nil {
		return nil, err
	}
	return t.open()
}

// serve starts the servers, each a process of its own.
func (t *turns) serve() error {
	for _, role := range []string{roleServer, roleProxy} {
		p, err := measure.StartPeer(t.command(t.setup.Self, "-role", role))
		if err != nil {
			return err
		}
		t.servers = append(t.servers, p)
		if err := p.Ask(t.setup.Dir, nil); err != nil {
			return fmt.Errorf("start the %s: %w", role, err)
		}
	}
	return nil
}

// command prepares a program that trusts the servers.
func (t *turns) command(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = t.setup.Who.Workspace, append(t.setup.Who.Environ(), "SSL_CERT_FILE="+certFile(t.setup.Dir))
	return cmd
}

// round does every job of every variant once, those of one kind side by side.
func (t *turns) round(n int) (*results, error) {
	r := &results{}
	for k, kind := range []string{download, connect, parallel, requests} {
		for _, i := range measure.Order(n*8+k, len(t.variants)) {
			if err := t.variants[i].do(kind, r); err != nil {
				return nil, err
			}
		}
	}
	return r, t.startAll(n, r)
}

// startAll times what each network takes to be there.
func (t *turns) startAll(n int, r *results) error {
	took := make([]measure.Series, len(t.starts))
	for k := range t.setup.Load.Starts {
		for _, i := range measure.Order(n*64+k, len(t.starts)) {
			d, err := t.starts[i].time()
			if err != nil {
				return fmt.Errorf("start %s: %w", t.starts[i].name, err)
			}
			took[i] = append(took[i], measure.Sample{Wall: d})
		}
	}
	for i, s := range t.starts {
		r.put(setupTime, s.name, measure.Sample{Wall: took[i].Median()})
	}
	return nil
}

// A variant is one way to the server.
type variant struct {
	name   string
	ours   bool // its failure ends the measurement
	client *measure.Peer
	helper *exec.Cmd // what else carries the bytes, if it is no child of client
	jobs   []job
}

// do does the variant's job of one kind, if it has one.
func (v *variant) do(kind string, r *results) error {
	i := slices.IndexFunc(v.jobs, func(j job) bool { return j.Kind == kind })
	if i < 0 {
		return nil
	}
	before := v.cpu()
	var got figures
	if err := v.client.Ask(v.jobs[i], &got); err != nil {
		err = fmt.Errorf("%s: %s: %w", v.name, kind, err)
		if v.ours {
			return err
		}
		v.jobs = slices.Delete(v.jobs, i, i+1)
		r.Notes = append(r.Notes, err.Error()+"; not measured any more")
		return nil
	}
	worked := v.cpu() - before
	for name, s := range got {
		if name == kind {
			s.CPU = worked
		}
		r.put(name, v.name, s)
	}
	return nil
}

// cpu is what the relay of a variant has worked so far: everything that is no
// client.
func (v *variant) cpu() time.Duration {
	sum := measure.TreeCPU(v.client.PID(), clientName)
	if v.helper != nil {
		sum += measure.TreeCPU(v.helper.Process.Pid, clientName)
	}
	return sum
}

// clientName is how the client's process is called.
const clientName = "self"

// A start is the time that a network takes to be there.
type start struct {
	name string
	time func() (time.Duration, error)
}

// between times with and without one after the other.
func between(with, without func() *exec.Cmd) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		a, err1 := measure.Run(with())
		b, err2 := measure.Run(without())
		return a.Wall - b.Wall, errors.Join(err1, err2)
	}
}
