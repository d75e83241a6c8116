package sandboxtest

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// controls run checks with no sandbox, one by one.
type controls struct {
	f       *Fixtures
	servers map[string]*server // by state
	clean   bool               // nothing is to be undone
}

// serveTime is the most one check may take.
const serveTime = 20 * time.Second

// A server is a victim that does one check after the other.
type server struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// try runs one check.
func (c *controls) try(t testing.TB, f *Fixtures, i probe.Info) (out probe.Outcome, err error) {
	if i.Shares {
		return c.ask(f, i)
	}
	r := NoSandbox(t, f, f.Victim, "-world", f.arg(), i.Name)
	outcomes, err := decode[probe.Outcome](r.Stdout)
	if err != nil || len(outcomes) != 1 {
		return out, fmt.Errorf("exit code %d, %v: %.300s", r.Code, err, r.Stderr)
	}
	return outcomes[0], nil
}

// ask has the state's server do a check.
func (c *controls) ask(f *Fixtures, i probe.Info) (out probe.Outcome, err error) {
	s := c.servers[i.State]
	if s == nil {
		if s, err = newServer(f); err != nil {
			return out, err
		}
		c.servers[i.State] = s
	}
	timer := time.AfterFunc(serveTime, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	err = json.NewEncoder(s.in).Encode(probe.Ask{Name: i.Name, World: f.world()})
	if err == nil {
		err = s.out.Decode(&out)
	}
	if err != nil { // the next check gets another one
		s.end()
		delete(c.servers, i.State)
		return out, fmt.Errorf("the victim ended: %w", err)
	}
	return out, nil
}

func newServer(f *Fixtures) (*server, error) {
	cmd := f.Command(f.Victim, "serve")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &server{cmd, in, json.NewDecoder(out)}, cmd.Start()
}

func (s *server) end() {
	s.in.Close()
	_ = s.cmd.Process.Kill() // it has nothing to lose
	_ = s.cmd.Wait()
}

// end ends the servers.
func (c *controls) end() {
	for _, s := range c.servers {
		s.end()
	}
}
