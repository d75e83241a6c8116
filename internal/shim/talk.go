//go:build linux || darwin

package shim

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/shim/quick"
)

// A talk is the conversation with the session socket. It survives the statements of one
// shell.
type talk struct {
	conn    *ipc.Conn
	replies chan intent.Reply // closed when the session socket says no more
}

// dial connects to the session socket. It returns the connection as a file that Go's
// poller waits for.
//
// The socket is non-blocking before it connects: the sandbox's supervisor answers such
// a call at once, and hands one that might wait to another thread, which costs a
// quarter of a millisecond. Only a session socket with too many guests before it is
// waited for.
func dial(path string) (*ipc.Conn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	if err := errors.Join(unix.SetNonblock(fd, true), patiently(fd, path)); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return ipc.New(os.NewFile(uintptr(fd), "socket"), intent.Limits)
}

// patiently connects fd, which does not block, and waits where it has to.
func patiently(fd int, path string) error {
	err := unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	if !errors.Is(err, unix.EAGAIN) {
		return err
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		return err
	}
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	return errors.Join(err, unix.SetNonblock(fd, true))
}

func (s *front) connect() error {
	conn, err := dial(s.socket)
	if err == nil {
		s.begin(conn)
	}
	return err
}

func (s *front) begin(conn *ipc.Conn) {
	s.talk = &talk{conn: conn, replies: make(chan intent.Reply)}
	go s.talk.read()
}

// resume sees a command through for which package quick has asked.
func (s *front) resume(t *quick.Talk) int {
	conn, err := ipc.Resume(t.Socket, intent.Limits, t.Ahead)
	if err != nil {
		s.say("bawn: what was handed over is no socket: " + err.Error())
		return codeDenied
	}
	s.begin(conn)
	s.signals = t.Signals
	s.catch()
	return s.finish(s.watch(t.Started))
}

func (t *talk) read() {
	defer close(t.replies)
	for {
		var r intent.Reply
		files, err := t.conn.Receive(&r)
		for _, f := range files {
			f.Close() // the session socket sends none
		}
		if err != nil {
			return
		}
		t.replies <- r
	}
}

// hangUp ends the conversation, and with it whatever waits for an answer.
func (s *front) hangUp() {
	if s.talk != nil {
		_ = s.talk.conn.Close()
		s.talk = nil
	}
}

// An end is how a command ended.
type end struct {
	code   int
	signal syscall.Signal // that ended it, or 0
	state  *intent.State  // of a statement
	over   bool           // the shell is to end with it
}

// command has one command executed and sees it through. A second one of the
// same shell goes the same way.
func (s *front) command(argv []string, statement bool) end {
	x := intent.Exec{Argv: argv, Dir: s.dir, Env: s.environ, Statement: statement}
	var files []*os.File
	x.Stdio, files = descriptors()
	x.Terminal = s.tty.here()
	x.Rows, x.Cols = size()
	if x.Terminal {
		s.catch() // its settings must be restored in any case
	}
	s.tty.plain()
	defer s.tty.restore()
	var err error
	if s.talk == nil {
		if err = s.connect(); err != nil {
			s.tty.restore()
			s.say("bawn: the session socket is not to be reached (" + err.Error() + "); nothing can be executed here without it")
			return end{code: codeDenied, over: true}
		}
		err = s.talk.conn.Send(&intent.Hello{Exec: &x}, files...)
	} else {
		err = s.talk.conn.Send(&intent.Update{Exec: &x})
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) { // then the session socket has said why
		s.say("bawn: the command can't be handed to the session socket: " + err.Error())
		return end{code: codeDenied, over: true}
	}
	s.catch() // while the session socket is at work; until then a signal ends the shim, and with it what was asked
	return s.watch(false)
}

// descriptors are those of 0, 1 and 2 that are open.
func descriptors() (open [3]bool, files []*os.File) {
	for i, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if _, err := unix.FcntlInt(uintptr(i), unix.F_GETFD, 0); err == nil {
			open[i], files = true, append(files, f)
		}
	}
	return open, files
}

// watch follows a command, which may be running, until it has ended.
func (s *front) watch(running bool) end {
	for {
		select {
		case r, ok := <-s.talk.replies:
			switch {
			case !ok:
				s.tty.restore()
				s.say("bawn: the session socket has closed, and the command with it")
				return end{code: codeDenied, over: true}
			case r.Started:
				running = true
				s.tty.raw()
			case r.Stopped != 0:
				s.stop()
			case r.Denied != nil:
				s.tty.restore()
				refused(r.Denied)
				return end{code: codeDenied}
			case r.Exit != nil:
				return ended(&r)
			}
		case sig := <-s.signals:
			s.signal(sig.(syscall.Signal), running)
		}
	}
}

// ended is the end that a reply states. A statement that ends its shell says
// so; one that was ended by a signal could not.
func ended(r *intent.Reply) end {
	e := end{code: r.Exit.Code, signal: syscall.Signal(r.Exit.Signal), state: r.State}
	e.over = r.State != nil && r.State.Ended
	return e
}

func (s *front) update(u intent.Update) {
	_ = s.talk.conn.Send(&u) // a session socket that is gone says so by its silence
}
