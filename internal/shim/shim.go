//go:build linux || darwin

// Package shim is what sh, bash and other shells are in a reasoning zone. It
// executes nothing: it hands command lines, with its descriptors, directory and
// environment, to the session socket, passes signals on, and ends as the
// command has ended.
//
// The shim reads the input of a shell that takes its commands from standard
// input. It takes as many whole statements as are there, and each such text is
// a command of its own. Directory, exported variables and $? carry on to the
// next; functions, other variables, options, traps and jobs do not. A script
// that is complete when the shim reads it is one text.
//
// Start-up files are not read, also of login shells and interactive ones.
package shim

import (
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/shell/invocation"
	"github.com/bawn-dev/bawn/internal/shim/quick"
)

// Socket is where a guest finds the session socket.
const Socket = quick.Socket

// Exit codes of a shell's own (sh(1p), EXIT STATUS).
const (
	codeUsage  = 2
	codeDenied = 126
	signalBase = 128
)

// Main is the shell that argv calls. It returns the exit code, and does not
// return where the command was ended by a signal: it ends by the same.
func Main(argv, environ []string) int { return run(argv, environ, Socket) }

func run(argv, environ []string, socket string) int {
	s := &front{argv: argv, environ: environ, socket: socket, name: "sh"}
	call, err := invocation.Parse(argv)
	if err != nil {
		return s.usage(err)
	}
	s.call, s.name = call, path.Base(call.Zero)
	if s.dir, err = directory(); err != nil {
		return s.usage(fmt.Errorf("the working directory can't be named: %w", err))
	}
	if t := quick.Begun(); t != nil {
		defer s.hangUp()
		return s.resume(t)
	}
	if call.Source == invocation.Input {
		s.catch()
		return s.input()
	}
	defer s.hangUp()
	return s.finish(s.command(argv, false))
}

// directory is the working directory as the kernel names it, whatever links led
// there.
func directory() (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Getcwd(buf)
	if err != nil {
		return "", err
	}
	return unix.ByteSliceToString(buf[:n]), nil
}

// A front is one call of the shim: the front of a shell that runs elsewhere.
type front struct {
	argv, environ []string
	call          invocation.Invocation
	name          string // as messages begin
	dir, socket   string
	signals       chan os.Signal
	talk          *talk // with the session socket, or nil
	tty           tty
}

func (s *front) usage(err error) int {
	s.say(err.Error())
	return codeUsage
}

// say writes a line to standard error, if that is open.
func (s *front) say(text string) {
	_, _ = os.Stderr.WriteString(s.name + ": " + text + "\n")
}
