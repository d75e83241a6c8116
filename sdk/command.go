package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A Command is run as a guest of Bawn's: in a sandbox, with the configuration of the user
// whose process this is. The zero Command is an error.
type Command struct {
	Args   []string  // the program and its arguments
	Dir    string    // where it starts; "" is the current directory. The repository around it is the workspace
	Env    []string  // of bawn, as NAME=value; nil is this process's. A guest gets what Flags name
	Flags  []string  // of "bawn run", such as "--allow", "example.org", "--timeout", "90s"
	Stdin  io.Reader // nil is empty
	Stdout io.Writer // nil is nowhere
	Stderr io.Writer // nil is nowhere
	Bawn   string    // the program; "" is "bawn" of PATH
}

// A Result says how a guest has ended.
type Result struct {
	Session string   // its ID, by which Log finds its events; "" where none was made
	Exit    int      // the guest's exit code, or one of docs/reference/exit-codes.md
	Denied  []Denial // what Bawn refused, as much as "bawn run" lists
	// NoSandbox says why nothing contained the guest. It is "" unless the user's own
	// configuration permits such sessions (isolation.allow_fallback_to_host).
	NoSandbox string
}

// A Denial is an action of the guest's that Bawn refused.
type Denial struct {
	Kind      string `json:"resourceType"`
	Operation string `json:"operation"`
	Resource  string `json:"resource"`
	Rule      string `json:"rule"`
	Reason    string `json:"reason"`
	Remedy    string `json:"remedy"`
}

// end is the line that "bawn run --json" prints last.
type end struct {
	Session   string   `json:"session"`
	Exit      *int     `json:"exit"`
	Denials   []Denial `json:"denials"`
	NoSandbox string   `json:"noSandbox"`
	Error     *struct {
		Code, Message, Remedy string
	} `json:"error"`
}

// Run runs the command to its end. Nobody is asked: what would ask is denied. A guest that
// ends with an exit code of its own is no error; one that Bawn did not start, or that it
// ended, is. When ctx ends the guest is ended.
func (c *Command) Run(ctx context.Context) (Result, error) {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return Result{}, errors.New("the command is empty; want Args with a program")
	}
	for _, f := range c.Flags {
		if f == "--" {
			return Result{}, errors.New(`the flags hold "--"; want the guest's program in Args`)
		}
	}
	program := c.Bawn
	if program == "" {
		program = "bawn"
	}
	words := append([]string{"run", "--json", "--quiet", "--while-away", "deny", "--ask-timeout", "0s"}, c.Flags...)
	cmd := exec.CommandContext(ctx, program, append(append(words, "--"), c.Args...)...) //nolint:forbidigo // bawn makes the sandbox
	last := &lastLine{to: c.Stderr}
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, c.Stdin, c.Stdout, last
	cmd.WaitDelay = 10 * time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // bawn ends the guest, and records that
	err := cmd.Run()
	e, rest := parseEnd(last.line)
	last.pass(rest)
	switch {
	case ctx.Err() != nil:
		return result(e), ctx.Err()
	case e == nil && err != nil:
		return Result{}, fmt.Errorf("%q did not say how it ended: %w", program, err)
	case e == nil:
		return Result{}, fmt.Errorf("%q did not say how it ended; want the program bawn", program)
	case e.Error != nil:
		return result(e), fmt.Errorf("%s: %s", e.Error.Code, strings.TrimSuffix(e.Error.Message+"; "+e.Error.Remedy, "; "))
	}
	return result(e), last.err
}

func result(e *end) Result {
	if e == nil {
		return Result{}
	}
	return Result{Session: e.Session, Exit: *e.Exit, Denied: e.Denials, NoSandbox: e.NoSandbox}
}

// maxEnd bounds the last line, which lists few refusals.
const maxEnd = 1 << 20

// A lastLine passes on what is written to it but for the last line.
type lastLine struct {
	to   io.Writer
	line []byte
	err  error
}

func (l *lastLine) Write(p []byte) (int, error) {
	l.line = append(l.line, p...)
	body := bytes.TrimSuffix(l.line, []byte("\n"))
	cut := bytes.LastIndexByte(body, '\n') + 1
	cut = max(cut, len(l.line)-maxEnd)
	l.pass(l.line[:cut])
	l.line = append(l.line[:0], l.line[cut:]...)
	return len(p), nil
}

// pass hands something on; after an error nothing more.
func (l *lastLine) pass(p []byte) {
	if l.to != nil && l.err == nil && len(p) > 0 {
		_, l.err = l.to.Write(p)
	}
}

// parseEnd reads bawn's line, and returns what the guest has written before it on the same
// line. The line's first key is "session", or "exit" where none was made, which no object
// within it begins with; texts in it have their quotes escaped. So it begins at the last
// place that looks like its beginning, whatever the guest has written.
func parseEnd(line []byte) (*end, []byte) {
	from := max(bytes.LastIndex(line, []byte(`{"session":`)), bytes.LastIndex(line, []byte(`{"exit":`)))
	var e end
	if from < 0 || json.Unmarshal(line[from:], &e) != nil || e.Exit == nil {
		return nil, line
	}
	return &e, line[:from]
}
