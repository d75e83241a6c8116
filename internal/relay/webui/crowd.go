package webui

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Limits of connections.
const (
	maxConnections = 512
	maxOfPeer      = 32  // of one network (see network) that has not logged in
	maxOfLoopback  = 128 // of the machine itself, where a proxy may speak for many
	maxOfDevice    = 16  // of one device that are never closed for others
	strangerTime   = 10 * time.Second
)

// A crowd counts connections, per network and in all. One over a network's share takes
// the place of that network's oldest that has not logged in. At the limit the oldest
// connection without a login is closed, so that strangers keep nobody else out.
// Connections over which a device has logged in are never closed for others.
type crowd struct {
	each, local, all int           // the limits
	idle             time.Duration // how long who has not logged in may do nothing
	refused          func(peer net.Addr, why string)

	mu        sync.Mutex
	next      uint64
	members   map[*member]struct{}
	strangers map[netip.Prefix]int
	devices   map[string]int
}

// A member is one connection.
type member struct {
	net.Conn
	crowd  *crowd
	number uint64
	peer   netip.Prefix
	device string      // "" for a stranger
	timer  *time.Timer // closes a stranger that does nothing; nil while it is busy
	turn   int         // counts timers: one that was stopped too late closes nothing
	gone   bool
}

func newCrowd(refused func(peer net.Addr, why string)) *crowd {
	return &crowd{
		each: maxOfPeer, local: maxOfLoopback, all: maxConnections, idle: strangerTime, refused: refused,
		members: map[*member]struct{}{}, strangers: map[netip.Prefix]int{}, devices: map[string]int{},
	}
}

// A countedListener is a listener whose connections are counted.
type countedListener struct {
	net.Listener
	crowd *crowd
}

// Accept returns the next connection that there is room for.
func (d *countedListener) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		m, why := d.crowd.admit(conn)
		if why != "" {
			d.crowd.refused(conn.RemoteAddr(), why)
		}
		if m != nil {
			return m, nil
		}
		_ = conn.Close() // nobody is told anything over it
	}
}

// admit counts a connection, or says why there is no room for it. One over its
// network's share takes the place of that network's oldest stranger: a full share
// keeps nobody of the same network out.
func (c *crowd) admit(conn net.Conn) (m *member, why string) {
	peer, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // connections without an address count as one peer
	m = &member{Conn: conn, crowd: c, peer: network(peer.Addr())}
	c.mu.Lock()
	defer c.mu.Unlock()
	share := c.each
	if peer.Addr().Unmap().IsLoopback() {
		share = c.local
	}
	if c.strangers[m.peer] >= share {
		c.evict(func(other *member) bool { return other.peer == m.peer })
		why = "too many connections of its network that have not logged in: the oldest of them was closed"
	}
	if len(c.members) >= c.all && !c.evict(func(*member) bool { return true }) {
		return nil, "too many connections in all, each of a device that has logged in"
	}
	c.next++
	m.number = c.next
	c.members[m] = struct{}{}
	c.strangers[m.peer]++
	return m, why
}

// evict closes the stranger that has been there longest, of those that may go.
func (c *crowd) evict(may func(*member) bool) bool {
	var oldest *member
	for m := range c.members {
		if m.device == "" && may(m) && (oldest == nil || m.number < oldest.number) {
			oldest = m
		}
	}
	if oldest == nil {
		return false
	}
	c.forget(oldest)
	_ = oldest.Conn.Close() // who serves it finds out
	return true
}

// forget takes a connection out of the count, once. The lock is held.
func (c *crowd) forget(m *member) {
	if m.gone {
		return
	}
	m.gone = true
	m.rest()
	delete(c.members, m)
	if m.device == "" {
		less(c.strangers, m.peer)
	} else {
		less(c.devices, m.device)
	}
}

func less[K comparable](m map[K]int, k K) {
	if m[k]--; m[k] <= 0 {
		delete(m, k)
	}
}

// rest stops the timer.
func (m *member) rest() {
	m.turn++
	if m.timer != nil {
		m.timer.Stop()
		m.timer = nil
	}
}

// Close closes the connection.
func (m *member) Close() error {
	m.crowd.mu.Lock()
	m.crowd.forget(m)
	m.crowd.mu.Unlock()
	return m.Conn.Close()
}

// knows notes that a device has logged in over the connection of a request.
func (c *crowd) knows(ctx context.Context, device string) {
	m, ok := ctx.Value(memberKey{}).(*member)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.gone || m.device != "" || c.devices[device] >= maxOfDevice {
		return
	}
	less(c.strangers, m.peer)
	c.devices[device]++
	m.device = device
	m.rest()
}

type memberKey struct{}

// attend is http.Server's ConnContext.
func (c *crowd) attend(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, memberKey{}, memberOf(conn))
}

// memberOf returns the connection below TLS, or nil if it belongs to no crowd.
func memberOf(conn net.Conn) *member {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	m, _ := conn.(*member)
	return m
}

// watch is http.Server's ConnState: a stranger that asks for nothing goes soon.
func (c *crowd) watch(conn net.Conn, state http.ConnState) {
	m := memberOf(conn)
	if m == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.rest()
	if (state == http.StateNew || state == http.StateIdle) && m.device == "" && !m.gone {
		turn := m.turn
		m.timer = time.AfterFunc(c.idle, func() { c.tire(m, turn) })
	}
}

// tire closes a stranger whose time is up.
func (c *crowd) tire(m *member, turn int) {
	c.mu.Lock()
	up := m.turn == turn
	if up {
		c.forget(m)
	}
	c.mu.Unlock()
	if up {
		_ = m.Conn.Close() // who serves it finds out
	}
}
