package netrule

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustHost(t testing.TB, s string) Host {
	t.Helper()
	h, err := ParseHost(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestParseHost(t *testing.T) {
	for in, want := range map[string]string{
		"example.org": "example.org", "example.org:80,443": "example.org", "example.org:443,80": "example.org", "*.example.org": "*.example.org",
		"example.org:443": "example.org:443", "example.org:8443,443,443": "example.org:443,8443", "h:8000-8100": "h:8000-8100",
		"h:5-9,1-4,10": "h:1-10", "h:3,1": "h:1,3", "h:*": "h:*", "h:1-65535": "h:*", "_x.example.org": "_x.example.org", "db.corp.internal:5432": "db.corp.internal:5432",
		"xn--bcher-kva.example": "xn--bcher-kva.example", "*.xn--p1ai:1": "*.xn--p1ai:1", "10.1.2.3:5432": "10.1.2.3:5432", "10.0.0.0/8:22": "10.0.0.0/8:22",
		"10.1.2.3/32": "10.1.2.3", "[2001:db8::1]:443": "[2001:db8::1]:443", "[2001:db8::/32]": "[2001:db8::/32]", "[fc00::/7]:1": "[fc00::/7]:1", "169.254.169.254:80": "169.254.169.254:80",
	} {
		h, err := ParseHost(in)
		if err != nil || h.String() != want {
			t.Errorf("ParseHost(%q) = %q, %v; want %q", in, h, err, want)
		}
	}
}

func TestParseHostRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                                    "want a name of 1 to 253",
		"Example.org":                         `write "example.org"`,
		"example.org.":                        `write "example.org"`,
		" example.org\n":                      `write "example.org"`,
		"https://example.org/x":               `write "example.org"`,
		"https://u:p@Example.org:8443/x":      `write "example.org:8443"`,
		"ssh://git@example.org/x":             `write "example.org:22"`,
		"B\u00fccher.example:443":             `write "xn--bcher-kva.example:443"`,
		"*.b\u00fccher.example":               `write "*.xn--bcher-kva.example"`,
		"2001:DB8::1":                         `write "[2001:db8::1]"`,
		"fe80::1%eth0":                        `write "[fe80::1]"`,
		"[2001:DB8:0::1]:22":                  `write "[2001:db8::1]:22"`,
		"[::ffff:10.0.0.1]:22":                `write "10.0.0.1:22"`,
		"10.1.2.3/8":                          `write "10.0.0.0/8"`,
		"[2001:db8::1/32]:1":                  `write "[2001:db8::/32]:1"`,
		"*":                                   "would open every host",
		"*:443":                               "would open every host",
		"a.*.org":                             "may only stand for what is below",
		"**.org":                              "may only stand for what is below",
		"*.10.0.0.1":                          "nothing lies below an address",
		"localhost":                           "host_ports",
		"a.localhost:3000":                    "host_ports",
		"*.localhost":                         "host_ports",
		"127.0.0.1:5432":                      "host_ports",
		"127.0.0.0/8":                         "no entry opens addresses of 127.0.0.0/8",
		"0.0.0.0/0":                           "no entry opens",
		"0.0.0.0":                             "no entry opens",
		"224.0.0.1":                           "no entry opens",
		"255.255.255.255":                     "no entry opens",
		"[::1]:80":                            "no entry opens",
		"[::]:80":                             "no entry opens",
		"[::/0]":                              "no entry opens",
		"[ff02::1]":                           "no entry opens",
		"[::ffff:0.0.0.0/96]":                 "no entry opens",
		"[10.0.0.1]:80":                       `write "10.0.0.1:80"`,
		"[2001:db8::1":                        `write "[2001:db8::1]"`,
		"[2001:db8:":                          "bracket is not closed",
		"[2001:db8::1]x":                      "bracket is not closed",
		"[x]:80":                              "it is no address",
		"[]":                                  "it is no address",
		"10.0.0.0/33":                         "it is no address",
		"example.org/24":                      "it is no address",
		"2130706433":                          "unusual form",
		"0x7f.1":                              "unusual form",
		"0177.0.0.1":                          "unusual form",
		"127.1":                               "unusual form",
		"user@example.org":                    "'@' is not accepted",
		"a\x00.example.org":                   "is not accepted",
		"a\r\nb.example.org":                  "is not accepted",
		"a..example.org":                      "is not accepted",
		"-a.example.org":                      "is not accepted",
		"example.org:":                        "is no port",
		"example.org:0":                       "is no port",
		"example.org:080":                     "is no port",
		"example.org:65536":                   "is no port",
		"example.org:2-1":                     "is no port",
		"example.org:1-":                      "is no port",
		"example.org:+1":                      "is no port",
		"example.org:https":                   "is no port",
		"example.org:80:90":                   "is no port",
		"h:" + strings.Repeat("1,", 32) + "1": "at most 32 parts",
		"xn--":                                "is not accepted",
		strings.Repeat("a", 2000):             "at most 1024",
		strings.Repeat("a.", 130) + "org":     "1 to 253",
	} {
		if h, err := ParseHost(in); err == nil || !strings.Contains(err.Error(), want) || h.String() != "" {
			t.Errorf("ParseHost(%q) = %q, %v; want a refusal with %q", in, h, err, want)
		}
	}
}

