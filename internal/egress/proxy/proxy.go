// Package proxy is for clients that insist on a proxy: CONNECT and requests
// for http:// URLs (RFC 9110 section 9.3.6, RFC 9112 section 3.2.2), and
// SOCKS 5 (RFC 1928), on one listener. It reads where the client wants to go
// and lets the relay decide; from then on the connection is like one that was
// redirected to that host and port.
package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/bawn-dev/bawn/internal/egress/head"
	"github.com/bawn-dev/bawn/internal/egress/refuse"
	"github.com/bawn-dev/bawn/internal/egress/sniff"
)

// A Kind is the way in which a client asked. The zero Kind is invalid.
type Kind uint8

const (
	_       Kind = iota
	Connect      // HTTP's CONNECT
	SOCKS5       // SOCKS 5, CONNECT
	Forward      // a request of HTTP/1 for an http:// URL
)

// String returns a word for the log.
func (k Kind) String() string {
	names := []string{"invalid", "connect", "socks5", "forward"}
	if int(k) >= len(names) {
		return names[0]
	}
	return names[k]
}

// A Request is where a client wants to go.
type Request struct {
	Kind Kind
	Host string // in normal form (hostname.NormalASCII): a name, or an address
	Port uint16 // never 0
}

// A Client has asked, and waits. Exactly one of Accept and Reject is called.
type Client struct {
	Request
	conn   net.Conn
	rest   []byte // the client's bytes after its request
	head   []byte // of Forward: the request as its server is to see it
	body   *body  // of Forward
	accept string // of HTTP: which answer the client can read
	method string
}

// maxHead is how long the head of a request may be, in bytes.
const maxHead = 16 << 10

// patience is how long an answer may take to be written.
const patience = time.Second

// Handshake reads the client's request, within the deadline that the caller has
// set on conn. Where it returns an error the client has been answered, as far
// as it could be, and conn is closed.
func Handshake(conn net.Conn) (*Client, error) {
	in := &input{conn: conn}
	b, err := in.peek(1)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	switch {
	case b[0] == socksVersion:
		return in.socks()
	case head.TokenByte(b[0]):
		return in.http()
	}
	hello, _ := sniff.Parse(in.buf, sniff.Limits{})
	err = fmt.Errorf("the first byte is %#02x; want CONNECT, a request for an http:// URL or SOCKS 5", b[0])
	return nil, errors.Join(err, refuse.Write(conn, hello, nil, refuse.Denial{Reason: err.Error()}))
}

// Accept tells the client that it is connected, and returns the connection to
// go on with. It begins with bytes that the client has sent too early, and for
// a Forward with the request in the form that a server expects. A Forward ends
// after this one request: later bytes of the client are read and dropped, so
// that no other request can hide in them.
func (c *Client) Accept() (net.Conn, error) {
	if err := c.answer(map[Kind]string{Connect: established, SOCKS5: succeeded}[c.Kind]); err != nil {
		return nil, errors.Join(err, c.conn.Close())
	}
	if c.Kind != Forward && len(c.rest) == 0 {
		return c.conn, nil
	}
	return &stream{Conn: c.conn, head: c.head, rest: c.rest, body: c.body}, nil
}

// Reject tells the client that it is denied, and closes the connection.
func (c *Client) Reject(d refuse.Denial) error {
	if c.Kind == SOCKS5 {
		return errors.Join(c.answer(notAllowed), refuse.Leave(c.conn))
	}
	return refuse.Write(c.conn, sniff.Hello{Kind: sniff.HTTP1, Method: c.method, Accept: c.accept}, nil, d)
}

// answer writes s within a second and leaves the connection without deadline
// for writing.
func (c *Client) answer(s string) error { return say(c.conn, s) }

func say(conn net.Conn, s string) error {
	if s == "" {
		return nil
	}
	if err := conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := conn.Write([]byte(s))
	return errors.Join(err, conn.SetWriteDeadline(time.Time{}))
}

// An input is a connection of which some bytes have been read ahead.
type input struct {
	conn net.Conn
	buf  []byte
}

// firstRead is how much is read at once.
const firstRead = 2 << 10

// more reads once.
func (in *input) more() error {
	var b [firstRead]byte
	n, err := in.conn.Read(b[:])
	in.buf = append(in.buf, b[:n]...)
	switch {
	case n > 0:
		return nil
	case err == nil:
		return io.ErrNoProgress
	}
	return err
}

// peek returns the next n bytes and leaves them.
func (in *input) peek(n int) ([]byte, error) {
	for len(in.buf) < n {
		if err := in.more(); err != nil {
			return nil, fmt.Errorf("reading what the client asks for: %w", err)
		}
	}
	return in.buf[:n], nil
}

// take returns the next n bytes.
func (in *input) take(n int) ([]byte, error) {
	b, err := in.peek(n)
	if err == nil {
		in.buf = in.buf[n:]
	}
	return b, err
}
