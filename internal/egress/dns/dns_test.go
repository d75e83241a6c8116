package dns

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn/internal/egress/names"
)

const why = "no rule permits this host"

// newServer returns a server that permits a name and what lies below it.
func newServer(permitted ...string) *Server {
	return &Server{Names: names.New(), Permit: func(name string) (bool, string) {
		for _, p := range permitted {
			if name == p || strings.HasSuffix(name, "."+p) {
				return true, ""
			}
		}
		return false, why
	}}
}

// An ask is a query to be written, wrong on purpose where a test wants it.
type ask struct {
	header  dnsmessage.Header
	name    string
	typ     dnsmessage.Type
	class   dnsmessage.Class // 0 is IN
	edns    int              // size; 0 leaves the OPT record out
	version uint32
	twice   bool // two OPT records
	counts  [4]uint16
}

const id = 0xbeef

func (a ask) pack(t testing.TB) []byte {
	t.Helper()
	a.header.ID = id
	b := dnsmessage.NewBuilder(nil, a.header)
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if a.class == 0 {
		a.class = dnsmessage.ClassINET
	}
	check(b.StartQuestions())
	check(b.Question(dnsmessage.Question{Name: dnsmessage.MustNewName(a.name), Type: a.typ, Class: a.class}))
	check(b.StartAdditionals())
	for range map[bool]int{false: min(a.edns, 1), true: 2}[a.twice] {
		var h dnsmessage.ResourceHeader
		check(h.SetEDNS0(a.edns, 0, true))
		h.TTL |= a.version << 16
		check(b.OPTResource(h, dnsmessage.OPTResource{Options: []dnsmessage.Option{{Code: 10, Data: []byte("cookie!!")}}}))
	}
	msg, err := b.Finish()
	check(err)
	for i, n := range a.counts {
		if n > 0 {
			binary.BigEndian.PutUint16(msg[4+2*i:], n)
		}
	}
	return msg
}

func unpack(t testing.TB, msg []byte) dnsmessage.Message {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(msg); err != nil {
		t.Fatalf("response %x: %v", msg, err)
	}
	return m
}

// summary is the code of a response and its records, briefly.
func summary(m dnsmessage.Message) string {
	code := m.RCode
	for _, r := range m.Additionals {
		code = r.Header.ExtendedRCode(code)
	}
	s := strings.TrimPrefix(code.String(), "RCode")
	for _, r := range m.Answers {
		switch b := r.Body.(type) {
		case *dnsmessage.AResource:
			s += " A " + netip.AddrFrom4(b.A).String()
		case *dnsmessage.AAAAResource:
			s += " AAAA " + netip.AddrFrom16(b.AAAA).String()
		case *dnsmessage.PTRResource:
			s += " PTR " + b.PTR.String()
		default:
			s += fmt.Sprintf(" %T", b)
		}
	}
	return s
}

func reverseName(a netip.Addr) string {
	if a.Is4() {
		b := a.As4()
		return fmt.Sprintf("%d.%d.%d.%d.in-addr.arpa.", b[3], b[2], b[1], b[0])
	}
	s := ""
	for _, b := range a.As16() {
		s = fmt.Sprintf("%x.%x.", b&15, b>>4) + s
	}
	return s + "ip6.arpa."
}

