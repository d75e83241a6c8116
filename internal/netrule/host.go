// Package netrule reads the entries of the configuration that open the network
// by name, and matches them. An entry is a value: it resolves nothing and
// connects to nothing.
//
// What an entry matches never depends on how a guest spells a name: both sides
// are in the form of package hostname. An unreadable entry names nothing.
package netrule

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"

	"github.com/bawn-dev/bawn/internal/hostname"
)

// MaxEntry is the longest entry of any kind, in bytes.
const MaxEntry = 1024

// A Host is one entry of isolation.hosts: a name, all names below it, an
// address or a network, and the ports. The zero Host matches nothing.
type Host struct {
	name   string       // normal, without "*."; "" for an address or a network
	below  bool         // all names below the name, and not the name itself
	prefix netip.Prefix // an address or a network, masked
	ports  Ports
}

// webPorts are the default ports of an entry, gitPorts those of an entry about
// git: https and ssh.
var webPorts, gitPorts = portsOf(80, 443), portsOf(22, 443)

// ParseHost reads NAME, *.NAME, an address or a network, each with optional
// ports after a colon: "registry.example", "*.example.org:443,8443",
// "db.corp:5432", "10.0.0.0/8:22", "[2001:db8::1]:443". Without ports it is 80
// and 443. A name stands in its normal form (package hostname); "xn--" labels
// are accepted, since a human has written them out. Refused are "*" alone,
// names of loopback and addresses that nobody connects to.
func ParseHost(s string) (Host, error) { return parseHost(s, webPorts) }

func parseHost(s string, otherwise Ports) (Host, error) {
	h, err := readHost(s, otherwise)
	if err == nil {
		return h, nil
	}
	if len(s) <= MaxEntry {
		better := mend(s)
		if _, wrong := readHost(better, otherwise); wrong == nil {
			return Host{}, fmt.Errorf("host %q is not in normal form; write %q", clip(s), better)
		}
	}
	return Host{}, fmt.Errorf("host %q: %w", clip(s), err)
}

func readHost(s string, otherwise Ports) (Host, error) {
	if len(s) > MaxEntry {
		return Host{}, fmt.Errorf("it has %d bytes; want at most %d", len(s), MaxEntry)
	}
	name, ports, found := cutPorts(s)
	h := Host{ports: otherwise}
	if found {
		var err error
		if h.ports, err = ParsePorts(ports); err != nil {
			return Host{}, err
		}
	}
	return h.named(name)
}

// cutPorts takes the ports off. An IPv6 address stands in brackets.
func cutPorts(s string) (name, ports string, found bool) {
	if s != "" && s[0] == '[' {
		i := strings.IndexByte(s, ']') + 1
		if i > 0 && i < len(s) && s[i] == ':' {
			return s[:i], s[i+1:], true
		}
		return s, "", false
	}
	return strings.Cut(s, ":")
}

// named adds the part before the ports.
func (h Host) named(s string) (Host, error) {
	var err error
	inner, bracketed := strings.CutPrefix(s, "[")
	switch {
	case bracketed && !strings.HasSuffix(inner, "]"):
		return Host{}, fmt.Errorf("the bracket is not closed; want for example \"[2001:db8::1]:443\"")
	case bracketed:
		h.prefix, err = network(strings.TrimSuffix(inner, "]"))
		if err == nil && !h.prefix.Addr().Is6() {
			err = fmt.Errorf("brackets stand around an IPv6 address only")
		}
	case strings.Contains(s, "/"):
		h.prefix, err = network(s)
	case s == "*":
		err = fmt.Errorf("it would open every host; want names, or a rule of your policy that allows the network \"*\"")
	default:
		return h.withName(s)
	}
	if err != nil {
		return Host{}, err
	}
	return h, nil
}

func (h Host) withName(s string) (Host, error) {
	plain, below := strings.CutPrefix(s, "*.")
	normal, class, err := hostname.NormalASCII(plain)
	_, notAddress := netip.ParseAddr(normal)
	switch {
	case strings.Contains(plain, "*"):
		return Host{}, fmt.Errorf("\"*\" may only stand for what is below a name; want for example \"*.example.org\"")
	case err != nil:
		why := strings.TrimLeft(strings.TrimPrefix(err.Error(), fmt.Sprintf("host %q", plain)), ": ")
		return Host{}, fmt.Errorf("%s; want a name such as \"example.org\", \"*.example.org\" or \"example.org:8443\"", why)
	case normal != plain:
		return Host{}, fmt.Errorf("it is not in normal form; want %q", normal)
	case notAddress != nil && class == hostname.Loopback:
		return Host{}, fmt.Errorf("this is the guest's own loopback; a service of the host's loopback is opened by isolation.host_ports")
	case notAddress != nil:
		h.name, h.below = normal, below
		return h, nil
	case below:
		return Host{}, fmt.Errorf("nothing lies below an address; want for example \"10.0.0.0/8\"")
	}
	h.prefix, err = network(plain)
	return h, err
}

// closed are addresses that no entry opens: they are nobody's, everybody's or
// the machine's own (RFC 6890, RFC 4291 section 2).
var closed = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("224.0.0.0/3"),
	netip.MustParsePrefix("::/127"), netip.MustParsePrefix("::ffff:0:0/96"), netip.MustParsePrefix("ff00::/8"),
}

