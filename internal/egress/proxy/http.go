package proxy

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn/internal/egress/head"
	"github.com/bawn-dev/bawn/internal/egress/refuse"
)

const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// http reads a client of HTTP/1.
func (in *input) http() (*Client, error) {
	c := &Client{conn: in.conn}
	raw, err := in.head()
	if err != nil {
		return nil, errors.Join(err, in.conn.Close())
	}
	c.rest = in.buf
	if err := c.read(raw); err != nil {
		return nil, errors.Join(err, c.Reject(refuse.Denial{Reason: err.Error()}))
	}
	return c, nil
}

// head takes the bytes of a head, or as many as a head may have.
func (in *input) head() ([]byte, error) {
	for seen := 0; ; {
		end := head.End(in.buf, seen)
		if seen = len(in.buf); end < 0 && seen >= maxHead {
			end = seen
		}
		if end >= 0 {
			return in.take(end)
		}
		if err := in.more(); err != nil {
			return nil, fmt.Errorf("reading the head of a request: %w", err)
		}
	}
}

func (c *Client) read(raw []byte) error {
	if len(raw) >= maxHead {
		return errors.New("the head of the request is too long")
	}
	h, err := head.Parse(raw)
	if err != nil {
		return err
	}
	c.method, c.accept = h.Method, h.Value("Accept")
	form, err := h.Form()
	if err != nil {
		return err
	}
	if c.Host, c.Port, err = h.Host(); err != nil {
		return err
	}
	switch form {
	case head.Authority:
		return c.connect(h)
	case head.Absolute:
		return c.forward(h)
	}
	return fmt.Errorf("this is a proxy: the target must be an http:// URL, not %.64q", h.Target)
}

// connect checks the rules of CONNECT. It has no body: a declared one could be
// read as the beginning of the tunnel, or not.
func (c *Client) connect(h head.Head) error {
	length, chunked, err := h.Body()
	switch {
	case err != nil:
		return err
	case length != 0 || chunked:
		return errors.New("CONNECT has a body")
	case c.Port == 0:
		return fmt.Errorf("the target is %.128q; want host:port", h.Target)
	}
	c.Kind = Connect
	return nil
}

// hop are the fields that are for this connection only (RFC 9110 section
// 7.6.1), or for a proxy. Without Upgrade the connection stays HTTP/1.
var hop = []string{"connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "upgrade", "http2-settings"}

// forward writes the request anew, in origin form and for one exchange.
func (c *Client) forward(h head.Head) error {
	length, chunked, err := h.Body()
	if err != nil {
		return err
	}
	drop, err := dropped(h)
	if err != nil {
		return err
	}
	if c.Port == 0 {
		c.Port = 80
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.%d\r\nHost: %s\r\n", h.Method, h.Path(), h.Minor, c.authority())
	for _, f := range h.Fields {
		if !drop[strings.ToLower(f.Name)] {
			fmt.Fprintf(&b, "%s: %s\r\n", f.Name, f.Value)
		}
	}
	b.WriteString("Connection: close\r\n\r\n")
	c.Kind, c.head, c.body = Forward, []byte(b.String()), &body{left: length, chunked: chunked}
	return nil
}

// dropped returns the fields that are not passed on unchanged: Host, hop, and
// those that the client declares for this connection only.
func dropped(h head.Head) (map[string]bool, error) {
	drop := map[string]bool{}
	for _, name := range strings.FieldsFunc(strings.ToLower(h.Value("Connection")), func(r rune) bool {
		return r == ',' || r == ' ' || r == '\t'
	}) {
		drop[name] = true
	}
	for _, name := range []string{"host", "content-length", "transfer-encoding"} {
		if drop[name] {
			return nil, fmt.Errorf("the field Connection names %q, without which the request would be another", name)
		}
	}
	drop["host"] = true
	for _, name := range hop {
		drop[name] = true
	}
	return drop, nil
}

// authority returns host and port as the field Host has them.
func (c *Client) authority() string {
	if c.Port != 80 {
		return net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	}
	if strings.Contains(c.Host, ":") {
		return "[" + c.Host + "]"
	}
	return c.Host
}