func TestAnswers(t *testing.T) {
	s := newServer("open.example", "db", "arpa", "8.8.8.8")
	v4, _ := s.Names.Address("open.example", false)
	v6, _ := s.Names.Address("open.example", true)
	type typ = dnsmessage.Type
	const a, aaaa, ptr = dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypePTR
	stranger := reverseName(netip.MustParseAddr("198.18.255.255"))
	tests := []struct {
		name string
		typ  typ
		want string
	}{
		{"open.example.", a, "Success A " + v4.String()},
		{"open.example.", aaaa, "Success AAAA " + v6.String()},
		{"OPEN.eXample.", a, "Success A " + v4.String()},
		{"closed.example.", a, "NameError"},
		{"closed.example.", dnsmessage.TypeTXT, "NameError"},
		{"example.", a, "NameError"},
		{"localhost.", a, "Success A 127.0.0.1"},
		{"localhost.", aaaa, "Success AAAA ::1"},
		{"app.LocalHost.", a, "Success A 127.0.0.1"},
		{"localhost.", dnsmessage.TypeTXT, "Success"},
		{"printer.local.", a, "NameError"},
		{"metadata.google.internal.", a, "NameError"},
		{".", dnsmessage.TypeNS, "NameError"},
		{"ex\u00e4mple.open.example.", a, "NameError"},
		{"a b.open.example.", a, "NameError"},
		{"a\x00.open.example.", a, "NameError"},
		{"-a.open.example.", a, "NameError"},
		{"8.8.8.8.", a, "NameError"}, // permitted, but no name
		{"127.0.0.1.", a, "NameError"},
		{"::1.", aaaa, "NameError"},
		{"[::1].", aaaa, "NameError"},
		{"2130706433.", a, "NameError"},
		{reverseName(v4), ptr, "Success PTR open.example."},
		{reverseName(v6), ptr, "Success PTR open.example."},
		{strings.ToUpper(reverseName(v6)), ptr, "Success PTR open.example."},
		{reverseName(v4), dnsmessage.TypeTXT, "Success"},
		{stranger, ptr, "NameError"},
		{"1.0.0.127.in-addr.arpa.", ptr, "Success PTR localhost."},
		{reverseName(netip.IPv6Loopback()), ptr, "Success PTR localhost."},
		{"8.8.8.8.in-addr.arpa.", ptr, "NameError"},
		{"10.in-addr.arpa.", ptr, "NameError"},
		{"1.0.0.0127.in-addr.arpa.", ptr, "NameError"},
		{"fd62:6177:6e00::1.2.3.4.in-addr.arpa.", ptr, "NameError"},
		{"1" + reverseName(v6), ptr, "NameError"},
		{"_dns.resolver.arpa.", ptr, "NameError"},
		{"arpa.", ptr, "NameError"},
		{"open.example.", ptr, "Success"},
	}
	for _, typ := range []dnsmessage.Type{2, 5, 6, 10, 13, 15, 16, 33, 35, 39, 43, 48, 64, 65, 99, 256, 257, 32768, 65280, 65535} {
		tests = append(tests, struct {
			name string
			typ  dnsmessage.Type
			want string
		}{"open.example.", typ, "Success"})
	}
	for _, typ := range []dnsmessage.Type{41, 128, 249, 250, 251, 252, 253, 254, 255} {
		tests = append(tests, struct {
			name string
			typ  dnsmessage.Type
			want string
		}{"open.example.", typ, "Refused"})
	}
	for _, tt := range tests {
		for _, edns := range []int{0, 1232} {
			q := ask{name: tt.name, typ: tt.typ, edns: edns, header: dnsmessage.Header{RecursionDesired: true, CheckingDisabled: true}}
			m := unpack(t, s.respond(nil, q.pack(t)))
			if got := summary(m); got != tt.want {
				t.Errorf("%q %v: got %q, want %q", tt.name, tt.typ, got, tt.want)
			}
			h := m.Header
			if h.ID != id || !h.Response || !h.RecursionDesired || !h.RecursionAvailable || !h.CheckingDisabled || h.Authoritative || h.Truncated || h.AuthenticData {
				t.Errorf("%q %v: header %+v", tt.name, tt.typ, h)
			}
			if len(m.Questions) != 1 || m.Questions[0].Name.String() != tt.name || m.Questions[0].Type != tt.typ {
				t.Errorf("%q %v comes back as %v", tt.name, tt.typ, m.Questions)
			}
			for _, r := range m.Answers {
				if r.Header.TTL != TTL || r.Header.Name.String() != tt.name {
					t.Errorf("%q %v: record %v", tt.name, tt.typ, r.Header)
				}
			}
			if len(m.Authorities) != 0 || len(m.Additionals) != min(edns, 1) {
				t.Errorf("%q %v: %d authorities, %d additionals", tt.name, tt.typ, len(m.Authorities), len(m.Additionals))
			}
		}
	}
}

