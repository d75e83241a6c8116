package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"golang.org/x/net/proxy"
)

// socksConnect has the proxy connect to a name, which it resolves (RFC 1928;
// RFC 1929 for the password).
func (p *Proxy) socksConnect(conn net.Conn, name string, port uint16) error {
	var auth *proxy.Auth
	if p.user != nil {
		user, password := p.credentials()
		auth = &proxy.Auth{User: user, Password: password}
	}
	at := func(host string, port uint16) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }
	d, err := proxy.SOCKS5("tcp", at(p.host, p.port), auth, connected{conn})
	if err != nil {
		return err
	}
	if _, err = d.Dial("tcp", at(name, port)); err == nil {
		return nil
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err // without the addresses, which are ours to name
	}
	for _, refusal := range []string{"no acceptable authentication methods", "username/password authentication failed"} {
		if err.Error() == refusal {
			return errAuth
		}
	}
	if answer, ok := strings.CutPrefix(err.Error(), "unknown error "); ok {
		return fmt.Errorf("it answered %q", answer)
	}
	return err
}

// connected dials nothing: the connection to the proxy is there.
type connected struct{ conn net.Conn }

// Dial returns the connection.
func (c connected) Dial(string, string) (net.Conn, error) { return c.conn, nil }

// DialContext returns the connection.
func (c connected) DialContext(context.Context, string, string) (net.Conn, error) {
	return c.conn, nil
}