func TestHostMatch(t *testing.T) {
	for _, tt := range []struct {
		entry, name string
		port        uint16
		want        bool
	}{
		{"example.org", "example.org", 443, true},
		{"example.org", "example.org", 80, true},
		{"example.org", "example.org", 22, false},
		{"example.org", "a.example.org", 443, false},
		{"example.org", "example.org.evil.test", 443, false},
		{"*.example.org", "a.example.org", 443, true},
		{"*.example.org", "a.b.example.org", 443, true},
		{"*.example.org", "example.org", 443, false},
		{"*.example.org", ".example.org", 443, false},
		{"*.example.org", "evilexample.org", 443, false},
		{"*.example.org", "xn--a.example.org", 443, false},
		{"*.example.org", "a.xn--b.example.org", 443, false},
		{"*.xn--b.example.org", "a.xn--b.example.org", 443, true},
		{"xn--b.example.org", "xn--b.example.org", 443, true},
		{"h:8000-8100", "h", 8100, true},
		{"h:8000-8100", "h", 8101, false},
		{"h:*", "h", 1, true},
		{"h:*", "h", 0, false},
		{"10.0.0.0/8:22", "10.255.0.1", 22, true},
		{"10.0.0.0/8:22", "11.0.0.1", 22, false},
		{"10.0.0.0/8:22", "::ffff:10.0.0.1", 22, true},
		{"10.0.0.0/8:22", "10.example.org", 22, false},
		{"[2001:db8::/32]", "2001:db8::5", 443, true},
		{"[2001:db8::/32]", "2001:db8::5%eth0", 443, false},
		{"[2001:db8::/32]", "10.0.0.1", 443, false},
		{"10.1.2.3", "10.1.2.3", 443, true},
		{"10.1.2.3", "10.1.2.4", 443, false},
		{"example.org", "10.1.2.3", 443, false},
		{"example.org", "", 443, false},
	} {
		h := mustHost(t, tt.entry)
		if got := h.Match(tt.name, tt.port); got != tt.want {
			t.Errorf("%q matches %q:%d: %t; want %t", tt.entry, tt.name, tt.port, got, tt.want)
		}
		if e, got := NewHosts([]Host{h}).Match(tt.name, tt.port); got != tt.want || got && e.String() != h.String() {
			t.Errorf("index of %q matches %q:%d: %t; want %t", tt.entry, tt.name, tt.port, got, tt.want)
		}
		a, err := netip.ParseAddr(tt.name)
		if got := h.MatchAddr(a, tt.port); got != (tt.want && err == nil) {
			t.Errorf("%q matches the address %v: %t", tt.entry, a, got)
		}
		if _, got := NewHosts([]Host{h}).MatchAddr(a, tt.port); got != (tt.want && err == nil) {
			t.Errorf("index of %q matches the address %v: %t", tt.entry, a, got)
		}
	}
}

