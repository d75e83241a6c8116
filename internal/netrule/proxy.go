package netrule

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn/internal/hostname"
)

// A Proxy is the value of isolation.upstream_proxy: a proxy of the network that
// Bawn is in, through which everything goes that a session may reach.
type Proxy struct {
	Scheme string // "http", "https" or "socks5"
	Host   string // in normal form
	Port   uint16
}

// ParseProxy reads SCHEME://HOST:PORT. A user and a password are refused: the
// configuration is no place for a secret.
func ParseProxy(s string) (Proxy, error) {
	scheme, rest, _ := strings.Cut(s, "://")
	rest = strings.TrimSuffix(rest, "/")
	i := strings.LastIndexByte(rest, ':')
	if len(s) > MaxEntry || i < 0 || scheme != "http" && scheme != "https" && scheme != "socks5" {
		return Proxy{}, fmt.Errorf("proxy %q: want \"http://HOST:PORT\", \"https://HOST:PORT\" or \"socks5://HOST:PORT\"", clip(s))
	}
	if strings.Contains(rest, "@") {
		return Proxy{}, fmt.Errorf("proxy at %q: a user and a password have no place in the configuration; leave them out", clip(rest[strings.LastIndexByte(rest, '@')+1:]))
	}
	port, ok := parsePort(rest[i+1:])
	if !ok {
		return Proxy{}, fmt.Errorf("proxy %q: want a port from 1 to 65535 after its host", clip(s))
	}
	host, _, err := hostname.NormalASCII(rest[:i])
	if a, wrong := netip.ParseAddr(rest[:i]); wrong == nil && a.Is6() {
		err = fmt.Errorf("an IPv6 address stands in brackets")
	}
	if err != nil {
		return Proxy{}, fmt.Errorf("proxy %q: %w", clip(s), err)
	}
	return Proxy{scheme, host, port}, nil
}

// String writes the proxy in the form that ParseProxy reads.
func (p Proxy) String() string {
	return p.Scheme + "://" + bracketed(p.Host) + ":" + strconv.Itoa(int(p.Port))
}
