package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/ticket"
)

// A Client is the host's side of an executor. It may be used from several
// goroutines.
type Client struct {
	conn  *ipc.Conn
	ready chan Ready
	done  chan struct{} // closed when the executor is gone

	asking sync.Mutex // held while a socket is asked for
	made   chan socket

	mu        sync.Mutex
	last      uint64
	processes map[uint64]*Process // that have not ended
	err       error               // why it is gone
}

// New speaks to the executor over control, the first of ipc.Pair, which
// Close closes.
func New(control *os.File) (*Client, error) {
	conn, err := ipc.New(control, intent.Limits)
	if err != nil {
		return nil, err
	}
	c := &Client{conn: conn, ready: make(chan Ready, 1), done: make(chan struct{}), made: make(chan socket, 1), processes: map[uint64]*Process{}}
	go c.receive()
	return c, nil
}

// Start tells the executor whom to trust, and waits until it has put itself
// out of the reach of its commands. It is called once, before Do.
func (c *Client) Start(ctx context.Context, s Start) (Ready, error) {
	if err := c.send(&order{Start: &s}); err != nil {
		return Ready{}, err
	}
	select {
	case r := <-c.ready:
		return r, nil
	case <-c.done:
		return Ready{}, c.gone()
	case <-ctx.Done():
		return Ready{}, ctx.Err()
	}
}

// Trust replaces the keys. Later calls of Done are checked against them.
func (c *Client) Trust(keys []ticket.Key) error {
	if len(keys) == 0 {
		keys = []ticket.Key{{}} // no ticket can be signed with an empty key
	}
	return c.send(&order{Trust: keys})
}

// Do starts a command with its ticket, for d.Digest, and returns when it runs. files are
// the command's descriptors 0 to 2 where d.Stdio says so, and nil elsewhere. They are
// made blocking; the caller still closes its own. It errs with a *RefusedError if the
// ticket does not permit the command, with a *StartError if the command could not start,
// and with ErrGone if the executor is gone. When ctx ends first, the started command is
// killed.
func (c *Client) Do(ctx context.Context, d Do, files [3]*os.File) (*Process, error) {
	var along []*os.File
	for i, f := range files {
		if (f != nil) != d.Stdio[i] {
			return nil, fmt.Errorf("BUG(bawn): Stdio is %v, and descriptor %d is given or not against it", d.Stdio, i)
		}
		if f != nil {
			if err := block(f); err != nil {
				return nil, err
			}
			along = append(along, f)
		}
	}
	p, err := c.register()
	if err != nil {
		return nil, err
	}
	d.ID = p.id
	if err := c.send(&order{Do: &wireDo{d, d.Limits.Timeout}}, along...); err != nil {
		c.forget(p.id)
		return nil, err
	}
	select {
	case err = <-p.started:
	case <-ctx.Done():
		_ = p.Signal(syscall.SIGKILL) // unless it is gone
		return nil, ctx.Err()
	}
	var failed *StartError
	if errors.As(err, &failed) && len(d.Argv) > 0 {
		failed.Name = d.Argv[0]
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// block makes f wait, which commands expect of their descriptors.
func block(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = syscall.SetNonblock(int(fd), false) })
	return errors.Join(err, failed)
}

// A socket is the result of an order for one.
type socket struct {
	f   *os.File
	err error
}

// Socket has a TCP socket of a family (AF_INET, AF_INET6) made in the executor's
// network namespace. It errs with the errno that was met there, and with ErrGone.
func (c *Client) Socket(family int) (*os.File, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if err := c.send(&order{Socket: family}); err != nil {
		return nil, err
	}
	select {
	case s := <-c.made:
		return s.f, s.err
	case <-c.done:
		return nil, ErrGone
	}
}

// take is the answer to Socket.
func (c *Client) take(m *made, files []*os.File) []*os.File {
	s := socket{err: syscall.Errno(m.Errno)}
	if m.Errno == 0 && len(files) == 1 {
		s, files = socket{f: files[0]}, nil
	} else if m.Errno == 0 {
		s.err = errors.New("no socket came with the executor's answer")
	}
	select {
	case c.made <- s:
	default: // nobody asked
		if s.f != nil {
			s.f.Close()
		}
	}
	return files
}

// Done is closed when the executor has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// End ends the executor and all it has started, and does not wait for it.
func (c *Client) End() error { return shutdown(c.conn) }

// Close ends the executor and all it has started, and returns when it has
// ended its side. It may be called more than once.
func (c *Client) Close() error {
	err := shutdown(c.conn)
	select {
	case <-c.done:
	case <-time.After(closePatience):
	}
	if cerr := c.conn.Close(); !errors.Is(cerr, os.ErrClosed) {
		err = errors.Join(err, cerr)
	}
	<-c.done
	return err
}

