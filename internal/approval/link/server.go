package link

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/peercred"
)

// Bounds of one connection; beyond, it is closed.
const (
	maxAsks    = 2 * approval.MaxPerOwner // questions that wait
	maxAnswers = 64                       // answers that are being taken
	maxSession = 4096                     // sessions of one host
	minSecret  = 16                       // bytes of a secret
)

// Prompter is a *approval.Queue. Owners are peers: see approval.Question.
type Prompter interface {
	approval.Prompter
	Register(owner, session, parent string) (forget func())
	Retract(q approval.Question)
	Owns(ctx context.Context, owner, id string) bool
}

// A Server is the relay's side of hosts.sock.
type Server struct {
	Prompter Prompter
	Admit    func(net.Conn) error // refuses peers, and records whom; nil refuses all
	// Keyless is called for an admitted peer without the key; may be nil.
	Keyless func(error)
	Log     *slog.Logger // nil for none

	key   string // see KeyOf
	mu    sync.Mutex
	conns map[*peer]struct{}
	ended bool
	work  sync.WaitGroup
}

// KeyOf returns the path of the key that belongs to a socket, which clients read
// and say first. A session's host connects to sockets in its guests' stead, and
// then has its own credentials: that somebody connects does not show that the
// host wants to speak.
func KeyOf(socket string) string { return socket + ".key" }

// Serve speaks to all who connect to l, until l is closed; then it ends the
// connections and waits for them.
func (s *Server) Serve(l net.Listener) error {
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	s.key = rand.Text()
	path := KeyOf(l.Addr().String())
	if err := atomicfile.Write(path, []byte(s.key), 0o600); err != nil {
		return fmt.Errorf("write the key of a socket: %w", err)
	}
	defer os.Remove(path)
	defer s.end()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		s.work.Go(func() { s.serve(conn) })
	}
}

// Connections returns how many hosts are connected.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *Server) end() {
	s.mu.Lock()
	s.ended = true
	for p := range s.conns {
		p.conn.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

// track notes a connection, unless the server ends.
func (s *Server) track(p *peer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = map[*peer]struct{}{}
	}
	if !s.ended {
		s.conns[p] = struct{}{}
	}
	return !s.ended
}

func (s *Server) untrack(p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, p)
}

func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	refused := errors.New("nobody is admitted")
	if s.Admit != nil {
		refused = s.Admit(conn)
	}
	p, err := newPeer(s, conn)
	if err != nil {
		s.Log.Error("serve a connection", "error", err)
		return
	}
	if refused != nil {
		s.Log.Warn("refused a connection", "error", refused)
		_ = p.send(reply{Refused: refused.Error()}) // it may have gone
		return
	}
	if !s.track(p) {
		return
	}
	defer s.untrack(p)
	if err = p.send(reply{Ready: true}); err == nil {
		if err = p.unlock(); err == nil {
			err = p.listen()
		}
		s.Log.Debug("a host has gone", "why", err)
	}
	p.leave()
}

// A peer is one host that is connected.
type peer struct {
	*line
	server *Server
	ctx    context.Context
	gone   context.CancelCauseFunc
	work   sync.WaitGroup

	// owner is what its questions are known by, once it has shown its secret. The
	// prompter binds their IDs to it.
	owner string

	mu      sync.Mutex
	asks    map[string]context.CancelFunc // that it waits for here, by ID
	answers int                           // that are being taken
	forget  []func()
}

func newPeer(s *Server, conn net.Conn) (*peer, error) {
	l, err := newLine(conn)
	p := &peer{line: l, server: s, asks: map[string]context.CancelFunc{}}
	p.ctx, p.gone = context.WithCancelCause(context.Background())
	return p, err
}

// leave releases the host's questions; it may come back for them.
func (p *peer) leave() {
	p.gone(approval.ErrDetached)
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.forget {
		f()
	}
}

