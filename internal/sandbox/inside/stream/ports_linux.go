package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A sandbox numbers the connections that it wants with this bit set, the host
// its channels without it.
const fromSandbox = 1 << 31

// How many connections of a sandbox there are at a time. The sandbox lets others
// wait; a host that sees more speaks to something else.
const (
	mostPorts  = 256
	portsBound = 2 * mostPorts // those that have ended at one end alone count at the other
)

// Ports are what a sandbox's connections lead to.
type Ports struct {
	Open []uint16 // those that the sandbox may ask for
	// Reach connects for the sandbox; the file is a connected socket. It is called
	// from several goroutines, and bounds its time itself.
	Reach func(port uint16) (*os.File, error)
}

// OpenPorts is Open, with connections that the sandbox asks for.
func OpenPorts(wire *os.File, p Ports) (*Host, error) {
	h, err := open(wire)
	if err != nil {
		return nil, err
	}
	h.ports = p
	h.serve()
	return h, nil
}

// wanted handles a sandbox's request for a connection. One for a port that is not open,
// or with a number that is not its to give, ends the tunnel: our own end asks
// for no such thing.
func (h *Host) wanted(id uint32, port uint16) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	live := len(h.reaching)
	for _, known := range []bool{h.reaching[id], h.sources[id] != nil, h.sinks[id] != nil} {
		if known {
			return fmt.Errorf("connection %d is asked for twice", id)
		}
	}
	for have := range h.sources {
		if have&fromSandbox != 0 {
			live++
		}
	}
	for have := range h.sinks {
		if have&fromSandbox != 0 && h.sources[have] == nil {
			live++
		}
	}
	if id&fromSandbox == 0 || !slices.Contains(h.ports.Open, port) || live >= portsBound {
		return fmt.Errorf("a connection to port %d, as number %d beside %d, is not the sandbox's to ask for", port, id, live)
	}
	h.reaching[id] = true
	go h.reach(id, port)
	return nil
}

// reach connects, and reports the outcome.
func (h *Host) reach(id uint32, port uint16) {
	var from *source
	var to *sink
	f, err := h.ports.Reach(port)
	if err == nil {
		from, to, err = h.carried(id, f)
	}
	h.mu.Lock()
	delete(h.reaching, id)
	h.mu.Unlock()
	if h.send(frame{kindDialed, id, number(errnoOf(err))}) == nil && err == nil {
		h.start(from, to)
	}
}

// carried makes a channel of a socket, which it takes.
func (t *tunnel) carried(id uint32, f *os.File) (*source, *sink, error) {
	fd, err := dup(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fd))
	}
	return t.both(id, fd, true)
}

// errnoOf is what a frame says of an error; 0 for nil.
func errnoOf(err error) uint32 {
	if err == nil {
		return 0
	}
	var errno unix.Errno
	if !errors.As(err, &errno) || errno == 0 {
		errno = unix.EIO
	}
	return uint32(errno)
}

// ports listens, in a sandbox, at ports of loopback.
type ports struct {
	room chan struct{}

	mu      sync.Mutex
	last    uint32
	waiting map[uint32]*net.TCPConn
}

// carryPorts has connections to ports of loopback, of both families where there
// are both, go through the tunnel.
func (g *guest) carryPorts(words []string) error {
	g.ports = &ports{room: make(chan struct{}, mostPorts), waiting: map[uint32]*net.TCPConn{}}
	for _, w := range words {
		port, err := strconv.ParseUint(w, 10, 16)
		if err != nil {
			return fmt.Errorf("port %q; want a number up to 65535", w)
		}
		for i, own := range []string{"127.0.0.1", "::1"} {
			l, err := net.Listen("tcp", net.JoinHostPort(own, w))
			if err != nil && i == 0 {
				return err
			}
			if err == nil {
				go g.carryPort(l, uint16(port))
			}
		}
	}
	return nil
}

// carryPort asks for a connection for each that comes.
func (g *guest) carryPort(l net.Listener, port uint16) {
	for {
		g.ports.room <- struct{}{}
		c, err := l.Accept()
		if err != nil {
			<-g.ports.room
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(pause)
			continue
		}
		conn, ok := c.(*net.TCPConn)
		if !ok {
			c.Close()
			<-g.ports.room
			continue
		}
		if err := g.send(frame{kindDial, g.ports.wait(conn), binary.BigEndian.AppendUint16(nil, port)}); err != nil {
			return // the tunnel has ended, and the sandbox with it
		}
	}
}

// wait gives a connection its number.
func (p *ports) wait(c *net.TCPConn) uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = (p.last + 1) % fromSandbox
	id := p.last | fromSandbox
	p.waiting[id] = c
	return id
}

// dialed goes on with a connection once the host has answered.
func (g *guest) dialed(id, errno uint32) error {
	if g.ports == nil {
		return fmt.Errorf("connection %d was not asked for", id)
	}
	g.ports.mu.Lock()
	conn := g.ports.waiting[id]
	delete(g.ports.waiting, id)
	g.ports.mu.Unlock()
	if conn == nil {
		return fmt.Errorf("connection %d was not asked for", id)
	}
	if errno != 0 {
		_ = conn.SetLinger(0) // a reset says it best
		<-g.ports.room
		return conn.Close()
	}
	f, err := conn.File()
	if err := errors.Join(err, conn.Close()); err != nil {
		return err
	}
	from, to, err := g.carried(id, f)
	if err != nil {
		return err
	}
	g.start(from, to)
	go func() {
		<-from.done
		<-to.done
		<-g.ports.room
	}()
	return nil
}