// closePatience is how long an executor may take to kill its commands.
const closePatience = 5 * time.Second

// shutdown says that nothing more will be said. That fails if the other side
// has gone, or Close was called before.
func shutdown(conn *ipc.Conn) error {
	var failed error
	err := conn.SyscallConn().Control(func(fd uintptr) { failed = syscall.Shutdown(int(fd), syscall.SHUT_WR) })
	if err != nil || errors.Is(failed, syscall.ENOTCONN) {
		return nil
	}
	return failed
}

func (c *Client) send(o *order, files ...*os.File) error {
	err := c.conn.Send(o, files...)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return ErrGone
	}
	return err
}

func (c *Client) register() (*Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	c.last++
	p := &Process{client: c, id: c.last, started: make(chan error, 1), changes: make(chan Change, 64)}
	c.processes[p.id] = p
	return p, nil
}

func (c *Client) forget(id uint64) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.processes[id]
	delete(c.processes, id)
	return p
}

func (c *Client) gone() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// receive hands out the executor's messages, up to the last.
func (c *Client) receive() {
	var err error
	for err == nil {
		var r report
		var files []*os.File
		if files, err = c.conn.Receive(&r); err == nil && r.Socket != nil {
			files = c.take(r.Socket, files)
		} else if err == nil {
			c.dispatch(&r)
		}
		for _, f := range files {
			f.Close()
		}
	}
	c.mu.Lock()
	c.err = ErrGone
	rest := c.processes
	c.processes = nil
	c.mu.Unlock()
	for _, p := range rest {
		p.start(ErrGone)
		p.changed(Change{Status: syscall.WaitStatus(syscall.SIGKILL)})
	}
	close(c.done)
}

// dispatch hands one report on. A message about an unknown command is about one
// that nobody waits for.
func (c *Client) dispatch(r *report) {
	switch {
	case r.Ready != nil:
		select {
		case c.ready <- *r.Ready:
		default:
		}
	case r.Refused != nil:
		if p := c.forget(r.Refused.ID); p != nil {
			p.start(r.Refused.err())
		}
	case r.Started != 0:
		if p := c.find(r.Started); p != nil {
			p.start(nil)
		}
	case r.Changed != nil:
		c.change(r.Changed)
	}
}

func (c *Client) change(r *changed) {
	ch := Change{Status: syscall.WaitStatus(r.Status), State: r.State}
	find := c.find
	if ch.Ended() {
		find = c.forget
	}
	if p := find(r.ID); p != nil {
		p.changed(ch)
	}
}

func (c *Client) find(id uint64) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.processes[id]
}

func (r *refused) err() error {
	if r.Rule == RuleStart {
		return &StartError{Why: r.Why, Errno: syscall.Errno(r.Errno)}
	}
	return &RefusedError{Rule: r.Rule, Why: r.Why}
}

// A Change is a change of state of a process: a stop, its continuation, or its
// end.
type Change struct {
	Status syscall.WaitStatus
	// State comes with the end of a statement. It is nil there too if the shell
	// was killed in the middle, or has left more than 512 KiB: its directory and
	// variables are then unchanged.
	State *intent.State
}

// Ended reports whether the process has exited or was killed.
func (c Change) Ended() bool { return !c.Status.Stopped() && !c.Status.Continued() }

// A Process is a command that was started.
type Process struct {
	client  *Client
	id      uint64
	started chan error // one: nil once it runs
	changes chan Change
}

// Changes delivers each stop and each continuation, and at last the end; then
// it is closed. If they are not fetched, the oldest is dropped, never the end.
// The end of an executor is that of its processes, by SIGKILL.
func (p *Process) Changes() <-chan Change { return p.changes }

// Signal sends sig to the command's process group. It does nothing when the
// command has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	return p.client.send(&order{Signal: &signal{p.id, int(sig)}})
}

// Foreground gives a command that was Do.Led its terminal's foreground. For
// others it does nothing: they keep it until they hand it over.
func (p *Process) Foreground() error { return p.client.send(&order{Foreground: p.id}) }

func (p *Process) start(err error) {
	select {
	case p.started <- err:
	default:
	}
}

// changed is called by one goroutine.
func (p *Process) changed(ch Change) {
	for sent := false; !sent; {
		select {
		case p.changes <- ch:
			sent = true
		default:
			select {
			case <-p.changes:
			default:
			}
		}
	}
	if ch.Ended() {
		close(p.changes)
	}
}