// TestZeroRefuses: what was never parsed opens nothing.
func TestZeroRefuses(t *testing.T) {
	var none *Rules
	var hosts *Hosts
	_, byName := hosts.Match("example.org", 443)
	_, byAddr := hosts.MatchAddr(netip.MustParseAddr("10.0.0.1"), 443)
	_, empty := NewHosts([]Host{{}}).Match("", 0)
	if (Host{}).Match("", 0) || (Host{}).Match("example.org", 443) || (Host{}).MatchAddr(netip.Addr{}, 443) || byName || byAddr || empty {
		t.Error("the zero Host matches")
	}
	if (HTTP{}).Match("", 0, "GET", "/") || (HTTP{}).Permits("GET", "/") || (Git{}).Fetches("", 0, "") || (Git{}).Pushes("", 0, "", "") {
		t.Error("a zero rule permits")
	}
	if none.Opened("example.org", 443) {
		t.Error("no rules open a host")
	}
}

func TestMostExactEntryWins(t *testing.T) {
	var hosts []Host
	for _, s := range []string{"*.org", "*.example.org", "a.example.org:1", "a.example.org:443", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3:1", "[2001:db8::/32]"} {
		hosts = append(hosts, mustHost(t, s))
	}
	for name, want := range map[string]string{
		"a.example.org": "a.example.org:443", "b.example.org": "*.example.org", "example.org": "*.org", "10.1.2.3": "10.1.0.0/16", "10.2.0.1": "10.0.0.0/8", "2001:db8::1": "[2001:db8::/32]",
	} {
		if got, ok := NewHosts(hosts).Match(name, 443); !ok || got.String() != want {
			t.Errorf("%q is matched by %q, %t; want %q", name, got, ok, want)
		}
	}
}

var (
	drawnNames = []string{"a", "b.a", "c.b.a", "xn--p1ai", "xn--p1ai.a", "b.xn--p1ai.a", "c.xn--p1ai.a", "10.0.0.1", "10.0.0.2", "10.0.1.1", "2001:db8::1", "2001:db8::2"}
	drawnPorts = []uint16{1, 2, 3, 4, 22, 80, 443}
	drawHost   = rapid.Custom(func(t *rapid.T) string {
		name := rapid.SampledFrom(append([]string{"*.a", "*.b.a", "*.xn--p1ai.a", "10.0.0.0/24", "10.0.0.0/16", "10.0.0.0/31", "[2001:db8::1]", "[2001:db8::/126]", "[2001:db8::/32]"},
			drawnNames[:10]...)).Draw(t, "name")
		return name + rapid.SampledFrom([]string{"", ":1", ":2", ":1-2", ":1,3", ":2-4", ":1-3", ":*", ":22", ":443", ":80,443"}).Draw(t, "ports")
	})
)

// TestHostCoversIsSound compares Covers and Overlaps with matching everything
// there is.
func TestHostCoversIsSound(t *testing.T) {
	covered, apart := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		a, err1 := ParseHost(drawHost.Draw(t, "a"))
		b, err2 := ParseHost(drawHost.Draw(t, "b"))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if rapid.Bool().Draw(t, "same name") {
			b.name, b.below, b.prefix = a.name, a.below, a.prefix
		}
		common, beyond := false, false
		for _, name := range drawnNames {
			for _, port := range drawnPorts {
				inA, inB := a.Match(name, port), b.Match(name, port)
				common, beyond = common || inA && inB, beyond || inB && !inA
			}
		}
		switch {
		case a.Covers(b) && beyond:
			t.Fatalf("%q does not cover %q", a, b)
		case common && !a.Overlaps(b):
			t.Fatalf("%q overlaps %q", a, b)
		case a.Overlaps(b) != b.Overlaps(a):
			t.Fatalf("%q and %q overlap one way", a, b)
		}
		if a.Covers(b) && a.String() != b.String() {
			covered++
		}
		if !a.Overlaps(b) {
			apart++
		}
	})
	if covered == 0 || apart == 0 {
		t.Errorf("%d covered, %d apart: the property was not tried", covered, apart)
	}
}

// TestCoversSaysYes: a Covers that always said no would be sound.
func TestCoversSaysYes(t *testing.T) {
	for _, tt := range [][2]string{
		{"example.org", "example.org:443"}, {"*.example.org", "a.example.org"}, {"*.example.org", "*.b.example.org:80"}, {"*.example.org", "*.example.org"},
		{"h:1-10,20-30", "h:2-5,25"}, {"h:*", "h"}, {"10.0.0.0/8", "10.1.0.0/16"}, {"10.0.0.0/8", "10.1.2.3"}, {"[2001:db8::/32]", "[2001:db8::1]"},
	} {
		if a, b := mustHost(t, tt[0]), mustHost(t, tt[1]); !a.Covers(b) || !a.Overlaps(b) || b.Covers(a) && tt[0] != tt[1] {
			t.Errorf("%q and %q", a, b)
		}
	}
}

