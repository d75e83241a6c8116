package sniff

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn/internal/hostname"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// Servers that answer with the host they have read and close.
const (
	nodeServer = `const s = require('http').createServer((q, r) => { r.setHeader('Connection', 'close'); r.end('saw ' + q.headers.host) })
s.listen(0, '127.0.0.1', () => console.log(s.address().port))`
	pythonServer = `from http.server import *
class H(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(('saw ' + str(self.headers['Host'])).encode())
    do_POST = do_OPTIONS = do_GET
    def log_message(self, *a): pass
s = ThreadingHTTPServer(('127.0.0.1', 0), H)
print(s.server_port, flush=True)
s.serve_forever()`
)

// serverOf starts a program that prints its port.
func serverOf(t *testing.T, argv ...string) (address string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", argv[0], err)
	}
	return net.JoinHostPort("127.0.0.1", strings.TrimSpace(port))
}

func goServer(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "saw "+r.Host)
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// saw sends raw to a server and returns the host it read, if it read one.
func saw(address string, raw []byte) (host string, ok bool, err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return "", false, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return "", false, err
	}
	if _, err := conn.Write(raw); err != nil {
		return "", false, err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return "", false, err
	}
	answer, err := io.ReadAll(conn) // a server that refuses may reset
	_, host, ok = strings.Cut(string(answer), "saw ")
	if !ok && err != nil && !strings.Contains(err.Error(), "reset") {
		return "", false, err
	}
	host, _, _ = strings.Cut(host, "\r") // where the server writes chunks
	return host, ok, nil
}

// heads are made of what parsers have disagreed about.
var heads = rapid.Custom(func(t *rapid.T) []byte {
	pick := func(usual string, odd ...string) string {
		if rapid.IntRange(0, 19).Draw(t, "usual") > 0 {
			return usual
		}
		return rapid.SampledFrom(odd).Draw(t, "odd")
	}
	host := func() string {
		return rapid.SampledFrom([]string{"a.example", "b.example"}).Draw(t, "host") + pick("", ":80", ":81", ".", " ", "\t", ",b.example", "@b.example", "\x00", "\v", "/", "#", "\xa0", "%00")
	}
	var b bytes.Buffer
	b.WriteString(pick("", "\r\n", "\n", " ", "\v", "\x1c", "\r\n\r\n"))
	target := pick("/", "*", "//b.example/", "http://"+host(), "http://"+host()+"/", "HTTP://"+host()+"/@b.example/", "/ x", "/\thttp://b.example/", "")
	b.WriteString(pick("GET", "POST", "OPTIONS", "get", "G\x00T") + pick(" ", "  ", "\t", "\v", "\xa0") + target + pick(" ", "  ", "\t", "\f") + pick("HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/1.1 ", "http/1.1", "HTTP/1.01", "", "HTTP/1.1 x"))
	end := func() string { return pick("\r\n", "\n", "\r", "\r\r\n", "\r\n ", "\r\n\t", "\n\r") }
	b.WriteString(end())
	for range rapid.IntRange(1, 3).Draw(t, "fields") {
		b.WriteString(pick("", " ", "\t", "\x00") + pick("Host", "hOST", "X", "Host ", "Host\t", "Hos\xc5\xa7", "\x00Host", "X-Host", "Connection", "Content-Length", "Transfer-Encoding"))
		b.WriteString(pick(": ", ":", " :", ":\t", "", ":\v", ": \r\n ") + host() + end())
	}
	b.WriteString(pick("\r\n", "\n", "\r\n\r\n"))
	return b.Bytes()
})

// TestAgainstServers: of a request that is accepted here every server reads
// the same host, and what a server takes for a request is known as one.
func TestAgainstServers(t *testing.T) {
	testenv.Need(t, "node", "python3")
	servers := map[string]string{
		"net/http": goServer(t), "node": serverOf(t, "node", "-e", nodeServer), "python": serverOf(t, "python3", "-c", pythonServer),
	}
	same, problems := 0, 0
	for i := range 300 {
		raw := heads.Example(i)
		got, complete := Parse(raw, Limits{})
		for name, address := range servers {
			host, ok, err := saw(address, raw)
			if err != nil {
				t.Fatalf("%s: %q: %v", name, raw, err)
			}
			switch h, _, _, err := hostname.Split(strings.TrimSpace(host)); {
			case !ok:
			case !complete || got.Kind == HTTP1 && got.Problem != "":
				problems++
			case got.Kind != HTTP1 || err != nil || h != got.Host:
				t.Errorf("%s reads a request for %q in %q; here it is %+v", name, host, raw, got)
			default:
				same++
			}
		}
	}
	if same < 50 || problems < 50 {
		t.Errorf("%d requests were read alike and %d refused here only; the test does not say much", same, problems)
	}
	t.Logf("%d read alike, %d refused here only", same, problems)
}
