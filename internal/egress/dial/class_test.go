package dial

import (
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// special are the blocks of RFC 6890 with the name it gives them, those that
// IANA registered later, and multicast (RFC 5771, RFC 4291).
var special = []string{
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.0.0/29", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "255.255.255.255/32",
	"192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24", "224.0.0.0/4",
	"::1/128", "::/128", "100::/64", "2001::/23", "2001::/32", "2001:2::/48", "2001:db8::/32", "2001:10::/28", "2002::/16", "fc00::/7", "fe80::/10",
	"64:ff9b:1::/48", "100:0:0:1::/64", "2001:1::1/128", "2001:3::/32", "2001:4:112::/48", "2001:20::/28", "2001:30::/28", "2620:4f:8000::/48", "3fff::/20", "5f00::/16",
	"fec0::/10", "ff00::/8", "::/96", "::ffff:0:0:0/96",
}

// within draws an address of a block: its first, its last, or any.
func within(t *rapid.T, p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	fill := rapid.SampledFrom([]string{"first", "last", "any"}).Draw(t, "place")
	for i := p.Bits(); i < len(b)*8; i++ {
		if fill == "last" || fill == "any" && rapid.Bool().Draw(t, "bit") {
			b[i/8] |= 0x80 >> (i % 8)
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func TestSpecialAddressesHaveAClass(t *testing.T) {
	for _, s := range special {
		p := netip.MustParsePrefix(s)
		rapid.Check(t, func(t *rapid.T) {
			a := within(t, p)
			if Class(a) == "" {
				t.Fatalf("%s of %s is taken for public", a, p)
			}
			if a.Is4() {
				return
			}
			if z := a.WithZone("eth0"); Class(z) != Class(a) {
				t.Fatalf("%s is %q, %s is %q", a, Class(a), z, Class(z))
			}
		})
	}
}

// TestEmbeddedAddresses: an IPv4 address is judged alike however an IPv6
// address holds it, or refused in that form altogether.
func TestEmbeddedAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := netip.MustParsePrefix(rapid.SampledFrom(append(special[:20:20], "0.0.0.0/0", "8.0.0.0/8")).Draw(t, "block"))
		v4 := within(t, p)
		b := v4.As4()
		hex := fmt.Sprintf("%02x%02x:%02x%02x", b[0], b[1], b[2], b[3])
		for _, form := range []string{"::ffff:%s", "64:ff9b::%s"} {
			if a := netip.MustParseAddr(fmt.Sprintf(form, hex)); Class(a) != Class(v4) {
				t.Fatalf("%s is %q, %s is %q", a, Class(a), v4, Class(v4))
			}
		}
		for _, form := range []string{"::%s", "::ffff:0:%s", "64:ff9b:1::%s", "2002:%s::1", "2001::%s"} {
			if a := netip.MustParseAddr(fmt.Sprintf(form, hex)); Class(a) == "" {
				t.Fatalf("%s is taken for public", a)
			}
		}
	})
}

func TestClass(t *testing.T) {
	for s, want := range map[string]string{
		"127.0.0.1": "loopback", "127.255.255.254": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback", "64:ff9b::7f00:1": "loopback",
		"10.1.2.3": "private", "172.31.255.255": "private", "192.168.1.1": "private", "fd00::1": "private", "169.254.1.1": "link-local", "fe80::1": "link-local",
		"100.64.0.1": "carrier-grade NAT", "0.0.0.0": "unspecified", "0.1.2.3": "this network", "::": "unspecified", "255.255.255.255": "broadcast", "224.0.0.1": "multicast",
		"169.254.169.254": "cloud metadata", "::ffff:169.254.169.254": "cloud metadata", "64:ff9b::a9fe:a9fe": "cloud metadata", "fd00:ec2::254": "cloud metadata",
		"100.100.100.200": "cloud metadata", "168.63.129.16": "cloud metadata", "169.254.170.2": "cloud metadata", "fd20:ce::254": "cloud metadata",
		"198.18.0.1": "benchmarking", "fd62:6177:6e00::1": "private", "4000::1": "reserved", "1::1": "reserved", "::2": "IPv4-compatible",
		// Neighbours of the blocks, and hosts that everybody knows.
		"8.8.8.8": "", "1.1.1.1": "", "9.255.255.255": "", "11.0.0.0": "", "100.63.255.255": "", "100.128.0.0": "", "126.255.255.255": "", "128.0.0.0": "", "169.253.255.255": "",
		"169.255.0.0": "", "172.15.255.255": "", "172.32.0.0": "", "192.0.1.0": "", "192.0.3.0": "", "192.167.255.255": "", "192.169.0.0": "", "198.17.255.255": "", "198.20.0.0": "",
		"203.0.112.255": "", "223.255.255.255": "", "168.63.129.17": "", "::ffff:8.8.8.8": "", "64:ff9b::808:808": "", "2606:4700:4700::1111": "", "2001:4860:4860::8888": "",
		"2001:200::1": "", "2a00::1": "", "3ffe::1": "", "2620:fe::fe": "",
	} {
		if got := Class(netip.MustParseAddr(s)); got != want {
			t.Errorf("Class(%s) = %q, want %q", s, got, want)
		}
	}
	if Class(netip.Addr{}) == "" {
		t.Error("no address is taken for public")
	}
}

func BenchmarkClass(b *testing.B) {
	a := netip.MustParseAddr("2606:4700:4700::1111")
	b.ReportAllocs()
	for b.Loop() {
		if Class(a) != "" {
			b.Fatal("not public")
		}
	}
}