// TestCoversSaysNo: the pairs of which one is a little more.
func TestCoversSaysNo(t *testing.T) {
	for _, tt := range [][2]string{
		{"10.0.0.0/16", "10.0.0.0/8"}, {"10.0.0.0", "10.0.0.0/31"}, {"10.0.0.0/8", "[2001:db8::1]"}, {"example.org", "*.example.org"}, {"*.example.org", "example.org"},
		{"*.example.org", "xn--a.example.org"}, {"*.example.org", "*.xn--a.example.org"}, {"h:1,3", "h:2"}, {"h:1,3", "h:1-3"}, {"h", "h:*"}, {"10.example.org", "10.0.0.1"},
	} {
		if a, b := mustHost(t, tt[0]), mustHost(t, tt[1]); a.Covers(b) {
			t.Errorf("%q covers %q", a, b)
		}
	}
}

// TestHostsIsHostByHost: the index finds what looking at each entry finds.
func TestHostsIsHostByHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var hosts []Host
		for _, s := range rapid.SliceOfN(drawHost, 0, 8).Draw(t, "hosts") {
			h, err := ParseHost(s)
			if err != nil {
				t.Fatal(err)
			}
			hosts = append(hosts, h)
		}
		index := NewHosts(hosts)
		for _, name := range drawnNames {
			for _, port := range drawnPorts {
				_, got := index.Match(name, port)
				if want := slices.ContainsFunc(hosts, func(h Host) bool { return h.Match(name, port) }); got != want {
					t.Fatalf("%v: %q:%d: %t; want %t", hosts, name, port, got, want)
				}
			}
		}
	})
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"example.org", "*.a.b:1-2,5", "10.0.0.0/8:22", "[2001:db8::1]:443", "[::ffff:1.2.3.4]", "b\u00fccher.example", "https://u@h:1/", "xn--a.b", "127.1", "h:*", "[", "]:1", "*", ":", "%", "a\x00b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHost(s)
		if err != nil {
			if h.String() != "" {
				t.Fatalf("ParseHost(%q) gives %q with its error", s, h)
			}
			return
		}
		again, err := ParseHost(h.String())
		if err != nil || again.String() != h.String() || !again.Covers(h) || !h.Covers(again) {
			t.Fatalf("ParseHost(%q) = %q; of that it is %q, %v", s, h, again, err)
		}
	})
}

func BenchmarkHosts(b *testing.B) {
	for _, n := range []int{10, 1000} {
		var hosts []Host
		for i := range n {
			name := strings.Repeat("x", 1+i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + ".example.org"
			if i%2 == 1 {
				name = "*." + name
			}
			hosts = append(hosts, mustHost(b, name))
		}
		index := NewHosts(hosts)
		b.Run("hit/"+itoa(n), func(b *testing.B) {
			for b.Loop() {
				index.Match("deep.xxbab.example.org", 443)
			}
		})
		b.Run("miss/"+itoa(n), func(b *testing.B) {
			for b.Loop() {
				index.Match("nobody.knows.this.example.com", 443)
			}
		})
	}
}

// TestParseHosts names every entry that can't be read, and matches the others.
func TestParseHosts(t *testing.T) {
	hosts, err := ParseHosts([]string{"a.test:443", "*.b.test"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a.test": true, "x.b.test": true, "b.test": false, "c.test": false} {
		if _, ok := hosts.Match(name, 443); ok != want {
			t.Errorf("%s: %v, want %v", name, ok, want)
		}
	}
	hosts, err = ParseHosts([]string{"a.test", "b_.test/", "c.test:0"})
	if hosts != nil || err == nil || !strings.Contains(err.Error(), "b_.test/") || !strings.Contains(err.Error(), "c.test:0") {
		t.Errorf("%v, %v; want both bad entries named", hosts, err)
	}
}
