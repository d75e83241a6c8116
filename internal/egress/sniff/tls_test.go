package sniff

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// ext is one extension of a made ClientHello.
func ext(id uint16, data string) string {
	return string([]byte{byte(id >> 8), byte(id)}) + vector16(data)
}

func vector16(s string) string { return string([]byte{byte(len(s) >> 8), byte(len(s))}) + s }

func name(s string) string { return "\x00" + vector16(s) }

func sni(names string) string { return ext(extensionServerName, vector16(names)) }

// message makes a ClientHello.
func message(extensions ...string) string {
	body := "\x03\x03" + strings.Repeat("r", 32) + "\x00" + vector16("\x13\x01") + "\x01\x00" + vector16(strings.Join(extensions, ""))
	return "\x01\x00" + vector16(body)
}

func record(s string) string { return "\x16\x03\x01" + vector16(s) }

func TestTLS(t *testing.T) {
	alpn := ext(extensionALPN, vector16("\x02h2\x08http/1.1"))
	for _, tt := range []struct {
		raw, host string
		alpn      int
		ech       bool
	}{
		{record(message(sni(name("a.example")))), "a.example", 0, false},
		{record(message(sni(name("A.Example")), alpn)), "a.example", 2, false},
		{record(message(ext(extensionECH, "\x00\x01"), sni(name("a.example")))), "a.example", 0, true},
		{record(message(ext(extensionESNI, "x"), sni(name("a.example")))), "a.example", 0, true},
		{record(message(sni(name("a.example")))) + "\x17\x03\x03\x00\x05early", "a.example", 0, false},
		{record(message(sni(name("a.example")), ext(21, strings.Repeat("\x00", 12000)))), "a.example", 0, false},
	} {
		got := sniffed(t, tt.raw)
		if got.Kind != TLS || got.Host != tt.host || len(got.ALPN) != tt.alpn || got.ECH != tt.ech || got.Problem != "" {
			t.Errorf("Read(%.200q) = %+v; want %+v", tt.raw, got, tt)
		}
	}
}

func TestTLSProblems(t *testing.T) {
	good := message(sni(name("a.example")))
	for _, tt := range []struct{ raw, want string }{
		{record(message()), NoServerName},
		{record(message(sni(name("192.0.2.1")))), "address"},
		{record(message(sni(name("2001:db8::1")))), "address"},
		{record(message(sni(name("a.example.")))), "dot"},
		{record(message(sni(name("a.example\x00")))), "not accepted"},
		{record(message(sni(name("a.example\x00.b.example")))), "not accepted"},
		{record(message(sni(name("b.example/a.example")))), "not accepted"},
		{record(message(sni(name("2130706433")))), "unusual form"},
		{record(message(sni(name("\xc3\xa4.example")))), "ASCII"},
		{record(message(sni(name("")))), "want a name"},
		{record(message(sni(""))), "malformed"},
		{record(message(ext(extensionServerName, ""))), "malformed"},
		{record(message(sni(name("a.example") + name("b.example")))), "more than one"},
		{record(message(sni("\x01" + vector16("a.example")))), "not by host"},
		{record(message(sni(name("a.example")), "x")), "malformed"},
		{record(message(ext(extensionServerName, vector16(name("a.example"))+"x"))), "malformed"},
		{record(message(sni(name("a.example")), sni(name("b.example")))), "twice"},
		{record(message(ext(43, "a"), sni(name("a.example")), ext(43, "b"))), "twice"},
		{record(message(sni(name("a.example")), ext(extensionALPN, vector16("")))), "malformed"},
		{record(message(sni(name("a.example")), ext(extensionALPN, vector16("\x00")))), "malformed"},
		{record(message(sni(name("a.example")), ext(extensionECH, "\x01"))), "malformed"},
		{record(good + "\x0b\x00\x00\x00"), "another message"},
		{record("\x02\x00\x00\x00"), "want a ClientHello"},
		{record("\x01\x10\x00\x00"), "too long"},
		{record("\x01\x00\x00\x02\x03\x03"), "malformed"},
		{record("\x01\x00\x00\x00"), "malformed"},
		{strings.Replace(record(good), "\x03\x03rr", "\x03\x00rr", 1), "want TLS"},
		{record(good[:9]) + "\x14\x03\x03\x00\x01\x01" + record(good[9:]), "proper records"},
		{record(good[:9]) + "\x15\x03\x03\x00\x02\x01\x00" + record(good[9:]), "proper records"},
		{record(""), "proper records"},
		{"\x16\x03\x01\x40\x01", "proper records"},
		{"\x16\x02\x00" + vector16(good), "version 2.0"},
		{"\x16\xfe\xfd" + vector16(good), "version 254.253"},
		{record(good[:9]) + "\x16\x02\x01" + vector16(good[9:]), "version 2.1"},
		{"\x80\x2e\x01\x00\x02\x00\x15\x00\x00", "SSL 2.0"},
		{"\x80\x2e\x01\x03\x01\x00\x15\x00\x00", "SSL 2.0"},
		{record("\x01\x00\xf0\x00") + strings.Repeat(record("x"), defaultHello/6), "too long"},
	} {
		got := sniffed(t, tt.raw)
		if got.Kind != TLS || got.Host != "" || !strings.Contains(got.Problem, tt.want) {
			t.Errorf("Read(%.200q) = %+v; want a problem with %q", tt.raw, got, tt.want)
		}
	}
}

