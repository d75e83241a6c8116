package sniff

import (
	"bufio"
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/hostname"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// recorded returns what real clients have sent first, by client: curl 7.88,
// OpenSSL 3.0, Node 20, Python 3.11, git 2.39 (GnuTLS), wget 1.21, OpenSSH 9.2
// and crypto/tls of Go 1.26, asked for client.example where they could be.
func recorded(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/clients/*.hex")
	if err != nil || len(files) == 0 {
		t.Fatalf("no records: %v", err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".hex")] = raw
	}
	return out
}

func TestRecorded(t *testing.T) {
	const c = "client.example"
	both := []string{"h2", "http/1.1"}
	want := map[string]Hello{
		"curl-tls":        {Kind: TLS, Host: c, ALPN: both},
		"git-tls":         {Kind: TLS, Host: c, ALPN: both},
		"go-tls":          {Kind: TLS, Host: c, ALPN: both},
		"node-tls":        {Kind: TLS, Host: c, ALPN: both[1:]},
		"openssl-tls":     {Kind: TLS, Host: c, ALPN: both},
		"openssl-tls12":   {Kind: TLS, Host: c},
		"openssl-address": {Kind: TLS, Problem: NoServerName},
		"python-tls":      {Kind: TLS, Host: c},
		"wget-tls":        {Kind: TLS, Host: "localhost"},
		"curl-http":       {Kind: HTTP1, Host: c, Method: "GET", Accept: "*/*"},
		"curl-h2c":        {Kind: HTTP1, Host: c, Method: "GET", Accept: "*/*", Upgrade: "h2c"},
		"git-http":        {Kind: HTTP1, Host: c, Method: "GET", Accept: "*/*"},
		"node-http":       {Kind: HTTP1, Host: "127.0.0.1", Method: "GET", Accept: "*/*"},
		"python-http":     {Kind: HTTP1, Host: "127.0.0.1", Method: "GET"},
		"curl-h2":         {Kind: HTTP2},
		"ssh":             {Kind: SSH},
	}
	all := recorded(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(all))); diff != "" {
		t.Errorf("records:\n%s", diff)
	}
	for client, raw := range all {
		got := sniffed(t, string(raw))
		if got.Kind == HTTP1 && got.Port < 1024 {
			t.Errorf("%s: the port is %d; want the one that was recorded", client, got.Port)
		}
		got.Port = 0
		if diff := cmp.Diff(want[client], got); diff != "" {
			t.Errorf("%s:\n%s", client, diff)
		}
	}
}

// TestLiveClients asks the clients of this machine, as versions change.
func TestLiveClients(t *testing.T) {
	testenv.Need(t, "curl", "openssl", "node", "python3")
	const py = "import ssl,socket,sys;ssl.create_default_context().wrap_socket(socket.create_connection(('127.0.0.1',int(sys.argv[1]))),server_hostname='client.example')"
	const js = "require('tls').connect({host:'127.0.0.1',port:process.argv[1],servername:'client.example'}).on('error',()=>{})"
	for _, argv := range [][]string{
		{"curl", "-sk", "--resolve", "client.example:PORT:127.0.0.1", "https://client.example:PORT"},
		{"curl", "-s", "--resolve", "client.example:PORT:127.0.0.1", "http://client.example:PORT"},
		{"openssl", "s_client", "-connect", "127.0.0.1:PORT", "-servername", "client.example"},
		{"node", "-e", js, "PORT"},
		{"python3", "-c", py, "PORT"},
	} {
		got, err := live(t, argv)
		if err != nil || got.Host != "client.example" || got.Problem != "" || got.ECH {
			t.Errorf("%s: %+v, %v", argv[0], got, err)
		}
	}
}