func TestOnlyPlainQueries(t *testing.T) {
	s := newServer("open.example")
	plain := ask{name: "open.example.", typ: dnsmessage.TypeA, edns: 1232}
	if got := summary(unpack(t, s.respond(nil, plain.pack(t)))); !strings.HasPrefix(got, "Success A ") {
		t.Fatalf("control: %q", got)
	}
	for what, tt := range map[string]struct {
		change func(*ask)
		want   string
	}{
		"a response":         {func(a *ask) { a.header.Response = true }, ""},
		"a broken response":  {func(a *ask) { a.header.Response = true; a.counts[0] = 9 }, ""},
		"opcode IQUERY":      {func(a *ask) { a.header.OpCode = 1 }, "NotImplemented"},
		"opcode UPDATE":      {func(a *ask) { a.header.OpCode = 5 }, "NotImplemented"},
		"class CHAOS":        {func(a *ask) { a.class = dnsmessage.ClassCHAOS }, "Refused"},
		"class ANY":          {func(a *ask) { a.class = dnsmessage.ClassANY }, "Refused"},
		"two questions":      {func(a *ask) { a.counts[0] = 2 }, "FormatError"},
		"an answer":          {func(a *ask) { a.counts[1] = 1 }, "FormatError"},
		"an authority":       {func(a *ask) { a.counts[2] = 1 }, "FormatError"},
		"missing additional": {func(a *ask) { a.counts[3] = 2 }, "FormatError"},
		"two OPTs":           {func(a *ask) { a.twice = true }, "FormatError"},
		"EDNS 1":             {func(a *ask) { a.version = 1 }, "16"},
	} {
		q := plain
		tt.change(&q)
		r := s.respond(nil, q.pack(t))
		if tt.want == "" {
			if r != nil {
				t.Errorf("%s: got %x, want silence", what, r)
			}
			continue
		}
		if m := unpack(t, r); summary(m) != tt.want || m.ID != id || m.OpCode != q.header.OpCode {
			t.Errorf("%s: got %q, %+v, want %q", what, summary(m), m.Header, tt.want)
		}
	}
	inHeader := []byte("\x01a\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x00\x00\x01\x00\x01")
	if m := unpack(t, s.respond(nil, inHeader)); summary(m) != "FormatError" || len(m.Questions) > 0 {
		t.Errorf("a name in the header: got %q, %v", summary(m), m.Questions)
	}
	whole := plain.pack(t)
	for n := range whole {
		r := s.respond(nil, whole[:n])
		if n < 12 && r != nil || n >= 12 && summary(unpack(t, r)) != "FormatError" {
			t.Errorf("%d of %d bytes: got %x", n, len(whole), r)
		}
	}
}

// reasonOf returns the Extended DNS Error of a response.
func reasonOf(m dnsmessage.Message) (code uint16, text string, ok bool) {
	for _, r := range m.Additionals {
		if opt, is := r.Body.(*dnsmessage.OPTResource); is {
			for _, o := range opt.Options {
				if o.Code == 15 {
					return binary.BigEndian.Uint16(o.Data), string(o.Data[2:]), true
				}
			}
		}
	}
	return 0, "", false
}

func TestRefusalSaysWhy(t *testing.T) {
	s := newServer("open.example")
	for _, tt := range []struct {
		name string
		edns int
		code uint16
		want string
	}{
		{"closed.example.", 1232, 18, why},
		{"closed.example.", 512, 18, why},
		{"closed.example.", 1, 18, why}, // counts as 512
		{"closed.example.", 0, 0, ""},
		{"open.example.", 1232, 0, ""},
		{"-a.example.", 1232, 18, "is not accepted"},
		{"8.8.8.8.", 1232, 18, "an address is not a name"},
	} {
		code, text, ok := reasonOf(unpack(t, s.respond(nil, ask{name: tt.name, typ: dnsmessage.TypeA, edns: tt.edns}.pack(t))))
		if code != tt.code || ok != (tt.want != "") || !strings.Contains(text, tt.want) {
			t.Errorf("%q with size %d: got %d %q, %v", tt.name, tt.edns, code, text, ok)
		}
	}
}

