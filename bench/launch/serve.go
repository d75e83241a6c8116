package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/bench/measure"
	"github.com/bawn-dev/bawn/internal/sandbox"
	nativesandbox "github.com/bawn-dev/bawn/internal/sandbox/native"
)

// A question is the first one with Variants, and then one for each round.
type question struct {
	Variants []variant   `json:"variants,omitempty"`
	Who      measure.Who `json:"who"`
	Round    int         `json:"round"`
}

// A sampler runs variants. It is a process of its own for each user, so that
// the session it holds is that user's.
type sampler struct {
	variants []variant
	env      []string
	guest    sandbox.Guest
	null     *os.File
	errors   *os.File // what the programs complain about, without a name
}

func serve(in io.Reader, out io.Writer) error {
	s := &sampler{}
	defer func() { s.close() }()
	return measure.Serve(in, out, func(q question) (any, error) {
		if q.Variants != nil {
			var err error
			s, err = newSampler(q.Who, q.Variants)
			return nil, err
		}
		return s.round(q.Round)
	})
}

// newSampler opens the session, if a variant needs one.
func newSampler(who measure.Who, variants []variant) (*sampler, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	s := &sampler{variants: variants, env: who.Environ(), null: null}
	if s.errors, err = os.CreateTemp(who.Home, "errors-"); err != nil {
		return s, err
	}
	if err := os.Remove(s.errors.Name()); err != nil {
		return s, err
	}
	for _, v := range variants {
		if v.Session && s.guest == nil {
			if s.guest, err = startSession(who, v.Argv); err != nil {
				return s, fmt.Errorf("start a session: %w", err)
			}
		}
	}
	return s, nil
}

func (s *sampler) close() {
	if s.guest != nil {
		s.guest.Close()
	}
	if s.null != nil {
		s.null.Close()
		s.errors.Close()
	}
}

// startSession starts what bawn run would, with the empty network.
func startSession(who measure.Who, argv []string) (sandbox.Guest, error) {
	p := nativesandbox.New("")
	plan, err := p.Plan(sandbox.Request{
		Session: bawn.Session{ID: "bench", Isolation: bawn.Isolation{
			Workspace: who.Workspace, Network: bawn.NetworkNone, Protect: true, Env: []string{"PATH", "HOME"},
			Mounts:    []bawn.Mount{{Path: who.Workspace, Access: bawn.ReadWrite, Why: "workspace"}},
			Resources: bawn.Resources{TmpMB: 64, PIDs: 4096, MemoryMB: 1024},
		}},
		Argv: argv, Dir: who.Workspace, Environ: who.Environ(),
	})
	if err != nil {
		return nil, err
	}
	return p.Start(plan, func(sandbox.Denial) {})
}

// round runs every variant once and returns the samples in their order.
func (s *sampler) round(n int) ([]measure.Sample, error) {
	if s.variants == nil {
		return nil, errors.New("no variants yet")
	}
	samples := make([]measure.Sample, len(s.variants))
	for _, i := range measure.Order(n, len(s.variants)) {
		var err error
		if samples[i], err = s.run(s.variants[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", s.variants[i].Name, err)
		}
	}
	return samples, nil
}

func (s *sampler) run(v variant) (measure.Sample, error) {
	if v.Session {
		return s.exec(v)
	}
	cmd := exec.Command(v.Argv[0], v.Argv[1:]...)
	cmd.Env, cmd.Stderr = s.env, s.errors
	if v.Owner {
		cmd.Stdin, cmd.Stdout = s.null, s.null
	}
	return measure.Run(cmd)
}

// exec runs a command in the session. Its processor time is not ours to see.
func (s *sampler) exec(v variant) (measure.Sample, error) {
	began := time.Now()
	p, err := s.guest.Exec(sandbox.Command{Argv: v.Argv, Stdio: [3]*os.File{s.null, s.null, s.null}})
	if err != nil {
		return measure.Sample{}, err
	}
	var last sandbox.Change
	for last = range p.Changes() {
	}
	wall := time.Since(began)
	if code := last.Status.ExitStatus(); code != 0 {
		return measure.Sample{}, fmt.Errorf("%q ended with %d", v.Argv, code)
	}
	return measure.Sample{Wall: wall}, nil
}