// live starts a client with the port of a listener and sniffs it.
func live(t *testing.T, argv []string) (Hello, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Second))
	_, port, _ := net.SplitHostPort(l.Addr().String())
	cmd := exec.CommandContext(t.Context(), argv[0])
	for _, a := range argv[1:] {
		cmd.Args = append(cmd.Args, strings.ReplaceAll(a, "PORT", port))
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	conn, err := l.Accept()
	if err != nil {
		return Hello{}, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	hello, _, err := Read(conn, Limits{})
	return hello, err
}

// echConfig makes a configuration by which clients encrypt their ClientHello
// to a public name (RFC 9849 section 4).
func echConfig(t *testing.T, public string) []byte {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const x25519, sha256, aes128 = "\x00\x20", "\x00\x01", "\x00\x01"
	contents := "\x07" + x25519 + vector16(string(key.PublicKey().Bytes())) + vector16(sha256+aes128) + "\x00" + string([]byte{byte(len(public))}) + public + vector16("")
	config := binary.BigEndian.AppendUint16(nil, extensionECH)
	return []byte(vector16(string(config) + vector16(contents)))
}

// TestECH: of a real encrypted ClientHello only the public name is seen, and
// that there is another is said.
func TestECH(t *testing.T) {
	raw := firstBytes(&tls.Config{ServerName: "hidden.example", MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: echConfig(t, "public.example")})
	if got := sniffed(t, string(raw)); got.Host != "public.example" || !got.ECH || bytes.Contains(raw, []byte("hidden")) {
		t.Errorf("got %+v", got)
	}
	if got := sniffed(t, string(firstBytes(&tls.Config{ServerName: "hidden.example"}))); got.Host != "hidden.example" || got.ECH {
		t.Errorf("control: %+v", got)
	}
}

// FuzzHello: what crypto/tls takes for a ClientHello with a name is TLS here,
// with the same name or a problem.
func FuzzHello(f *testing.F) {
	for _, raw := range recorded(f) {
		f.Add(raw)
	}
	f.Add([]byte(record(message(sni(name("a.example")), ext(extensionECH, "\x00\x01")))))
	f.Add([]byte("\x80\x2e\x01\x03\x01"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, ok := Parse(raw, Limits{})
		invariants(t, raw, got, ok)
		if len(raw) == 0 || raw[0] != recordHandshake {
			return
		}
		want := asServer(raw)
		if want == nil {
			return
		}
		if !ok || got.Kind != TLS {
			t.Fatalf("%x: got %+v, %t; crypto/tls has %+v", raw, got, ok, want)
		}
		if got.Problem == "" && (got.Host != strings.ToLower(want.ServerName) || !slices.Equal(got.ALPN, want.SupportedProtos)) {
			t.Fatalf("%x: got %+v; crypto/tls has %q, %q", raw, got, want.ServerName, want.SupportedProtos)
		}
	})
}

// FuzzHTTP: what net/http takes for a request is HTTP/1 here, for the same
// host or with a problem.
func FuzzHTTP(f *testing.F) {
	for _, raw := range recorded(f) {
		f.Add(raw)
	}
	for _, raw := range []string{
		"GET http://a.example:81/ HTTP/1.1\r\nHost: a.example:81\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.0\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost : a\r\n b\r\n\r\n",
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, ok := Parse(raw, Limits{})
		invariants(t, raw, got, ok)
		if bytes.HasPrefix(raw, []byte("SSH-")) {
			return // is no host's, whatever follows
		}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return
		}
		if !ok || got.Kind != HTTP1 && got.Kind != HTTP2 {
			t.Fatalf("%q: got %+v, %t; net/http reads a request", raw, got, ok)
		}
		if got.Problem != "" || got.Kind == HTTP2 {
			return
		}
		if host, _, _, err := hostname.Split(req.Host); err != nil || host != got.Host || req.Method != got.Method {
			t.Fatalf("%q: got %+v; net/http has %s %q", raw, got, req.Method, req.Host)
		}
	})
}

// invariants hold for any input.
func invariants(t *testing.T, raw []byte, got Hello, ok bool) {
	t.Helper()
	host, _, err := hostname.Normal(got.Host)
	switch {
	case got.Host != "" && (err != nil || host != got.Host):
		t.Fatalf("%q: the host %q is not normal", raw, got.Host)
	case got.Problem != "" && (got.Host != "" || !ok), got.Kind == Unknown && got.Host != "":
		t.Fatalf("%q: got %+v, %t", raw, got, ok)
	case ok && (got.Kind == TLS || got.Kind == HTTP1) && got.Host == "" && got.Problem == "":
		t.Fatalf("%q: neither host nor problem: %+v", raw, got)
	}
	more, still := Parse(append(slices.Clip(raw), 'x'), Limits{})
	if ok && got.Kind != TLS && (!still || !cmp.Equal(got, more)) {
		t.Fatalf("%q: got %+v, and with more bytes %+v, %t", raw, got, more, still)
	}
}