func TestZeroServerRefuses(t *testing.T) {
	yes := func(string) (bool, string) { return true, "" }
	for _, s := range []*Server{{}, {Permit: yes}, {Names: names.New()}, {Names: &names.Table{}, Permit: yes}} {
		m := unpack(t, s.respond(nil, ask{name: "open.example.", typ: dnsmessage.TypeA}.pack(t)))
		if m.RCode == dnsmessage.RCodeSuccess || len(m.Answers) > 0 {
			t.Errorf("%+v: %q", s, summary(m))
		}
		if m := unpack(t, s.respond(nil, ask{name: "1.0.18.198.in-addr.arpa.", typ: dnsmessage.TypePTR}.pack(t))); summary(m) != "NameError" {
			t.Errorf("%+v: %q", s, summary(m))
		}
	}
}

// TestAlwaysFits: the longest names and the longest, strangest reasons still
// make a response that every client takes.
func TestAlwaysFits(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		reason := rapid.StringN(0, 2000, -1).Draw(r, "reason")
		s := &Server{Names: names.New(), Permit: func(string) (bool, string) { return rapid.Bool().Draw(r, "ok"), reason }}
		labels := rapid.SliceOfN(rapid.StringMatching(`[a-zA-Z0-9]{1,63}`), 1, 127).Draw(r, "labels")
		name := strings.Join(labels, ".")
		name = strings.Trim(name[:min(len(name), 253)], ".") + "."
		typ := rapid.SampledFrom([]dnsmessage.Type{1, 28, 16, 12}).Draw(r, "type")
		got := s.respond(nil, ask{name: name, typ: typ, edns: rapid.IntRange(0, 4096).Draw(r, "size")}.pack(t))
		if len(got) == 0 || len(got) > 512 {
			r.Fatalf("%q: a response of %d bytes", name, len(got))
		}
		if _, text, _ := reasonOf(unpack(t, got)); len(text) > 160 || strings.ContainsAny(text, "\x00\r\n") {
			r.Fatalf("reason %q", text)
		}
	})
	long := strings.Repeat("a.", 126) + "a"
	s := newServer(long)
	addr, err := s.Names.Address(long, true)
	if err != nil {
		t.Fatal(err)
	}
	m := unpack(t, s.respond(nil, ask{name: reverseName(addr), typ: dnsmessage.TypePTR, edns: 512}.pack(t)))
	if got := summary(m); got != "Success PTR "+long+"." {
		t.Errorf("got %q", got)
	}
}

// TestFloodOfNames: a guest that makes up names fills its own table and gets
// an honest failure; names it has keep working.
func TestFloodOfNames(t *testing.T) {
	s := newServer("open.example")
	first := summary(unpack(t, s.respond(nil, ask{name: "h0.open.example.", typ: dnsmessage.TypeA}.pack(t))))
	for i := range names.Max {
		if _, err := s.Names.Address(fmt.Sprintf("h%d.open.example", i), false); err != nil {
			t.Fatal(err)
		}
	}
	m := unpack(t, s.respond(nil, ask{name: "more.open.example.", typ: dnsmessage.TypeA, edns: 1232}.pack(t)))
	if code, text, _ := reasonOf(m); summary(m) != "ServerFailure" || code != 0 || !strings.Contains(text, "65536 names") {
		t.Errorf("got %q, %d %q", summary(m), code, text)
	}
	if got := summary(unpack(t, s.respond(nil, ask{name: "h0.open.example.", typ: dnsmessage.TypeA}.pack(t)))); got != first {
		t.Errorf("got %q, before it was %q", got, first)
	}
}

func BenchmarkQuery(b *testing.B) {
	s := newServer("registry.example")
	msg := ask{name: "registry.example.", typ: dnsmessage.TypeA, edns: 1232}.pack(b)
	out := make([]byte, 0, maxResponse)
	b.ReportAllocs()
	for b.Loop() {
		if s.respond(out, msg) == nil {
			b.Fatal("no response")
		}
	}
}
