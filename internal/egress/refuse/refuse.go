// Package refuse tells a client in its own protocol that it may not: a refused
// program fails at once. If the protocol can carry a text, the reader of the
// program's output learns that bawn refused, by which rule, why, and what to do.
package refuse

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bawn-dev/bawn/internal/egress/sniff"
	"github.com/bawn-dev/bawn/internal/redact"
)

// A Denial is the refusal that a client reads. Empty parts are left out. Parts
// may come from the client, so every invisible character is escaped, and long
// parts are cut.
type Denial struct {
	Resource string `json:"resource,omitempty"` // as the decision names it: "evil.example:80"
	Rule     string `json:"rule,omitempty"`     // where the decision comes from
	Reason   string `json:"reason,omitempty"`
	Remedy   string `json:"remedy,omitempty"` // what to do, or who can permit it
}

const (
	maxPart   = 500                    // characters of each part of a denial
	maxRule   = 100                    // characters of the rule in a header
	patience  = time.Second            // for the client to take its answer
	lingering = 300 * time.Millisecond // for the client to close after it
	maxUnread = 1 << 20                // bytes of an upload that are read and dropped meanwhile
)

// Write tells the client of conn that it is denied, and closes conn. hello and
// raw are what sniff.Read has returned for conn. HTTP gets a 403, TLS the
// alert access_denied, SSH a disconnect message; anything else is reset. It
// takes at most 1.3 s whatever the client does; the error is why the client may
// not have got its answer.
func Write(conn net.Conn, hello sniff.Hello, raw []byte, d Denial) error {
	d = d.visible()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return errors.Join(err, conn.Close())
	}
	var err error
	switch hello.Kind {
	case sniff.HTTP1:
		_, err = conn.Write(d.response(hello.Method, hello.Accept))
	case sniff.HTTP2:
		err = d.stream(conn, raw)
	case sniff.TLS:
		_, err = conn.Write(accessDenied)
	case sniff.SSH:
		_, err = conn.Write(d.disconnect())
	default:
		return Reset(conn)
	}
	return errors.Join(err, Leave(conn))
}

// Reset closes conn so that the client sees "connection reset by peer" at once
// (RST, of SO_LINGER with 0 in socket(7)).
func Reset(conn net.Conn) error {
	if c, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		if err := c.SetLinger(0); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	return conn.Close()
}

// Leave closes conn after the client has read its answer: to close while bytes
// of the client are unread would reset the connection, and the answer with it.
// It waits for the client 300 ms at most.
func Leave(conn net.Conn) error {
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite() // where it fails, Close says more
	}
	if conn.SetReadDeadline(time.Now().Add(lingering)) == nil {
		_, _ = io.CopyN(io.Discard, conn, maxUnread) // ends with the client, or the deadline
	}
	return conn.Close()
}

func (d Denial) visible() Denial {
	for _, part := range []*string{&d.Resource, &d.Rule, &d.Reason, &d.Remedy} {
		*part = cut(redact.Visible(*part), maxPart)
	}
	return d
}

func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

// String returns the denial as one line without its end.
func (d Denial) String() string {
	var b strings.Builder
	b.WriteString("bawn: denied")
	for _, part := range []struct{ before, text, after string }{
		{": ", d.Resource, ""}, {" (rule ", d.Rule, ")"}, {": ", d.Reason, ""}, {"; ", d.Remedy, ""},
	} {
		if part.text != "" {
			b.WriteString(part.before + part.text + part.after)
		}
	}
	return b.String()
}

// body returns the text of an answer and its type.
func (d Denial) body(accept string) (text []byte, contentType string) {
	accept = strings.ToLower(accept)
	if strings.Contains(accept, "application/json") || strings.Contains(accept, "+json") {
		if text, err := json.Marshal(struct {
			Error string `json:"error"`
			Denial
		}{d.String(), d}); err == nil {
			return append(text, '\n'), "application/json"
		}
	}
	return []byte(d.String() + "\n"), "text/plain; charset=utf-8"
}

// header returns the rule as the value of a header: ASCII, and never empty.
func (d Denial) header() string {
	rule := strings.Map(func(c rune) rune {
		if c >= utf8.RuneSelf {
			return '?'
		}
		return c
	}, d.Rule)
	if rule == "" {
		return "default"
	}
	return rule[:min(len(rule), maxRule)]
}
