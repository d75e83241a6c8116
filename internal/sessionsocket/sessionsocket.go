// Package sessionsocket serves the socket through which a guest speaks to its
// session: for a command in the execution zone, a session below its own, or a
// change that needs the human's answer.
//
// The guest may be hostile. Whatever it says is bounded and checked before use,
// its descriptors are sorted before they go anywhere, and a guest that neither
// speaks nor listens delays no other. The zero Handlers refuse everything.
package sessionsocket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
)

// Limits of one session socket.
const (
	HelloWait  = 5 * time.Second  // for the first message
	SendWait   = 10 * time.Second // for the guest to take a reply
	busyWait   = time.Second      // into an empty buffer, so that it is not needed
	MaxPeers   = 512              // connections, with those whose command left output open
	MaxWaiting = 64               // of them that wait for a human
)

// Rules that the session socket itself refuses by.
const (
	RuleClosed     = "builtin:socket-closed"     // there is no handler
	RuleBusy       = "builtin:socket-busy"       // MaxPeers
	RuleMessage    = "builtin:socket-message"    // unreadable, or contradicting itself
	RuleWaiting    = "builtin:socket-waiting"    // MaxWaiting
	RuleDescriptor = "builtin:socket-descriptor" // a descriptor that may not come along
	RuleShell      = "builtin:socket-shell"      // no command line of a shell
	RuleText       = "builtin:socket-text"       // a text without a form that can be executed
	RuleTicket     = "builtin:socket-ticket"     // no ticket could be had
	RuleExecutor   = "builtin:socket-executor"   // the execution zone did not start it
)

// Handlers say who serves what. A handler that is nil refuses. The files of a
// message are the guest's descriptors 0, 1 and 2, nil if closed. They and the
// connection are closed when the handler returns. ctx ends when the guest goes
// away or the session socket is closed.
type Handlers struct {
	Session string // its name, for refusals
	Exec    func(ctx context.Context, c *Conn, x intent.Exec, files [3]*os.File)
	Run     func(ctx context.Context, c *Conn, r intent.Run, files [3]*os.File)
	Request func(ctx context.Context, c *Conn, r intent.Request)
	Judge   func(ctx context.Context, c *Conn, j intent.Judge)
	Tools   func(ctx context.Context, c *Conn, t intent.Tools, files [3]*os.File)
	Why     func(ctx context.Context, c *Conn, w intent.Why)
	// Refused is called for refusals without the guard, which records the
	// others; may be nil. It must not wait.
	Refused func(rule, reason string)
	// Patience is how long a guest may take to say its first message; 0 means
	// HelloWait.
	Patience time.Duration
}

// Listen makes the session socket at path, which only the own user may use. It errs
// where path exists or can't be made. If the path is too long for a socket's
// address, Close does not remove the socket: the caller removes it.
func Listen(path string) (*net.UnixListener, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("session socket %q is there already; want a place of this session's own", path)
	}
	var l *net.UnixListener
	err := short(path, func(name string) (err error) {
		if l, err = net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"}); err == nil && name != path {
			l.SetUnlinkOnClose(false) // the name ends with short
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open the session socket %q: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("open the session socket: %w", err), l.Close())
	}
	return l, nil
}

// Refuses reports whether nobody listens at a socket of this user's own.
func Refuses(path string) bool {
	return errors.Is(short(path, func(name string) error {
		c, err := net.Dial("unix", name) //nolint:forbidigo // it is looked at, and nothing is said
		if err == nil {
			c.Close()
		}
		return err
	}), syscall.ECONNREFUSED)
}

// Serve serves guests until ctx ends or the listener is closed, and returns
// when all its handlers have. It closes the listener.
func Serve(ctx context.Context, l *net.UnixListener, h Handlers) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{handlers: h, slots: make(chan struct{}, MaxPeers)}
	defer s.peers.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		c, err := l.AcceptUnix()
		switch {
		case err == nil:
			s.admit(ctx, c)
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return nil
		case !passes(err):
			return fmt.Errorf("accept at the session socket: %w", err)
		default:
			pause(ctx, 20*time.Millisecond)
		}
	}
}

// passes reports whether accept(2) may work again a little later.
func passes(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.ECONNABORTED, syscall.EINTR, syscall.EPERM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

type server struct {
	handlers Handlers
	slots    chan struct{}
	peers    sync.WaitGroup
}

// admit serves a guest, or refuses it where there are too many.
func (s *server) admit(ctx context.Context, u *net.UnixConn) {
	wire, err := ipc.New(u, intent.Limits)
	if err != nil {
		u.Close() // the guest reads the end
		return
	}
	c := newConn(ctx, wire, s.handlers)
	select {
	case s.slots <- struct{}{}:
	default:
		// Nothing waits for a guest that is one too many.
		_ = wire.SetDeadline(time.Now().Add(busyWait))
		c.Refuse(RuleBusy, fmt.Sprintf("this session has %d commands at its session socket", MaxPeers), "wait for some of them to end")
		c.Close()
		return
	}
	s.peers.Go(func() {
		defer func() { <-s.slots }()
		s.serve(ctx, c)
	})
}

// serve reads the first message and hands it to its handler.
func (s *server) serve(ctx context.Context, c *Conn) {
	defer c.Close()
	var hello intent.Hello
	_ = c.wire.SetDeadline(time.Now().Add(cmp.Or(s.handlers.Patience, HelloWait)))
	received, err := c.wire.Receive(&hello)
	if err != nil {
		c.Refuse(RuleMessage, "the message can't be read", "speak the protocol of this version")
		return
	}
	defer closeAll(received)
	_ = c.wire.SetDeadline(time.Time{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, c.Close)()
	go c.read(cancel)
	s.dispatch(ctx, c, &hello, received)
}

func (s *server) dispatch(ctx context.Context, c *Conn, hello *intent.Hello, received []*os.File) {
	h := s.handlers
	var open [3]bool
	switch {
	case hello.Exec != nil:
		open = hello.Exec.Stdio
	case hello.Run != nil:
		open = hello.Run.Stdio
	case hello.Tools != nil:
		open = hello.Tools.Stdio
	}
	files, ok := arrange(open, received)
	switch {
	case !ok:
		c.Refuse(RuleMessage, "the descriptors are not those that the message names", "speak the protocol of this version")
	case hello.Exec != nil && h.Exec != nil:
		h.Exec(ctx, c, *hello.Exec, files)
	case hello.Run != nil && h.Run != nil:
		h.Run(ctx, c, *hello.Run, files)
	case hello.Request != nil && h.Request != nil:
		h.Request(ctx, c, *hello.Request)
	case hello.Judge != nil && h.Judge != nil:
		h.Judge(ctx, c, *hello.Judge)
	case hello.Tools != nil && h.Tools != nil:
		h.Tools(ctx, c, *hello.Tools, files)
	case hello.Why != nil && h.Why != nil:
		h.Why(ctx, c, *hello.Why)
	default:
		c.Refuse(RuleClosed, "this session serves no such request", "")
	}
}

// arrange puts received descriptors where the message says.
func arrange(open [3]bool, received []*os.File) (files [3]*os.File, ok bool) {
	for i, is := range open {
		if !is {
			continue
		}
		if len(received) == 0 {
			return files, false
		}
		files[i], received = received[0], received[1:]
	}
	return files, len(received) == 0
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
