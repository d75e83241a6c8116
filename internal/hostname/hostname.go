// Package hostname brings the names of hosts into the one form in which they
// are compared, resolved and dialled. What it does not accept names no host.
package hostname

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A Class says what sort of host a name is. The zero Class is invalid.
type Class uint8

const (
	_        Class = iota
	Name           // a DNS name with a dot
	Loopback       // localhost, 127.0.0.0/8, ::1
	Internal       // a single label, .local, .internal, a private, link-local or metadata address
	Address        // another IP address
)

// Normal returns host in lower case without its final dot, and its class. It
// accepts letters, digits, dashes, underscores and dots (RFC 952, RFC 1123,
// RFC 8552) and canonical IP addresses. It refuses what is not ASCII, numbers
// that only some resolvers take for an address (0x7f.1, 2130706433) and
// "xn--" labels, which can look like another name.
func Normal(host string) (string, Class, error) { return normal(host, false) }

// NormalASCII is Normal, but accepts "xn--" labels (RFC 5890). It is for names
// that a human wrote in this form, and for names that are only compared with
// those. A name that it accepts and Normal refuses is never shown in a
// question.
func NormalASCII(host string) (string, Class, error) { return normal(host, true) }

func normal(host string, idn bool) (string, Class, error) {
	if i := strings.IndexFunc(host, func(c rune) bool { return c > '~' }); i >= 0 { // also U+212A, whose lower case is k
		return "", 0, fmt.Errorf("host %q: want ASCII", host)
	}
	h := strings.TrimSuffix(strings.ToLower(host), ".")
	if a, ok := address(h); ok {
		return a.Unmap().String(), classOf(a.Unmap()), nil
	}
	if len(h) == 0 || len(h) > 253 {
		return "", 0, fmt.Errorf("host %q: want a name of 1 to 253 characters", host)
	}
	labels := strings.Split(h, ".")
	for _, l := range labels {
		if strings.HasPrefix(l, "xn--") && !idn {
			return "", 0, fmt.Errorf("host %q: the label %q is not accepted", host, l)
		}
		if err := label(host, l); err != nil {
			return "", 0, err
		}
	}
	last := labels[len(labels)-1]
	switch {
	case last[0] >= '0' && last[0] <= '9':
		return "", 0, fmt.Errorf("host %q looks like an address in an unusual form; write it as 192.0.2.1", host)
	case h == "localhost" || last == "localhost":
		return h, Loopback, nil
	case len(labels) == 1 || last == "local" || last == "internal" || last == "arpa":
		return h, Internal, nil
	}
	return h, Name, nil
}

// address accepts an IP address without a zone; brackets may stand around an
// IPv6 address only.
func address(h string) (netip.Addr, bool) {
	bare, opens := strings.CutPrefix(h, "[")
	bare, closes := strings.CutSuffix(bare, "]")
	a, err := netip.ParseAddr(bare)
	return a, err == nil && a.Zone() == "" && opens == closes && (!opens || a.Is6())
}

func label(host, l string) error {
	if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
		return fmt.Errorf("host %q: the label %q is not accepted", host, l)
	}
	for _, c := range []byte(l) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return fmt.Errorf("host %q: the character %q is not accepted", host, c)
		}
	}
	return nil
}

func classOf(a netip.Addr) Class {
	switch {
	case a.IsLoopback():
		return Loopback
	case a.IsPrivate(), a.IsLinkLocalUnicast(), a.IsLinkLocalMulticast(), a.IsUnspecified(), a.IsMulticast(),
		netip.MustParsePrefix("100.64.0.0/10").Contains(a):
		return Internal
	}
	return Address
}

// schemes are those whose requests say where they go, with their ports.
var schemes = map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21", "ssh": "22", "git": "9418"}

// Split takes a URL, host:port or host apart and returns the normal host, its
// class and the port, which is "" where none is said. A URL with a user, a
// password or an unknown scheme is refused.
func Split(s string) (host string, class Class, port string, err error) { return split(s, false) }

// SplitASCII is Split, but accepts "xn--" labels, as NormalASCII does.
func SplitASCII(s string) (host string, class Class, port string, err error) { return split(s, true) }

func split(s string, idn bool) (host string, class Class, port string, err error) {
	rest := s
	if scheme, after, ok := strings.Cut(s, "://"); ok {
		if port = schemes[strings.ToLower(scheme)]; port == "" {
			return "", 0, "", fmt.Errorf("%q: the scheme %q is not known", s, scheme)
		}
		rest = after
		if i := strings.IndexAny(rest, "/?#"); i >= 0 {
			rest = rest[:i]
		}
	}
	if strings.ContainsAny(rest, "@\\ \t\n") {
		return "", 0, "", fmt.Errorf("%q: a user's name or unusual characters stand before the host", s)
	}
	name, p, has := rest, "", false
	if i := strings.LastIndexByte(rest, ':'); i >= 0 && (strings.Count(rest, ":") == 1 || strings.HasSuffix(rest[:i], "]")) {
		name, p, has = rest[:i], rest[i+1:], true
	}
	if has {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 || p[0] == '0' {
			return "", 0, "", fmt.Errorf("%q: want a port from 1 to 65535", s)
		}
		port = p
	}
	host, class, err = normal(name, idn)
	return host, class, port, err
}

// Match reports whether a normal host matches a pattern: a name, "*.name" for
// what lies below a name (and not the name itself), or "*".
func Match(pattern, host string) bool {
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return suffix == "" || strings.HasPrefix(suffix, ".") && strings.HasSuffix(host, suffix) && len(host) > len(suffix)
	}
	return pattern == host
}