// TestFragments: a ClientHello that comes in records of any size is the one it
// was in one record.
func TestFragments(t *testing.T) {
	whole := message(sni(name("a.example")), ext(51, strings.Repeat("k", 1300)))
	for _, size := range []int{1, 2, 3, 4, 5, 7, 100, len(whole)} {
		var raw strings.Builder
		for piece := range slices.Chunk([]byte(whole), size) {
			raw.WriteString(record(string(piece)))
		}
		if got := sniffed(t, raw.String()); got.Host != "a.example" || got.Problem != "" {
			t.Errorf("in records of %d bytes: %+v", size, got)
		}
	}
}

// recorder keeps what a client writes.
type recorder struct {
	net.Conn
	wrote []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.wrote = append(r.wrote, b...)
	return len(b), nil
}

func (r *recorder) Read([]byte) (int, error)           { return 0, io.EOF }
func (r *recorder) SetDeadline(time.Time) error        { return nil }
func (r *recorder) SetWriteDeadline(t time.Time) error { return nil }
func (r *recorder) Close() error                       { return nil }

// firstBytes returns the ClientHello that crypto/tls sends.
func firstBytes(config *tls.Config) []byte {
	r := &recorder{}
	_ = tls.Client(r, config).Handshake() // ends with the EOF of the recorder
	return r.wrote
}

var errSeen = errors.New("seen")

// asServer returns what crypto/tls makes of a ClientHello, or nil where it
// gets no further.
func asServer(raw []byte) *tls.ClientHelloInfo {
	var seen *tls.ClientHelloInfo
	conn := struct {
		net.Conn
		io.Reader
	}{&recorder{}, strings.NewReader(string(raw))}
	_ = tls.Server(readFrom{conn.Conn, conn.Reader}, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		seen = h
		return nil, errSeen
	}}).Handshake()
	return seen
}

type readFrom struct {
	net.Conn
	r io.Reader
}

func (c readFrom) Read(b []byte) (int, error) { return c.r.Read(b) }

// TestAgainstCryptoTLS: of whatever crypto/tls sends, its server and this
// parser read the same.
func TestAgainstCryptoTLS(t *testing.T) {
	label := rapid.StringMatching(`[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,20}[a-zA-Z0-9_])?`)
	rapid.Check(t, func(t *rapid.T) {
		config := &tls.Config{
			ServerName: strings.Join(rapid.SliceOfN(label, 1, 5).Draw(t, "labels"), ".") + ".Example",
			NextProtos: rapid.SliceOfN(rapid.StringMatching(`.{1,30}`), 0, 5).Draw(t, "protocols"),
			MinVersion: rapid.SampledFrom([]uint16{tls.VersionTLS10, tls.VersionTLS12, tls.VersionTLS13}).Draw(t, "min"),
			MaxVersion: tls.VersionTLS13,
			CurvePreferences: rapid.SliceOfNDistinct(rapid.SampledFrom([]tls.CurveID{
				tls.X25519MLKEM768, tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}), 1, 5, rapid.ID).Draw(t, "curves"),
		}
		if rapid.Bool().Draw(t, "old") {
			config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS12
		}
		raw := firstBytes(config)
		if len(raw) == 0 {
			return // the client itself refuses the configuration
		}
		want := asServer(raw)
		got, ok := Parse(raw, Limits{})
		if !ok || got.Kind != TLS || got.ECH {
			t.Fatalf("got %+v, %t", got, ok)
		}
		if want == nil || got.Problem != "" || got.Host != strings.ToLower(want.ServerName) || !slices.Equal(got.ALPN, want.SupportedProtos) {
			t.Fatalf("got %+v, crypto/tls has %+v", got, want)
		}
	})
}