// network reads an address, or a network without bits beyond its length, in
// their one form.
func network(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	normal := p.Masked().String()
	if a, wrong := netip.ParseAddr(s); wrong == nil {
		p, err, normal = netip.PrefixFrom(a, a.BitLen()), nil, a.String()
	}
	if err != nil || p.Addr().Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("it is no address; want for example \"192.0.2.1\", \"10.0.0.0/8\" or \"[2001:db8::1]\", without a zone")
	}
	if normal != s {
		return netip.Prefix{}, fmt.Errorf("it is not in normal form; want %q", normal)
	}
	for _, c := range closed {
		if c.Overlaps(p) {
			return netip.Prefix{}, fmt.Errorf("no entry opens addresses of %s; a service of the host's loopback is opened by isolation.host_ports", c)
		}
	}
	return p, nil
}

// mend drops what people paste along with a host, and writes an international
// name in ASCII (UTS 46).
func mend(s string) string {
	s = strings.TrimSpace(s)
	scheme, rest, ok := strings.Cut(s, "://")
	if ok {
		s, _, _ = strings.Cut(rest, "/")
		s = s[strings.LastIndexByte(s, '@')+1:]
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Is6() && !a.Is4In6() {
		return Host{prefix: netip.PrefixFrom(a.WithZone(""), 128), ports: webPorts}.String()
	}
	name, ports, found := cutPorts(s)
	if scheme == "ssh" && !found {
		ports, found = "22", true
	}
	name = ascii(strings.TrimSuffix(strings.ToLower(name), "."))
	if a, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		name = bracketed(a.Unmap().WithZone("").String())
	} else if p, err := netip.ParsePrefix(strings.Trim(name, "[]")); err == nil {
		name = bracketed(p.Masked().String())
	}
	if found {
		return name + ":" + ports
	}
	return name
}

// ascii writes an international name as it is on the wire, and returns any other
// text unchanged.
func ascii(name string) string {
	plain, below := strings.CutPrefix(name, "*.")
	a, err := idna.Lookup.ToASCII(plain)
	switch {
	case err != nil || strings.IndexFunc(plain, func(c rune) bool { return c > '~' }) < 0:
		return name
	case below:
		return "*." + a
	}
	return a
}

// bracketed puts an IPv6 address or network into brackets.
func bracketed(s string) string {
	if strings.Contains(s, ":") {
		return "[" + s + "]"
	}
	return s
}

// Match reports whether the entry opens the port of the host. The name is in
// normal form; an address is matched as MatchAddr does.
func (h Host) Match(name string, port uint16) bool { return h.ports.Has(port) && h.matchName(name) }

func (h Host) matchName(name string) bool {
	switch {
	case h.prefix.IsValid():
		a, err := netip.ParseAddr(name)
		return err == nil && h.contains(a)
	case !h.below:
		return h.name != "" && name == h.name
	}
	return belowName(name, h.name)
}

// belowName reports whether a name lies below another. An international name
// must be written out: it can look like one that it is not.
func belowName(name, parent string) bool {
	rest, ok := strings.CutSuffix(name, parent)
	return ok && len(rest) > 1 && rest[len(rest)-1] == '.' && !strings.HasPrefix(rest, "xn--") && !strings.Contains(rest, ".xn--")
}

// MatchAddr reports whether the entry names the address itself, or a network
// that holds it, and opens its port. Names never match: where a name leads is
// not known here.
func (h Host) MatchAddr(a netip.Addr, port uint16) bool { return h.ports.Has(port) && h.contains(a) }

func (h Host) contains(a netip.Addr) bool {
	return h.prefix.IsValid() && a.Zone() == "" && h.prefix.Contains(a.Unmap())
}

// Covers reports whether h opens all that o opens. It may say no where several
// entries together would.
func (h Host) Covers(o Host) bool {
	return h.ports.Covers(o.ports) && h.CoversName(o)
}

// CoversName is Covers without looking at the ports. Two entries either have
// one that covers the names of the other, or no name that both open.
func (h Host) CoversName(o Host) bool {
	switch {
	case h.prefix.IsValid() || o.prefix.IsValid():
		return h.prefix.IsValid() && o.prefix.IsValid() && h.prefix.Bits() <= o.prefix.Bits() && h.prefix.Contains(o.prefix.Addr())
	case h.below && o.below && h.name == o.name:
		return true
	case o.below && !h.below:
		return false
	}
	return h.matchName(o.name)
}

// Overlaps reports whether something may be opened by both. It never says no
// where something is.
func (h Host) Overlaps(o Host) bool {
	if !h.ports.Overlaps(o.ports) {
		return false
	}
	if h.prefix.IsValid() || o.prefix.IsValid() {
		return h.prefix.Overlaps(o.prefix)
	}
	return h.name == o.name && h.below == o.below ||
		h.below && strings.HasSuffix(o.name, "."+h.name) || o.below && strings.HasSuffix(h.name, "."+o.name)
}

// On returns the entry with other ports.
func (h Host) On(p Ports) Host {
	h.ports = p
	return h
}

// Ports returns the ports that the entry opens.
func (h Host) Ports() Ports { return h.ports }

// String writes the entry in the form that ParseHost reads.
func (h Host) String() string { return h.text(webPorts) }

// text leaves the ports out where they are those that need not be stated.
func (h Host) text(otherwise Ports) string {
	s := h.name
	switch {
	case h.prefix.IsValid() && h.prefix.IsSingleIP():
		s = bracketed(h.prefix.Addr().String())
	case h.prefix.IsValid():
		s = bracketed(h.prefix.String())
	case h.below:
		s = "*." + s
	}
	if ports := h.ports.String(); ports != "" && ports != otherwise.String() {
		return s + ":" + ports
	}
	return s
}

// SSHNames returns the host as known_hosts(5) names it, at whatever port.
func (h Host) SSHNames() []string {
	name := h.text(h.ports)
	return []string{name, name + ":*"}
}
