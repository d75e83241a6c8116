package sniff

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/bawn-dev/bawn/internal/egress/head"
)

// preface is the beginning of an HTTP/2 client (RFC 9113 section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// A scanner looks at a growing buffer, at each byte about once.
type scanner struct {
	limit Limits
	hello Hello
	step  func(*scanner, []byte) bool // what comes next; nil at the beginning
	at    int                         // how far step has come

	word      int    // where the method begins
	familiar  bool   // the method is one that only HTTP has
	handshake []byte // what the records carry
}

// look takes everything that was read so far and reports whether hello is
// complete.
func (s *scanner) look(b []byte) bool {
	if s.step != nil {
		return s.step(s, b)
	}
	switch {
	case b[0] == recordHandshake:
		s.hello.Kind, s.step = TLS, (*scanner).records
	case is(b, "SSH-"):
		s.hello.Kind = SSH
		return true
	case is(b, preface):
		s.hello.Kind = HTTP2
		return true
	case begins(b, "SSH-") || begins(b, preface):
		return false
	case b[0]&0x80 != 0:
		return s.oldHello(b)
	default:
		s.step = (*scanner).blank
	}
	return s.step(s, b)
}

func is(b []byte, start string) bool     { return bytes.HasPrefix(b, []byte(start)) }
func begins(b []byte, start string) bool { return bytes.HasPrefix([]byte(start), b) }

// oldHello knows the ClientHello of SSL 2.0 (RFC 5246 appendix E.2): a length
// with its highest bit set, the type 1, a version.
func (s *scanner) oldHello(b []byte) bool {
	switch {
	case len(b) > 2 && b[2] != typeClientHello, len(b) > 3 && b[3] != 0 && b[3] != 3:
		return s.unknown()
	case len(b) < 4:
		return false
	}
	return s.refuse(TLS, "the ClientHello is one of SSL 2.0")
}

// maxProblem is how many characters a Problem has at most; it quotes the
// client.
const maxProblem = 300

// refuse ends with a problem.
func (s *scanner) refuse(kind Kind, why string) bool {
	s.hello.Kind, s.hello.Problem = kind, fmt.Sprintf("%.*s", maxProblem, why)
	s.hello.Host, s.hello.Port = "", 0
	return true
}

// unknown ends with nothing known.
func (s *scanner) unknown() bool {
	s.hello = Hello{}
	return true
}

// blank skips what some servers skip before a request line: empty lines most
// of them, all that Unicode calls white space those in Python.
func (s *scanner) blank(b []byte) bool {
	for ; s.at < len(b); s.at++ {
		if strings.IndexByte("\t\n\v\f\r\x1c\x1d\x1e\x1f ", b[s.at]) < 0 {
			s.word, s.step = s.at, (*scanner).method
			return s.method(b)
		}
	}
	return s.at >= s.limit.Head && s.refuse(HTTP1, "nothing but white space comes") // which some servers skip without end
}

// familiar are methods after which nothing but a request line can follow.
// CONNECT is not among them: other protocols have that word.
var familiar = map[string]bool{
	"GET": true, "HEAD": true, "POST": true, "PUT": true, "DELETE": true, "OPTIONS": true, "PATCH": true, "TRACE": true,
}

// method reads the first word, which is a token or no HTTP.
func (s *scanner) method(b []byte) bool {
	for ; s.at < len(b); s.at++ {
		c := b[s.at]
		if head.TokenByte(c) {
			continue
		}
		s.familiar = familiar[string(b[s.word:s.at])]
		switch blank := c == ' ' || c == '\t'; {
		case !blank && s.familiar:
			return s.refuse(HTTP1, fmt.Sprintf("the method is followed by %q; want a space", c))
		case !blank || s.at == s.word:
			return s.unknown()
		}
		s.step = (*scanner).firstLine
		return s.firstLine(b)
	}
	return s.at >= s.limit.Head && s.unknown()
}

// firstLine reads on until the line says that it is HTTP's, or can't be. A
// familiar method without a version is HTTP/0.9.
func (s *scanner) firstLine(b []byte) bool {
	for ; s.at < len(b); s.at++ {
		switch c := b[s.at]; {
		case c == '\n':
			return s.lineEnds(b)
		case c < ' ' && c != '\t' && c != '\r' && !s.familiar:
			return s.unknown()
		}
	}
	return s.at >= s.limit.Head && s.refuse(HTTP1, "the request line is too long")
}

func (s *scanner) lineEnds(b []byte) bool {
	line := bytes.ToUpper(b[s.word:s.at])
	versioned := bytes.Contains(line, []byte(" HTTP/")) || bytes.Contains(line, []byte("\tHTTP/"))
	switch {
	case !s.familiar && !versioned:
		return s.unknown()
	case !versioned:
		return s.refuse(HTTP1, "the request line has no version")
	}
	s.hello.Kind, s.step = HTTP1, (*scanner).head
	return s.head(b)
}

// head waits for the end of the head and reads it.
func (s *scanner) head(b []byte) bool {
	end := head.End(b[s.word:], s.at-s.word)
	s.at = len(b)
	switch {
	case end > s.limit.Head || end < 0 && len(b) >= s.limit.Head:
		return s.refuse(HTTP1, "the head of the request is too long")
	case end < 0:
		return false
	case s.word > 0:
		return s.refuse(HTTP1, "something stands before the request line")
	}
	return s.request(b[:end])
}

func (s *scanner) request(b []byte) bool {
	h, err := head.Parse(b)
	if err != nil {
		return s.refuse(HTTP1, err.Error())
	}
	s.hello.Method, s.hello.Accept, s.hello.Upgrade = h.Method, h.Value("Accept"), h.Value("Upgrade")
	if h.Method == "CONNECT" {
		return s.refuse(HTTP1, "CONNECT asks for a proxy, which is not here")
	}
	if s.hello.Host, s.hello.Port, err = h.Host(); err != nil {
		return s.refuse(HTTP1, err.Error())
	}
	if _, _, err := h.Body(); err != nil {
		return s.refuse(HTTP1, err.Error())
	}
	return true
}
