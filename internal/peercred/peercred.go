// Package peercred tells who is at the other end of a unix socket, and whether
// it is a guest: guests reach no frontend of the human's and can't answer for
// anybody.
//
// A guest's own claims, such as its environment or its program's name, are not
// used. Traces that it can't remove are: namespaces, seccomp filters, and its
// ancestors.
package peercred

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/bawn-dev/bawn"
)

// maxAncestors ends a walk up the tree of processes that is changed meanwhile.
const maxAncestors = 1024

// A RefusedError says who may not speak to us, and why.
type RefusedError struct {
	PID, UID int
	Why      string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("process %d of user %d is refused: %s", e.PID, e.UID, e.Why)
}

// RuleRefused is the rule in the record of a peer that one of our sockets refused.
const RuleRefused = "builtin:peer-refused"

// Event is the record of a refusal at a socket of that name.
func Event(socket string, refused error, at time.Time) bawn.Event {
	event := bawn.Event{
		Time: at, Kind: "relay", Operation: "connect", Resource: socket,
		Requested: bawn.Deny, Resolved: bawn.Deny, Source: "auto", Rule: RuleRefused, Reason: refused.Error(),
	}
	var peer *RefusedError
	if errors.As(refused, &peer) {
		event.Details = map[string]string{"pid": fmt.Sprint(peer.PID), "uid": fmt.Sprint(peer.UID)}
	}
	return event
}

// Refuse returns why the peer of conn is refused, for a reason of the caller's.
func Refuse(conn net.Conn, why string) error {
	p, err := Of(conn)
	if err != nil {
		return fmt.Errorf("%s; %w", why, err)
	}
	defer p.Close()
	return p.refuse(why)
}

// A Peer is the process that made the connection. It is known by more than its
// number, where the kernel can (SO_PEERPIDFD, Linux 6.5).
type Peer struct {
	PID, UID int
	fd       *os.File // a pidfd, or nil
}

// Of returns the connected process. Close it.
func Of(conn net.Conn) (*Peer, error) {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("a %T has no peer that could be told; want a unix socket", conn)
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return nil, err
	}
	var p *Peer
	failed := raw.Control(func(fd uintptr) { p, err = of(int(fd)) })
	if err := errors.Join(failed, err); err != nil {
		return nil, fmt.Errorf("who connects can't be told: %w", err)
	}
	return p, nil
}

// Close releases the process.
func (p *Peer) Close() error {
	if p.fd == nil {
		return nil
	}
	return p.fd.Close()
}

// Admit returns nil if the peer of conn is a process of our own user and not a
// guest. hosts reports whether a process hosts sessions. Such a process is refused,
// since it connects for its guests as well. Its descendants are refused too, which
// matters where nothing else identifies a guest. A process that answers other
// processes' system calls is refused as well, since hosts may not know it. hosts
// may be nil, for hosts themselves. The error is a *RefusedError, or says which
// fact is unknown.
func Admit(conn net.Conn, hosts func(pid int) bool) error {
	p, err := Of(conn)
	if err != nil {
		return err
	}
	defer p.Close()
	return p.admit(hosts)
}

func (p *Peer) admit(hosts func(pid int) bool) error {
	if p.UID != os.Geteuid() {
		return p.refuse(fmt.Sprintf("this is for user %d only", os.Geteuid()))
	}
	if err := p.outside(hosts); err != nil {
		return err
	}
	return p.lives()
}

func (p *Peer) refuse(why string) error { return &RefusedError{p.PID, p.UID, why} }

// outside refuses a peer that is more confined than we are. Namespaces and
// filters are inherited and can't be left, so its ancestors need not be asked
// for these.
func (p *Peer) outside(hosts func(pid int) bool) error {
	us, err := look(os.Getpid())
	if err != nil {
		return err
	}
	who, err := look(p.PID)
	if err != nil {
		return p.refuse(fmt.Sprintf("it can't be told whether it is a guest: %v", err))
	}
	if why := us.differs(who); why != "" {
		return p.refuse(why + "; only processes outside of every sandbox may speak here")
	}
	if hosts == nil {
		return nil
	}
	does, err := supervises(p.PID)
	if err != nil {
		return p.refuse(fmt.Sprintf("it can't be told whether it connects for a guest: %v", err))
	}
	if does {
		return p.refuse("it answers system calls of others, so it may connect for a guest")
	}
	return p.below(hosts)
}

// below refuses a peer that is a host, or that a host has started.
func (p *Peer) below(hosts func(pid int) bool) error {
	pid := p.PID
	for range maxAncestors {
		if hosts(pid) {
			return p.refuse(fmt.Sprintf("process %d, which it is or which has started it, hosts a session, so it may be a guest", pid))
		}
		parent, err := parentOf(pid)
		if err != nil {
			return p.refuse(fmt.Sprintf("it can't be told what has started it: %v", err))
		}
		if parent <= 1 {
			return nil
		}
		pid = parent
	}
	return p.refuse("its ancestors have no end")
}
