package dial

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/hostname"
)

// maxHead is the length in bytes up to which the answer of a proxy is read.
const maxHead = 8 << 10

// A Proxy is an HTTP proxy that takes CONNECT (RFC 9110, section 9.3.6), as
// companies have them, or a SOCKS 5 proxy (RFC 1928). Make it with ParseProxy;
// nil is no proxy.
type Proxy struct {
	// Roots are the authorities for a proxy that is itself spoken to over TLS.
	// Nil stands for the host's.
	Roots *x509.CertPool

	secure bool
	socks  bool
	host   string // normal form
	port   uint16
	user   *url.Userinfo // or nil
	direct []exception
}

// A ProxyError says why the upstream proxy makes no connection. It never holds
// a password.
type ProxyError struct {
	Host string // the proxy
	Err  error
	Auth bool // it wants a user and a password, or others
}

// Error names the proxy and its failure.
func (e *ProxyError) Error() string { return fmt.Sprintf("proxy %q: %v", e.Host, e.Err) }

// Remedy says what to do about it.
func (e *ProxyError) Remedy() string {
	if e.Auth {
		return "give the proxy a user and a password, in HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT of bawn's environment"
	}
	return "it is the upstream proxy that refuses, not bawn: see isolation.upstream_proxy and HTTPS_PROXY, or name hosts that are reached without it in NO_PROXY"
}

// Unwrap returns what happened.
func (e *ProxyError) Unwrap() error { return e.Err }

// errAuth says that the proxy does not know us.
var errAuth = errors.New("it wants a user and a password, or others than those that it got")

// proxyPorts are those of the schemes, where the URL names none (RFC 1928,
// section 3 for SOCKS).
var proxyPorts = map[string]uint16{"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}

// An exception is one entry of NO_PROXY that can match a name.
type exception struct {
	name  string // "" for all
	below bool   // only what lies below name
	port  string // "" for all
}

// ParseProxy reads the URL of a proxy that also resolves names:
// "http://user:password@proxy:3128", "https://…" or "socks5://…". It also reads a list as
// in NO_PROXY: names separated by commas, with or without a port, or "*". A name covers
// itself and all names below it; ".example.com" covers only those below. Addresses in the
// list mean nothing, since addresses are never dialled through a proxy. No error holds
// the password.
func ParseProxy(address, noProxy string) (*Proxy, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the proxy's URL is malformed; want http://proxy.example:3128") // err quotes all of it
	}
	shown := u.Scheme + "://" + u.Host
	if proxyPorts[u.Scheme] == 0 || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return nil, fmt.Errorf("proxy %q: want http://host:port, https://host:port or socks5://host:port and nothing else", shown)
	}
	p := &Proxy{secure: u.Scheme == "https", socks: strings.HasPrefix(u.Scheme, "socks"), port: proxyPorts[u.Scheme], user: u.User}
	if p.host, _, err = hostname.NormalASCII(u.Hostname()); err != nil {
		return nil, fmt.Errorf("proxy %q: %w", shown, err)
	}
	if s := u.Port(); s != "" {
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("proxy %q: want a port from 1 to 65535", shown)
		}
		p.port = uint16(n)
	}
	p.direct = exceptions(noProxy)
	return p, nil
}

func exceptions(list string) []exception {
	var out []exception
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.ToLower(strings.TrimSpace(entry))
		if entry == "*" {
			return []exception{{}}
		}
		name, port := entry, ""
		if h, p, err := net.SplitHostPort(entry); err == nil {
			name, port = h, p
		}
		name, below := strings.CutPrefix(strings.TrimPrefix(name, "*"), ".")
		if name, _, err := hostname.NormalASCII(name); err == nil {
			out = append(out, exception{name, below, port})
		}
	}
	return out
}

