package gvisor

import (
	"net"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/netlink"
	"github.com/bawn-dev/bawn/internal/sandbox/inside/stream"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
)

// A Joined is a gateway in a network namespace of its own, to which somebody
// else's was joined. It lasts as long as one of its sockets.
type Joined struct {
	Files []*os.File // that carry the network, in the order of native.GuestNetwork

	listeners []net.Listener
	calls     chan func()   // done by a thread in the namespace
	over      chan struct{} // closed by Close
}

// Join makes the gateway, and puts the guest's end of the link into the network
// namespace of the process pid, which must hold no device but lo; UpGuest does the
// rest there. It takes CAP_NET_ADMIN over both, and CAP_SYS_ADMIN.
func (g *Gateway) Join(pid int) (*Joined, error) {
	j := &Joined{calls: make(chan func()), over: make(chan struct{})}
	made := make(chan error)
	go func() {
		_ = onOwnThread(func() error {
			made <- j.set(g, pid)
			j.serve()
			return nil
		})
	}()
	if err := <-made; err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

// set makes the gateway in a new namespace, that of the calling thread from now
// on.
func (j *Joined) set(g *Gateway, pid int) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	if err := native.BringUpLoopback(); err != nil {
		return err
	}
	var err error
	if j.Files, err = g.listenAll(); err != nil {
		return err
	}
	if err := netlink.Do(unix.NETLINK_NETFILTER, g.ruleset()); err != nil {
		return err
	}
	if err := netlink.Do(unix.NETLINK_ROUTE, []netlink.Message{netlink.AddVeth(gatewayLink, guestLink, pid)}); err != nil {
		return err
	}
	if err := g.upLink(); err != nil {
		return err
	}
	j.listeners, err = g.listenHostPorts()
	for i, l := range j.listeners {
		go stream.Forward(l, netip.AddrPortFrom(loopback, g.HostPorts[i]), j.reach)
	}
	return err
}

// serve does what is asked of a thread in the namespace, where anybody asks.
func (j *Joined) serve() {
	for len(j.listeners) > 0 {
		select {
		case f := <-j.calls:
			f()
		case <-j.over:
			return
		}
	}
}

// reach connects from the gateway's namespace.
func (j *Joined) reach(to netip.AddrPort) (c net.Conn, err error) {
	done := make(chan struct{})
	select {
	case j.calls <- func() {
		defer close(done)
		c, err = stream.Reach(to)
	}:
		<-done
		return c, err
	case <-j.over:
		return nil, net.ErrClosed
	}
}

// Close stops carrying ports of the host; once is enough. The sockets in Files
// are their owner's.
func (j *Joined) Close() {
	close(j.over)
	for _, l := range j.listeners {
		l.Close()
	}
}

// UpGuest configures the guest's end, in the calling thread's namespace.
func (g *Gateway) UpGuest() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return g.upGuest()
}
