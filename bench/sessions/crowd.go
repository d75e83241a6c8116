package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// life bounds a session, whatever becomes of this program: 20 minutes.
const life = "1200"

// patience is how long one command of bawn may take.
const patience = time.Minute

// A crowd is the sessions of one user.
type crowd struct {
	who        measure.Who
	bawn, self string
	floor      int // MiB
}

// call runs bawn as the user and returns what it prints.
func (c *crowd) call(args ...string) (string, error) {
	cmd := c.who.Command(append([]string{c.bawn}, args...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	out, err := cmd.Output()
	if !timer.Stop() {
		err = errors.Join(err, fmt.Errorf("it takes more than %v", patience))
	}
	if err != nil {
		return "", fmt.Errorf("%q: %w\n%s", cmd.Args, err, &errs)
	}
	return string(out), nil
}

// start starts n sessions in the background, one after the other.
func (c *crowd) start(ctx context.Context, n int, flags ...string) (measure.Series, error) {
	args := append(append([]string{"run", "--detach", "--quiet"}, flags...), "--", "sleep", life)
	var s measure.Series
	for range n {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if free := available() >> 20; free < int64(c.floor) {
			return nil, fmt.Errorf("after %d sessions %d MiB of memory are available; the benchmark stops below %d", len(s), free, c.floor)
		}
		began := time.Now()
		if _, err := c.call(args...); err != nil {
			return nil, fmt.Errorf("session %d: %w", len(s)+1, err)
		}
		s = append(s, measure.Sample{Wall: time.Since(began)})
	}
	return s, nil
}

// hosts returns the processes that host the sessions: PID by whether it is split.
func (c *crowd) hosts() (map[int]bool, error) {
	out, err := c.call("ps", "--json")
	if err != nil {
		return nil, err
	}
	var list []struct {
		PID   int
		Zones []string
		State string
		Argv  []string
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, err
	}
	pids := map[int]bool{}
	for _, s := range list {
		if s.State == "running" && s.Argv[0] == "sleep" {
			pids[s.PID] = len(s.Zones) > 0
		}
	}
	return pids, nil
}

// end ends all sessions at once and looks for what they left.
func (c *crowd) end(ctx context.Context, r *measure.Report) error {
	hosts, err := c.hosts()
	if err != nil {
		return err
	}
	guests := below(hosts)
	began := time.Now()
	if _, err := c.call("kill", "--all"); err != nil {
		return err
	}
	r.Line("bawn kill --all took %.2f s", time.Since(began).Seconds())
	for limit := time.Now().Add(patience); ctx.Err() == nil && time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		if left := alive(guests); left == 0 {
			return nil
		}
	}
	return fmt.Errorf("%d processes of sessions that were ended are still there", alive(guests))
}

// clear ends what a failure has left.
func (c *crowd) clear() error {
	hosts, err := c.hosts()
	if err != nil || len(hosts) == 0 {
		return err
	}
	_, err = c.call("kill", "--all", "--signal", "KILL")
	left, _ := c.hosts()
	for pid := range left {
		err = errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
	}
	return err
}

// The commands whose time is taken, alone and in the crowd.
const (
	bare    = "sh -c, bare"
	started = "bawn run -- sh -c"
	inSplit = "sh -c in a split session, through the shim"
	list    = "bawn ps"
)

// A pair takes samples outside and in a split session that is there before the
// others are.
type pair struct {
	crowd           *crowd
	outside, inside *measure.Peer
}

func (c *crowd) peers() (*pair, error) {
	outside, err := measure.StartPeer(c.who.Command(c.self, "-serve"))
	if err != nil {
		return nil, err
	}
	inside, err := measure.StartPeer(c.who.Command(c.bawn, "run", "--split", "--net", "none", "--quiet", "--", c.self, "-serve"))
	if err != nil {
		return nil, errors.Join(err, outside.Kill())
	}
	return &pair{c, outside, inside}, nil
}

func (p *pair) kill() {
	_ = p.inside.Close() // what it measured is known by now
	_ = p.outside.Close()
}

// command runs what it is told to, once.
func command(argv []string) (any, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	return measure.Run(cmd)
}

// sample takes one.
func (p *pair) sample(variant string) (s measure.Sample, err error) {
	peer, argv := p.outside, []string{"/bin/sh", "-c", ":"}
	switch variant {
	case started:
		argv = append([]string{p.crowd.bawn, "run", "--quiet", "--net", "none", "--"}, argv...)
	case inSplit:
		peer = p.inside
	case list:
		argv = []string{p.crowd.bawn, "ps", "--quiet"}
	}
	return s, peer.Ask(argv, &s)
}