// serves reports whether a name in normal form is dialled through p.
func (p *Proxy) serves(name string, port uint16) bool {
	return p != nil && !slices.ContainsFunc(p.direct, func(e exception) bool {
		return (e.port == "" || e.port == strconv.Itoa(int(port))) &&
			(e.name == "" || e.name == name && !e.below || strings.HasSuffix(name, "."+e.name))
	})
}

// connectThrough has the proxy connect to a name. The proxy itself may be
// anywhere: the human named it.
func (d *Dialer) connectThrough(ctx context.Context, name string, port uint16) (net.Conn, error) {
	tunnel, err := d.tunnel(ctx, name, port)
	if err != nil {
		return nil, &ProxyError{Host: d.Proxy.host, Err: err, Auth: errors.Is(err, errAuth)}
	}
	return tunnel, nil
}

func (d *Dialer) tunnel(ctx context.Context, name string, port uint16) (net.Conn, error) {
	addrs, err := d.resolve(ctx, d.Proxy.host)
	if err == nil && len(addrs) == 0 {
		err = errEmpty
	}
	if err != nil {
		return nil, err
	}
	conn, _, err := race(ctx, alternate(addrs[:min(len(addrs), maxAddrs)]), d.Proxy.port)
	if err != nil {
		return nil, err
	}
	tunnel, err := d.Proxy.open(ctx, conn, name, port)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return tunnel, nil
}

// open asks for a tunnel over a connection to the proxy.
func (p *Proxy) open(ctx context.Context, conn net.Conn, name string, port uint16) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if p.secure {
		c := tls.Client(conn, &tls.Config{ServerName: p.host, RootCAs: p.Roots, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12})
		if err := c.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = c
	}
	ask := p.connect
	if p.socks {
		ask = p.socksConnect
	}
	err := ask(conn, name, port)
	if !stop() { // the deadline is set, or about to be
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func (p *Proxy) credentials() (user, password string) {
	password, _ = p.user.Password()
	return p.user.Username(), password
}

// connect sends the request and reads its answer, and not a byte more.
func (p *Proxy) connect(conn net.Conn, name string, port uint16) error {
	target := net.JoinHostPort(name, strconv.Itoa(int(port)))
	request := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n"
	if p.user != nil {
		user, password := p.credentials()
		request += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return err
	}
	head, err := readHead(conn)
	if err != nil {
		return err
	}
	return verdict(head)
}

var errHead = fmt.Errorf("the answer is malformed or longer than %d bytes", maxHead)

// readHead reads up to the empty line. The bytes after it belong to the tunnel,
// so it never asks for more bytes than the end of the head still lacks.
func readHead(r io.Reader) ([]byte, error) {
	const end = "\r\n\r\n"
	head := make([]byte, 0, 512)
	for len(head) < maxHead {
		missing := len(end)
		for k := len(end); k > 0; k-- {
			if bytes.HasSuffix(head, []byte(end[:k])) {
				missing = len(end) - k
				break
			}
		}
		if missing == 0 {
			return head, nil
		}
		n := len(head)
		head = slices.Grow(head, missing)[:n+missing]
		m, err := r.Read(head[n:])
		head = head[:n+m]
		if err != nil {
			return nil, err
		}
	}
	return nil, errHead
}

// verdict reads the head of an answer: only 200 opens a tunnel.
func verdict(head []byte) error {
	r := textproto.NewReader(bufio.NewReader(bytes.NewReader(head)))
	line, err := r.ReadLine()
	if err != nil {
		return errHead
	}
	version, status, _ := strings.Cut(line, " ")
	if version != "HTTP/1.1" && version != "HTTP/1.0" || strings.Count(string(head), "\n") != strings.Count(string(head), "\r\n") {
		return errHead
	}
	if _, err := r.ReadMIMEHeader(); err != nil {
		return errHead
	}
	switch code, _, _ := strings.Cut(status, " "); code {
	case "200":
		return nil
	case "407":
		return fmt.Errorf("it answered %.60q: %w", status, errAuth)
	default:
		return fmt.Errorf("it answered %.60q", status)
	}
}
