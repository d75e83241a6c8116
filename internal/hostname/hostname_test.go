package hostname

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNormal(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		class    Class
	}{
		{"example.com", "example.com", Name},
		{"EXAMPLE.Com.", "example.com", Name},
		{"_dmarc.example.com", "_dmarc.example.com", Name},
		{"a-b.example", "a-b.example", Name},
		{"3com.example", "3com.example", Name},
		{"localhost", "localhost", Loopback},
		{"LocalHost.", "localhost", Loopback},
		{"x.localhost", "x.localhost", Loopback},
		{"127.0.0.1", "127.0.0.1", Loopback},
		{"127.255.255.254", "127.255.255.254", Loopback},
		{"::1", "::1", Loopback},
		{"[::1]", "::1", Loopback},
		{"::ffff:127.0.0.1", "127.0.0.1", Loopback},
		{"db", "db", Internal},
		{"printer.local", "printer.local", Internal},
		{"metadata.google.internal", "metadata.google.internal", Internal},
		{"1.0.0.127.in-addr.arpa", "1.0.0.127.in-addr.arpa", Internal},
		{"10.0.0.1", "10.0.0.1", Internal},
		{"192.168.1.1", "192.168.1.1", Internal},
		{"172.16.0.1", "172.16.0.1", Internal},
		{"169.254.169.254", "169.254.169.254", Internal},
		{"::ffff:169.254.169.254", "169.254.169.254", Internal},
		{"100.64.0.1", "100.64.0.1", Internal},
		{"0.0.0.0", "0.0.0.0", Internal},
		{"::", "::", Internal},
		{"224.0.0.1", "224.0.0.1", Internal},
		{"239.1.2.3", "239.1.2.3", Internal},
		{"fe80::1", "fe80::1", Internal},
		{"fd00::1", "fd00::1", Internal},
		{"192.0.2.1", "192.0.2.1", Address},
		{"2001:DB8::1", "2001:db8::1", Address},
		{"2001:db8:0:0:0:0:0:1", "2001:db8::1", Address},
		{"100.128.0.1", "100.128.0.1", Address},
		{strings.Repeat("a", 63) + ".example", strings.Repeat("a", 63) + ".example", Name},
	} {
		got, class, err := Normal(tt.in)
		if err != nil || got != tt.want || class != tt.class {
			t.Errorf("Normal(%q) = %q, %d, %v; want %q, %d", tt.in, got, class, err, tt.want, tt.class)
		}
	}
}

// TestNormalRefuses: forms that two resolvers, or a human and a resolver,
// read differently.
func TestNormalRefuses(t *testing.T) {
	for _, in := range []string{
		"", ".", "..", "a..b", ".example.com", "example.com..",
		"-a.example", "a-.example", "a.-", "exa mple.com", "a\x00.example.com", "evil.com\x00.example.com",
		"exämple.com", "\u0435xample.com", "\u212a.example", "[::1", "::1]", "]::1[", "[[::1]]", "[127.0.0.1]", "xn--exmple-cua.com", "a.xn--p1ai", "XN--p1ai.example",
		"2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "127.0.0.01", "1.2.3", "1.2.3.4.5", "256.1.1.1", "a.1",
		"fe80::1%eth0", "example.com/", "example.com:80", "user@example.com", "a,b", "*", "*.example.com", "a%2eexample.com",
		strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 127) + "example",
	} {
		if got, class, err := Normal(in); err == nil || got != "" || class != 0 {
			t.Errorf("Normal(%q) = %q, %d, %v; want a refusal", in, got, class, err)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		in, host, port string
		class          Class
	}{
		{"example.com", "example.com", "", Name},
		{"Example.COM:8443", "example.com", "8443", Name},
		{"https://Example.com/a/b?c#d", "example.com", "443", Name},
		{"HTTP://example.com", "example.com", "80", Name},
		{"http://example.com:8080?x", "example.com", "8080", Name},
		{"https://example.com#@evil.example", "example.com", "443", Name},
		{"https://example.com/@evil.example:1", "example.com", "443", Name},
		{"ws://example.com/", "example.com", "80", Name},
		{"wss://example.com/", "example.com", "443", Name},
		{"ftp://example.com/", "example.com", "21", Name},
		{"ssh://example.com/x", "example.com", "22", Name},
		{"git://example.com/x", "example.com", "9418", Name},
		{"[::1]:80", "::1", "80", Loopback},
		{"[::1]", "::1", "", Loopback},
		{"::1", "::1", "", Loopback},
		{"http://[2001:db8::1]:81/", "2001:db8::1", "81", Address},
		{"localhost:3000", "localhost", "3000", Loopback},
		{"10.0.0.1:65535", "10.0.0.1", "65535", Internal},
	} {
		host, class, port, err := Split(tt.in)
		if err != nil || host != tt.host || port != tt.port || class != tt.class {
			t.Errorf("Split(%q) = %q, %d, %q, %v; want %q, %d, %q", tt.in, host, class, port, err, tt.host, tt.class, tt.port)
		}
	}
}

func TestSplitASCII(t *testing.T) {
	const name = "xn--exmple-cua.example:443"
	if _, _, _, err := Split(name); err == nil {
		t.Errorf("Split(%q) accepts an international name", name)
	}
	if host, class, port, err := SplitASCII(name); err != nil || host != "xn--exmple-cua.example" || class != Name || port != "443" {
		t.Errorf("SplitASCII(%q) = %q, %d, %q, %v", name, host, class, port, err)
	}
}

