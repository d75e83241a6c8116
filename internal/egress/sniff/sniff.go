// Package sniff recognises the first bytes of a client: a TLS ClientHello, the
// head of an HTTP/1 request, the preface of HTTP/2, the banner of SSH, or
// something else. It reads, and decides nothing: the relay holds the answer
// against the name that was dialled.
package sniff

import (
	"errors"
	"io"
	"net"
	"slices"
)

// A Kind is a client's protocol. The zero Kind is not known.
type Kind uint8

const (
	Unknown Kind = iota
	TLS
	HTTP1
	HTTP2 // with prior knowledge (RFC 9113 section 3.3): its host comes in a later, compressed frame
	SSH
)

// String returns a word for the log.
func (k Kind) String() string {
	names := []string{"unknown", "tls", "http/1", "http/2", "ssh"}
	if int(k) >= len(names) {
		return "invalid"
	}
	return names[k]
}

// NoServerName is the Problem of a sound ClientHello without a server's name,
// as clients send it that were given an address.
const NoServerName = "the ClientHello names no server"

// A Hello describes the first bytes. Where Problem is not "", Host is "".
type Hello struct {
	Kind    Kind
	Host    string   // in normal form (hostname.NormalASCII): of TLS the server name, of HTTP/1 what Host and target agree on
	Port    uint16   // that HTTP/1 names beside the host, or 0
	Method  string   // of HTTP/1
	Accept  string   // of HTTP/1: which answer the client can read
	Upgrade string   // of HTTP/1: the offered upgrade, such as "h2c" or "websocket"
	ALPN    []string // of TLS, in the client's order
	// ECH: the ClientHello has the extension encrypted_client_hello (RFC 9849),
	// so the server may read another name than Host. Browsers send the extension
	// filled with random bytes to every host, and only the server can tell these
	// from a name. curl, OpenSSL, Go, Node and Python do so only when told.
	ECH     bool
	Problem string // why bytes of this kind are not acceptable, or ""
}

// Limits bound the bytes that are read before the client has sent enough. A
// zero limit stands for its default.
type Limits struct {
	Hello int // a ClientHello with the headers of its records; default 64 KiB, as crypto/tls has it
	Head  int // the head of an HTTP/1 request; default 16 KiB, as Node has it
}

const (
	defaultHello = 64 << 10
	defaultHead  = 16 << 10
	firstRead    = 2 << 10 // most hellos and heads are shorter
	maxEmpty     = 100     // reads in a row that return nothing and no error
)

func (l Limits) orDefault() Limits {
	if l.Hello <= 0 {
		l.Hello = defaultHello
	}
	if l.Head <= 0 {
		l.Head = defaultHead
	}
	return l
}

// Read reads from conn until the client's protocol and host are clear, and returns them
// with every byte it has read. An error of conn, such as os.ErrDeadlineExceeded, comes
// with the result so far. A client that waits for its server has sent nothing: raw is
// empty. Bytes that were not understood must not be passed on. The deadline of conn is
// the caller's. An end in the middle is io.ErrUnexpectedEOF, one before the first byte
// io.EOF.
func Read(conn net.Conn, limit Limits) (hello Hello, raw []byte, err error) {
	s := scanner{limit: limit.orDefault()}
	most := max(s.limit.Hello, s.limit.Head)
	for empty := 0; empty < maxEmpty; empty++ {
		raw = slices.Grow(raw, min(max(firstRead, len(raw)), most-len(raw)))
		n, err := conn.Read(raw[len(raw):min(cap(raw), most)])
		raw = raw[:len(raw)+n]
		if n > 0 {
			empty = 0
			if s.look(raw) {
				return s.hello, raw, nil
			}
		}
		if errors.Is(err, io.EOF) && len(raw) > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return s.hello, raw, err
		}
	}
	return s.hello, raw, io.ErrNoProgress
}

// Parse says what b is, as far as that is clear: ok is false where more bytes
// would have to follow.
func Parse(b []byte, limit Limits) (hello Hello, ok bool) {
	s := scanner{limit: limit.orDefault()}
	ok = len(b) > 0 && s.look(b)
	return s.hello, ok
}
