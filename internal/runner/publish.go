//go:build linux || darwin

package runner

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/bawn-dev/bawn/internal/netrule"
)

// maxInbound bounds the connections to a guest's published ports at a time.
const maxInbound = 256

// pause is how long a port waits after it could not take a connection.
const pause = 10 * time.Millisecond

// A publisher lets programs of the host reach ports of the guest, through the
// host's loopback (isolation.ports).
type publisher struct {
	ports     []netrule.Publish
	listeners []net.Listener
	dial      func(port uint16) (*os.File, error)
	slots     chan struct{}

	mu     sync.Mutex
	closed bool
	live   map[net.Conn]bool
	done   sync.WaitGroup
}

// publish takes the host's ports, so that one that is taken is known before
// anything starts.
func publish(entries []string) (*publisher, error) {
	p := &publisher{slots: make(chan struct{}, maxInbound), live: map[net.Conn]bool{}}
	for _, entry := range entries {
		port, err := netrule.ParsePublish(entry)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port.Host))))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("publish the guest's port %d: %w", port.Guest, err), p.close())
		}
		p.ports, p.listeners = append(p.ports, port), append(p.listeners, l)
	}
	return p, nil
}

// serve connects new connections to the guest.
func (p *publisher) serve(dial func(port uint16) (*os.File, error)) {
	p.dial = dial
	for i, l := range p.listeners {
		p.done.Go(func() { p.accept(l, p.ports[i].Guest) })
	}
}

func (p *publisher) accept(l net.Listener, port uint16) {
	for {
		p.slots <- struct{}{}
		c, err := l.Accept()
		if err != nil {
			<-p.slots
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(pause) // there are no descriptors, for example, until others are closed
			continue
		}
		p.done.Go(func() {
			defer func() { <-p.slots }()
			p.join(c, port)
		})
	}
}

// join carries one connection. A port without a listener closes it.
func (p *publisher) join(outside net.Conn, port uint16) {
	defer outside.Close()
	if !p.enter(outside) {
		return
	}
	defer p.leave(outside)
	f, err := p.dial(port)
	if err != nil {
		return
	}
	inside, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return
	}
	defer inside.Close()
	if !p.enter(inside) {
		return
	}
	defer p.leave(inside)
	var both sync.WaitGroup
	both.Go(func() { carry(inside, outside) })
	carry(outside, inside)
	both.Wait()
}

// carry moves bytes one way, and passes their end on: an orderly one as such,
// and a reset as a reset, so that half an answer is not taken for all of it.
func carry(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if c, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		err = c.CloseWrite()
	}
	if err != nil { // the other way ends as well
		cut(to)
		cut(from)
	}
}

// cut ends a connection with a reset (SO_LINGER of 0, socket(7)).
func cut(c net.Conn) {
	if c, ok := c.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0) // it may be closed already
	}
	_ = c.Close()
}

// enter takes note of a connection, unless all have to end.
func (p *publisher) enter(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.live[c] = true
	return true
}

func (p *publisher) leave(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.live, c)
}

// close gives the ports back and ends every connection.
func (p *publisher) close() error {
	var errs []error
	for _, l := range p.listeners {
		errs = append(errs, l.Close())
	}
	p.mu.Lock()
	p.closed = true
	for c := range p.live {
		c.Close()
	}
	p.mu.Unlock()
	p.done.Wait()
	return errors.Join(errs...)
}
