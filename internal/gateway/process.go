//go:build linux || darwin

package gateway

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// How long a program has to end by itself once its input has, and again after
// SIGTERM.
const (
	inputGrace = time.Second
	termGrace  = 2 * time.Second
)

// maxSaid is how much of a program's standard error is kept, in bytes.
const maxSaid = 4 << 10

// A command is a program that was started with pipes.
type command struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	errors tail
	ended  chan struct{}
	err    error // once ended
	once   sync.Once
}

// Launch starts a program that speaks over its standard input and output, in a
// process group of its own. What it starts ends with it only if it is a bawn,
// which sees to that.
func Launch(cmd *exec.Cmd) (Process, error) {
	c := &command{cmd: cmd, ended: make(chan struct{})}
	var err error
	if c.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.out, err = cmd.StdoutPipe(); err != nil {
		return nil, errors.Join(err, c.in.Close())
	}
	cmd.Stderr = &c.errors
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true // keys at a terminal are not for it
	cmd.WaitDelay = inputGrace     // another process may hold its standard error
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %q: %w", cmd.Path, err)
	}
	return c, nil
}

func (c *command) Read(p []byte) (int, error)  { return c.out.Read(p) }
func (c *command) Write(p []byte) (int, error) { return c.in.Write(p) }

func (c *command) SetWriteDeadline(t time.Time) error {
	if in, ok := c.in.(interface{ SetWriteDeadline(time.Time) error }); ok {
		return in.SetWriteDeadline(t)
	}
	return os.ErrNoDeadline
}

func (c *command) Said() string { return c.errors.String() }

// Close ends the program's input, asks it to end, and kills it.
func (c *command) Close() error {
	c.once.Do(func() {
		_ = c.in.Close() // it may have ended already
		go func() {
			c.err = c.cmd.Wait()
			close(c.ended)
		}()
	})
	for _, step := range []struct {
		after  time.Duration
		signal syscall.Signal
	}{{inputGrace, syscall.SIGTERM}, {termGrace, syscall.SIGKILL}} {
		select {
		case <-c.ended:
			return c.err
		case <-time.After(step.after):
			_ = syscall.Kill(-c.cmd.Process.Pid, step.signal) // it is waited for below
		}
	}
	<-c.ended
	return c.err
}

// A tail keeps the end of what is written.
type tail struct {
	mu  sync.Mutex
	end []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p[max(0, len(p)-maxSaid):]...)
	t.end = t.end[max(0, len(t.end)-maxSaid):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.end)
}
