package dockerapi

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Bounds of what is published at a time. Each port is a descriptor of the session's
// host process, and each connection takes two.
const (
	maxConnections = 128 // to one port
	maxListeners   = 256 // ports of a session
	maxJoined      = 512 // connections to all of them; more are reset
)

// pause is how long a port waits after it could not take a connection.
const pause = 10 * time.Millisecond

// A port is a published one while its container runs: a listener at the
// guest's loopback, whose connections go to the containers'.
type port struct {
	published
	of       *Broker
	listener *net.TCPListener
	dial     func(uint16) (*os.File, error)

	mu     sync.Mutex
	live   map[net.Conn]bool
	closed bool
}

// openPorts takes the guest's ports for c. A port that was free to choose stays
// what it was when the container ran before.
func (b *Broker) openPorts(c *child) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ports) > 0 || b.o.Network == nil {
		return nil
	}
	for i := range c.wanted.ports {
		want := &c.wanted.ports[i]
		if !take(b.listeners) {
			c.shutPorts()
			return refuse(RuleLimit, "stop other containers", "%d ports of this session's containers are published", maxListeners)
		}
		l, err := b.o.Network.Listen(want.guest)
		if err != nil {
			<-b.listeners
			c.shutPorts()
			if errors.Is(err, syscall.EADDRINUSE) {
				return refuse(RuleConflict, "use another, or none", "port %d of the guest's loopback is already allocated", want.guest).status(http.StatusInternalServerError)
			}
			return err
		}
		want.guest = uint16(l.Addr().(*net.TCPAddr).Port)
		p := &port{published: *want, of: b, listener: l, dial: b.o.Network.Dial, live: map[net.Conn]bool{}}
		c.ports = append(c.ports, p)
		if !b.enter(&b.work) {
			c.shutPorts()
			return refuse(RuleConflict, "", "the session ends")
		}
		go func() {
			defer b.work.Done()
			p.accept()
		}()
	}
	return nil
}

// take takes a slot if there is one.
func take(slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (c *child) closePorts() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shutPorts()
}

// shutPorts needs c.mu.
func (c *child) shutPorts() {
	for _, p := range c.ports {
		p.close()
	}
	c.ports = nil
}

func (p *port) accept() {
	slots := make(chan struct{}, maxConnections)
	for {
		slots <- struct{}{}
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			<-slots
			time.Sleep(pause) // there are no descriptors, for example, until others are closed
			continue
		}
		if !take(p.of.joined) {
			<-slots
			reset(conn)
			continue
		}
		go func() {
			defer func() { <-p.of.joined; <-slots }()
			p.join(conn)
		}()
	}
}

// join carries one connection. A port without a listener resets it.
func (p *port) join(outer net.Conn) {
	defer outer.Close()
	f, err := p.dial(p.container)
	if err != nil {
		reset(outer)
		return
	}
	inner, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return
	}
	defer inner.Close()
	if p.enter(outer) && p.enter(inner) {
		both(outer, outer, inner, inner)
	}
	p.leave(outer, inner)
}

func reset(conn net.Conn) {
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetLinger(0) // it ends either way
	}
	conn.Close()
}

func (p *port) enter(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.live[c] = true
	}
	return !p.closed
}

func (p *port) leave(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.live, c)
	}
}

// close is called once.
func (p *port) close() {
	p.listener.Close()
	<-p.of.listeners
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.live {
		c.Close()
	}
}

// both carries bytes both ways until both have ended. The end of one way is
// passed on as such (half-close), an error ends both.
func both(a io.Writer, fromA io.Reader, b io.Writer, fromB io.Reader) {
	var ways sync.WaitGroup
	ways.Go(func() { carry(b, fromA, a) })
	carry(a, fromB, b)
	ways.Wait()
}

// carry copies, and then ends to; back is the other way's writer.
func carry(to io.Writer, from io.Reader, back io.Writer) {
	_, err := io.Copy(to, from)
	if c, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		err = c.CloseWrite()
	}
	if err != nil {
		for _, w := range []io.Writer{to, back} {
			if c, ok := w.(io.Closer); ok {
				c.Close()
			}
		}
	}
}

// A portMap is how Docker shows the ports of one container.
type portMap map[string][]portBinding

// portMap shows what is published now; what is only exposed has no binding.
func (c *child) portMap() portMap {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := portMap{}
	for _, e := range c.wanted.exposed {
		out[e] = nil
	}
	for _, p := range c.ports {
		name := strconv.Itoa(int(p.container)) + "/tcp"
		out[name] = append(out[name], portBinding{HostIP: "127.0.0.1", HostPort: strconv.Itoa(int(p.guest))})
	}
	return out
}

// A listedPort is how Docker lists a port.
type listedPort struct {
	IP          string `json:",omitempty"`
	PrivatePort uint16
	PublicPort  uint16 `json:",omitempty"`
	Type        string
}

func (c *child) listedPorts() []listedPort {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []listedPort{}
	for _, p := range c.ports {
		list = append(list, listedPort{IP: "127.0.0.1", PrivatePort: p.container, PublicPort: p.guest, Type: "tcp"})
	}
	return list
}
