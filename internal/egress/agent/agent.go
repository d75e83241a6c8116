// Package agent is an ssh-agent for guests: it stands before the user's own and
// signs nothing but logins to hosts that are permitted. Before each signature
// it requires proof of which server the connection leads to, from the server
// itself. That is the session-bind extension of OpenSSH 8.9 and later
// (PROTOCOL.agent, section 1), in which the server has signed the session's id.
package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/bawn-dev/bawn/internal/egress/hostkey"
)

// maxConns is how many connections are served at once.
const maxConns = 32

// A Host is a server by its name in known_hosts.
type Host struct {
	Name string
	Port uint16
}

// A Use is one signature that is about to be made.
type Use struct {
	Host        Host   // where the login goes; zero for a signature of a text
	User        string // who logs in there
	Namespace   string // of a signature of a text: "git" for commits
	Fingerprint string // of the key: "SHA256:…"
}

// An Agent serves guests. Its zero value refuses everything.
type Agent struct {
	// Upstream connects to the user's own agent.
	Upstream func(context.Context) (net.Conn, error)

	// Known are the host keys that the user has accepted.
	Known *hostkey.Known

	// Hosts returns the hosts to which the guest may log in, at the time of the
	// call. A server belongs to them if known_hosts has its key under that
	// name.
	Hosts func() []Host

	// Keys says which keys the guest may see and use; nil means no keys.
	Keys func(ssh.PublicKey) bool

	// Namespaces are those in which texts may be signed (ssh-keygen -Y sign;
	// git signs commits in "git"). Such a signature says that the user has
	// written the text.
	Namespaces []string

	// Record takes note of a use before it happens; its error prevents it.
	Record func(Use) error

	// Refused, if not nil, hears why a request was refused. The guest does
	// not: the protocol has no words for it.
	Refused func(error)
}

// Serve answers connections on l until ctx ends or l fails, and closes l.
func (a *Agent) Serve(ctx context.Context, l net.Listener) error {
	if a.Upstream == nil || a.Known == nil || a.Hosts == nil || a.Keys == nil || a.Record == nil {
		return errors.Join(errors.New("ssh-agent filter is not set up: want all of Upstream, Known, Hosts, Keys and Record"), l.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	places := make(chan struct{}, maxConns)
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("ssh-agent filter: %w", errors.Join(err, l.Close()))
		}
		select {
		case places <- struct{}{}:
			all.Go(func() {
				defer func() { <-places }()
				a.serve(ctx, conn)
			})
		default:
			a.refused(errors.New("too many connections to the ssh-agent at once"))
			conn.Close()
		}
	}
}

// At returns a function for [Agent.Upstream] that connects to the socket at a
// path, SSH_AUTH_SOCK.
func At(path string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
}

func (a *Agent) refused(err error) {
	if a.Refused != nil {
		a.Refused(err)
	}
}