// unlock wants the key before all else. A peer that leaves without a message
// has only tested whether somebody listens.
func (p *peer) unlock() error {
	var r request
	err := p.receive(&r)
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) { // it has not read that the relay is ready
		return err
	}
	if err == nil && subtle.ConstantTimeCompare([]byte(r.Key), []byte(p.server.key)) == 1 {
		if len(r.Secret) < minSecret {
			return errors.New("a secret is too short to be one")
		}
		p.owner = ownerOf(r.Secret)
		return nil
	}
	refused := peercred.Refuse(p.conn, "it has not the key of the socket, so it may be a host that connects for a guest")
	p.server.Log.Warn("refused a connection", "error", refused)
	if p.server.Keyless != nil {
		p.server.Keyless(refused)
	}
	return refused
}

// ownerOf names the holder of a secret without revealing it: the name is kept
// with the questions.
func ownerOf(secret string) string {
	d := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(d[:])
}

func (p *peer) listen() error {
	for {
		var r request
		if err := p.receive(&r); err != nil {
			return err
		}
		if err := p.take(&r); err != nil {
			return err
		}
	}
}

// take begins to serve a request.
func (p *peer) take(r *request) error {
	switch {
	case r.Hello != nil:
		return p.hello(*r.Hello)
	case r.Ask != nil:
		return p.ask(*r.Ask)
	case r.Withdraw != "":
		p.withdraw(r.Withdraw)
	case r.Retract != nil:
		r.Retract.Owner = p.owner // so that it is another's question to the prompter, unless it is this peer's
		p.server.Prompter.Retract(*r.Retract)
	case r.Answer != nil:
		return p.answer(r.Answer)
	}
	return nil
}

func (p *peer) hello(h hello) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.Session == "" || len(p.forget) >= maxSession {
		return errors.New("a host has no session, or too many")
	}
	p.forget = append(p.forget, p.server.Prompter.Register(p.owner, h.Session, h.Parent))
	return nil
}

// ask waits for the answer in the background. That it is asked makes no question
// the peer's: the prompter refuses an ID that is of another owner.
func (p *peer) ask(q approval.Question) error {
	q.Owner = p.owner
	ctx, cancel := context.WithCancel(p.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asks[q.ID] != nil || len(p.asks) >= maxAsks {
		cancel()
		return errors.New("a question is asked twice, or too many wait")
	}
	p.asks[q.ID] = cancel
	p.work.Go(func() {
		defer cancel()
		a, err := p.server.Prompter.Ask(ctx, q)
		p.mu.Lock()
		delete(p.asks, q.ID)
		p.mu.Unlock()
		if errors.Is(err, approval.ErrDetached) || errors.Is(err, approval.ErrClosed) {
			p.conn.Close() // the client asks the next relay again
			return
		}
		r := reply{ID: q.ID, Answer: &a}
		if err != nil {
			r = reply{ID: q.ID, Failed: failed(err)}
		}
		_ = p.send(r) // it has closed the connection then, and asks anew
	})
	return nil
}

func (p *peer) withdraw(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.asks[id]; cancel != nil {
		cancel()
	}
}

// answer takes an answer in the background. A host answers only its own
// questions, at the terminal of its session.
func (p *peer) answer(a *answer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.Number == 0 || p.answers >= maxAnswers {
		return errors.New("an answer has no number, or too many are being taken")
	}
	p.answers++
	p.work.Go(func() {
		r := reply{Number: a.Number}
		if rec, err := p.settle(a); err != nil {
			r.Failed = failed(err)
		} else {
			r.Record = shown(rec)
		}
		p.mu.Lock()
		p.answers--
		p.mu.Unlock()
		_ = p.send(r) // it has closed the connection then
	})
	return nil
}

func (p *peer) settle(a *answer) (approval.Record, error) {
	if !p.server.Prompter.Owns(p.ctx, p.owner, a.ID) {
		return approval.Record{}, approval.ErrUnknown
	}
	return p.server.Prompter.Answer(p.ctx, a.ID, a.Answer)
}
