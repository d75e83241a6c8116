//go:build linux || darwin

package shim

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/bawn-dev/bawn/internal/intent"
)

// Session asks the session socket for a session below the guest's own, with the arguments
// of `bawn run`, sees it through and returns its exit code. It does not return
// where the session's command was ended by a signal: it ends by the same.
func Session(args, environ []string) int {
	return through(environ, "the session", func(s *front, stdio [3]bool) *intent.Hello {
		r := intent.Run{Args: args, Dir: s.dir, Env: environ, Terminal: s.tty.here(), Stdio: stdio}
		r.Rows, r.Cols = size()
		return &intent.Hello{Run: &r}
	})
}

// Tools has the session's host serve these servers of the Model Context
// Protocol, or all of them, over this process's standard input and output,
// until the first ends. It returns as Session does.
func Tools(servers []string) int {
	return through(nil, "the gateway", func(s *front, stdio [3]bool) *intent.Hello {
		return &intent.Hello{Tools: &intent.Tools{Servers: servers, Dir: s.dir, Stdio: stdio}}
	})
}

// through asks the session socket for something that runs outside, with this process'
// descriptors, and sees it through.
func through(environ []string, what string, hello func(s *front, stdio [3]bool) *intent.Hello) int {
	s, err := guest(environ)
	if err != nil {
		return s.usage(err)
	}
	s.catch()
	defer s.hangUp()
	stdio, files := descriptors()
	if err := s.talk.conn.Send(hello(s, stdio), files...); err != nil {
		s.say("error: " + what + " can't be asked for: " + err.Error())
		return codeDenied
	}
	return s.finish(s.watch(false))
}

// Request asks the human, through the session socket, for what a guest wants to do later.
// A refusal has been told at standard error; its exit code is 126.
func Request(want []string, why string) (granted string, code int) {
	s, err := guest(nil)
	if err != nil {
		return "", s.usage(err)
	}
	s.catch()
	defer s.hangUp()
	if err := s.talk.conn.Send(&intent.Hello{Request: &intent.Request{Want: want, Why: why, Dir: s.dir}}); err != nil {
		s.say("error: it can't be asked for: " + err.Error())
		return "", codeDenied
	}
	for {
		select {
		case r, ok := <-s.talk.replies:
			switch {
			case !ok:
				s.say("error: the session socket has closed without an answer")
				return "", codeDenied
			case r.Denied != nil:
				refused(r.Denied)
				return "", codeDenied
			case r.Answer != nil && r.Answer.Granted:
				return r.Answer.Why, 0
			case r.Answer != nil:
				s.say("not granted: " + r.Answer.Why)
				return "", codeDenied
			}
		case sig := <-s.signals:
			s.signal(sig.(syscall.Signal), false)
		}
	}
}

// guest is the front of bawn itself.
func guest(environ []string) (*front, error) {
	s := &front{environ: environ, socket: Socket, name: "bawn"}
	var err error
	if s.dir, err = directory(); err != nil {
		return s, fmt.Errorf("the working directory can't be named: %w", err)
	}
	if err := s.connect(); err != nil {
		return s, errors.Join(errors.New("the session socket is not to be reached"), err)
	}
	return s, nil
}
