package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// An outsider is a task that is a process of its own.
type outsider struct {
	name string
	take func(s *stage, p int) (measure.Sample, error)
}

// outsiders are the starts of sessions, and decisions, which need none.
var outsiders = []outsider{
	{"start, no network", func(s *stage, p int) (measure.Sample, error) { return s.start(p, "--net", "none") }},
	{"start, network by name", func(s *stage, p int) (measure.Sample, error) { return s.start(p) }},
	{decide, (*stage).decide},
}

const decide = "decide on a command"

// start starts a session with one short command.
func (s *stage) start(p int, flags ...string) (measure.Sample, error) {
	cmd := s.whos[p].Command(s.argv(p, flags, "/bin/true")...)
	cmd.Stderr = os.Stderr
	return measure.Run(cmd)
}

// decide runs the policy's own benchmark (BenchmarkContained), which says itself how
// long a decision takes.
func (s *stage) decide(p int) (measure.Sample, error) {
	cmd := exec.Command(filepath.Join(s.dirs[p], "policy.test"), "-test.run=^$", "-test.bench=^BenchmarkContained$", "-test.benchtime=300x")
	cmd.Dir, cmd.Stderr = filepath.Join(s.dirs[p], "policy"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return measure.Sample{}, fmt.Errorf("%s: %w", decide, err)
	}
	return perOperation(string(out))
}

// perOperation is the mean of what the lines of a benchmark say.
func perOperation(text string) (measure.Sample, error) {
	var sum float64
	n := 0
	for line := range strings.Lines(text) {
		before, _, ok := strings.Cut(line, " ns/op")
		if !ok {
			continue
		}
		ns, err := strconv.ParseFloat(before[strings.LastIndexAny(before, " \t")+1:], 64)
		if err != nil {
			return measure.Sample{}, fmt.Errorf("%q: want the output of a benchmark: %w", line, err)
		}
		sum, n = sum+ns, n+1
	}
	if n == 0 {
		return measure.Sample{}, errors.New("the benchmark said nothing; want lines with ns/op")
	}
	return measure.Sample{Wall: time.Duration(sum / float64(n))}, nil
}

// greet answers every connection with one byte, until the listener is closed.
func greet(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Write([]byte("x")) // the client says what is wrong
		_ = c.Close()
	}
}

// connect connects to the greeter and reads its byte.
func connect(port string) error {
	c, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Read(make([]byte, 1))
	return err
}