func TestSplitRefuses(t *testing.T) {
	for _, in := range []string{
		"", "://", "https://", "https:///path", "file:///etc/passwd", "gopher://example.com", "ext::sh -c x", "://example.com",
		"https://user@example.com", "https://example.com@evil.example", "https://example.com:443@evil.example/",
		`https://evil.example\@example.com`, `https://example.com\.evil.example`, "https://example.com\t.evil.example", "a b", "a\nb",
		"example.com:", "example.com:0", "example.com:080", "example.com:65536", "example.com:+80", "example.com:-1", "example.com:http", "example.com:80:90",
		":80", "[::1]:", "[::1]x:80", "https://2130706433/", "https://%65xample.com/", "https://example.com%00.evil.example/",
	} {
		if host, class, port, err := Split(in); err == nil || host != "" || class != 0 {
			t.Errorf("Split(%q) = %q, %d, %q, %v; want a refusal", in, host, class, port, err)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, host string
		want          bool
	}{
		{"example.com", "example.com", true},
		{"example.com", "a.example.com", false},
		{"example.com", "example.com.evil.example", false},
		{"*.example.com", "a.example.com", true},
		{"*.example.com", "a.b.example.com", true},
		{"*.example.com", "example.com", false},
		{"*.example.com", ".example.com", false},
		{"*.example.com", "evilexample.com", false},
		{"*.example.com", "a.example.com.evil.example", false},
		{"*example.com", "evilexample.com", false},
		{"*", "anything.example", true},
		{"*", "10.0.0.1", true},
		{"", "example.com", false},
	} {
		if got := Match(tt.pattern, tt.host); got != tt.want {
			t.Errorf("Match(%q, %q) = %t, want %t", tt.pattern, tt.host, got, tt.want)
		}
	}
}

var anyLabel = rapid.StringMatching(`[a-z]([a-z0-9_-]{0,8}[a-z0-9])?`)

// TestNormalIsIdempotent: what is normal stays as it is, in its class, however
// its letters were written.
func TestNormalIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(
			rapid.String(),
			rapid.StringMatching(`[A-Za-z0-9_.:\[\]-]{1,40}`),
			rapid.Custom(func(t *rapid.T) string {
				return strings.Join(rapid.SliceOfN(anyLabel, 1, 5).Draw(t, "labels"), ".")
			}),
			rapid.Custom(func(t *rapid.T) string {
				return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "v4"))).String()
			}),
		).Draw(t, "host")
		first, class, err := Normal(in)
		if err != nil {
			return
		}
		again, same, err := Normal(first)
		if err != nil || again != first || same != class {
			t.Fatalf("Normal(%q) = %q, %d; of that it is %q, %d, %v", in, first, class, again, same, err)
		}
		upper, _, err := Normal(strings.ToUpper(in))
		if err != nil || upper != first {
			t.Fatalf("Normal(%q) = %q, but in capitals %q, %v", in, first, upper, err)
		}
	})
}

// TestMatchWantsWholeLabels: a host that only ends in the letters of a name,
// or only begins with the name, is another host.
func TestMatchWantsWholeLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := anyLabel.Draw(t, "a") + "." + anyLabel.Draw(t, "b")
		other := anyLabel.Draw(t, "other")
		for _, host := range []string{other + name, other + "-" + name, name + "." + other, name + other, name} {
			if strings.HasSuffix(host, "."+name) {
				continue
			}
			if Match("*."+name, host) {
				t.Fatalf("*.%s matches %s", name, host)
			}
			if Match(name, host) && host != name {
				t.Fatalf("%s matches %s", name, host)
			}
		}
		if !Match("*."+name, other+"."+name) {
			t.Fatalf("*.%s does not match %s.%s", name, other, name)
		}
	})
}

// FuzzSplit: what is accepted names one host in its normal form, which the
// text spells out before anything that could name another.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		"example.com", "https://example.com:8443/a?b#c", "[::1]:80", "::1", "http://[fe80::1]/", "a@b", `a\b`, "ext::x", "1.2.3.4:5", "x:y:z", "://", "[]", "]:1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, class, port, err := Split(s)
		if err != nil {
			if host != "" || class != 0 {
				t.Fatalf("Split(%q) refuses with the host %q", s, host)
			}
			return
		}
		if again, same, err := Normal(host); err != nil || again != host || same != class {
			t.Fatalf("Split(%q): the host %q is not normal: %q, %d, %v", s, host, again, same, err)
		}
		if strings.ContainsAny(host, "@/\\?#* \x00") || len(port) > 5 {
			t.Fatalf("Split(%q) = %q, %q", s, host, port)
		}
		if class == Name && !strings.Contains(strings.ToLower(s), host) {
			t.Fatalf("Split(%q) = %q, which is not in it", s, host)
		}
		target := host
		if strings.Contains(host, ":") {
			target = "[" + host + "]"
		}
		if port != "" {
			target += ":" + port
		}
		if h, _, p, err := Split(target); err != nil || h != host || p != port {
			t.Fatalf("Split(%q) = %q, %q, %v; want %q, %q", target, h, p, err, host, port)
		}
	})
}

// TestNormalASCII: what a human wrote in the form of the wire is a name; every
// other refusal stands.
func TestNormalASCII(t *testing.T) {
	for in, want := range map[string]string{"XN--bcher-kva.Example.": "xn--bcher-kva.example", "a.xn--p1ai": "a.xn--p1ai", "Example.com": "example.com", "10.0.0.1": "10.0.0.1"} {
		if got, _, err := NormalASCII(in); err != nil || got != want {
			t.Errorf("NormalASCII(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", "b\u00fccher.example", "xn--.example", "xn--a-.example", "xn--a\x00.example", "0x7f.1", "xn--a..example", "user@xn--p1ai"} {
		if got, class, err := NormalASCII(in); err == nil || got != "" || class != 0 {
			t.Errorf("NormalASCII(%q) = %q, %d, %v; want a refusal", in, got, class, err)
		}
	}
}
