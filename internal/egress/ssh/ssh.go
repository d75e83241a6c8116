// Package ssh stands between a guest's SSH client and a git server. The guest's
// connection ends here, with a host key of the session's own. Its command is
// read as a git command, and a push is read to its refs. Only then does it go
// on to the real host, whose key is pinned by the user's known_hosts, with the
// user's keys. The guest never talks to the real server's SSH, and never holds
// a key.
package ssh

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/bawn-dev/bawn/internal/egress/git"
	"github.com/bawn-dev/bawn/internal/egress/hostkey"
)

// handshake bounds how long either side may take until it has authenticated.
const handshake = 30 * time.Second

// A HostKey is the key by which one session's guest knows us.
type HostKey struct{ signer ssh.Signer }

// NewHostKey makes a key of ECDSA with P-256 (RFC 5656), which every client
// knows. An Ed25519 key costs each session a millisecond: Go computes the
// curve's tables when the first is made.
func NewHostKey() (HostKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return HostKey{}, err
	}
	signer, err := ssh.NewSignerFromSigner(private)
	return HostKey{signer}, err
}

// Fingerprint returns the key's, "SHA256:…", as ssh prints it.
func (k HostKey) Fingerprint() string { return ssh.FingerprintSHA256(k.signer.PublicKey()) }

// KnownHosts returns lines of known_hosts by which ssh accepts the key for
// hosts, each "name" or "name:port". ssh accepts a key that any of its files
// has, so these lines work from another file, whatever the user's own
// known_hosts says. They go where ssh looks by itself, /etc/ssh/ssh_known_hosts
// or ssh_known_hosts2, or to any place with [Environment].
func (k HostKey) KnownHosts(hosts []string) []byte {
	var b strings.Builder
	for _, h := range hosts {
		b.WriteString(knownhosts.Line([]string{h}, k.signer.PublicKey()) + "\n")
	}
	return []byte(b.String())
}

// Environment returns the variables that make git's ssh read the known_hosts
// file at path in addition to those that it reads anyway. The file holds
// public keys and may be readable for everybody. path has no space or quote.
func Environment(path string) []string {
	return []string{"GIT_SSH_COMMAND=ssh -o 'GlobalKnownHostsFile=" + path + " /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2'"}
}

// A Request is a guest's request to a host, as [Server.Permit] judges it.
type Request struct {
	Host string
	Port uint16
	User string // the user as whom the guest logs in: "git"

	// Permit is asked twice. Operation has its repository when the guest has
	// sent its command (a push is Discovery then) and, for a push, everything
	// when its refs have been read.
	Operation git.Operation
}

// A Use is one signature that is about to be made with a key of the user's.
type Use struct {
	Host        string
	Port        uint16
	User        string
	Fingerprint string // "SHA256:…"
}

// A Server ends the guests' connections. All fields but Inspector and Named must be set:
// a Server without one of them refuses.
type Server struct {
	HostKey HostKey

	// Dial connects to the real host.
	Dial func(ctx context.Context, host string, port uint16) (net.Conn, error)

	// Known are the host keys that the user has accepted.
	Known *hostkey.Known

	// Keys are the user's keys.
	Keys KeySource

	// Permit says whether a request may go on; its error is the reason, which
	// the guest reads.
	Permit func(context.Context, Request) error

	// Named returns the operation with the path that is judged and sent: a leading
	// slash may be left out. Nil leaves all as they are.
	Named func(Request) git.Operation

	// Used records the use of a key before it happens. Its error prevents it.
	Used func(Use) error

	Inspector git.Inspector

	// Room is shared by all Servers of a guest.
	Room *Room
}

// Limits of a Room. A session of SSH holds up to 2 MiB of what its guest sends and as
// much of what the host sends, whether or not it is read (channelWindowSize in
// golang.org/x/crypto/ssh); a connection holds a packet of 256 KiB.
const (
	maxConnections = 64
	maxSessions    = 32
)

// A Room bounds the memory that the connections of one guest take.
type Room struct{ connections, sessions chan struct{} }

// NewRoom returns an empty room: for 64 connections and, in all of them together, 32
// sessions.
func NewRoom() *Room {
	return &Room{connections: make(chan struct{}, maxConnections), sessions: make(chan struct{}, maxSessions)}
}

// enter waits for a place of a connection. leave gives it back.
func (r *Room) enter(ctx context.Context) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	select {
	case r.connections <- struct{}{}:
		return func() { <-r.connections }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("ssh with the guest: it has %d connections already, which is the limit; end some", maxConnections)
	}
}

func (s *Server) check() error {
	if s.HostKey.signer == nil || s.Dial == nil || s.Known == nil || s.Keys == nil || s.Permit == nil || s.Used == nil || s.Room == nil {
		return errors.New("ssh relay is not set up: want all of HostKey, Dial, Known, Keys, Permit, Used and Room")
	}
	return nil
}

// Serve talks SSH with the guest on conn, which wanted to reach host and port,
// until the guest or ctx ends it, and closes conn. A refusal is told to the
// guest and is no error; an error is a connection that did not become one.
func (s *Server) Serve(ctx context.Context, conn net.Conn, host string, port uint16) error {
	defer conn.Close()
	if err := s.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	leave, err := s.Room.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	config := &ssh.ServerConfig{NoClientAuth: true, ServerVersion: "SSH-2.0-bawn", MaxAuthTries: 6}
	config.AddHostKey(s.HostKey.signer)
	if err := conn.SetDeadline(time.Now().Add(handshake)); err != nil {
		return fmt.Errorf("ssh with the guest: %w", err)
	}
	guest, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return fmt.Errorf("ssh with the guest: %w", err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return fmt.Errorf("ssh with the guest: %w", err)
	}
	go ssh.DiscardRequests(requests) // port forwarding and all else: refused
	to := target{s, host, port, guest.User()}
	to.accept(ctx, channels)
	return nil
}

// A target is where the guest of one connection wants to go.
type target struct {
	*Server
	host string
	port uint16
	user string
}

func (t target) request(op git.Operation) Request {
	op.User = t.user
	return Request{Host: t.host, Port: t.port, User: t.user, Operation: op}
}

func (t target) address() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

// validUser keeps names out that a log or a person would read differently.
func validUser(user string) bool {
	odd := func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsPrint(r) || strings.ContainsRune(" '\"\\", r)
	}
	return user != "" && len(user) <= 128 && !strings.HasPrefix(user, "-") && !strings.ContainsFunc(user, odd)
}

// connect opens the connection to the real host.
func (t target) connect(ctx context.Context) (*ssh.Client, error) {
	algorithms, err := t.Known.Algorithms(t.host, t.port)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	keys, done, err := t.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("the user's ssh keys: %w", err)
	}
	defer done()
	conn, err := t.Dial(ctx, t.host, t.port)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	outward, channels, requests, err := ssh.NewClientConn(conn, t.address(), &ssh.ClientConfig{
		User: t.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(t.watched(keys)...)}, HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error { return t.Known.Check(t.host, t.port, key) },
	})
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("ssh to %q as %q: %w", t.host, t.user, err)
	}
	return ssh.NewClient(outward, channels, requests), nil
}
