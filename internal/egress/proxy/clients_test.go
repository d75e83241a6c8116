package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/egress/refuse"
	"github.com/bawn-dev/bawn/internal/egress/sniff"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/listening"
)

// relay lets clients through to a.example and 192.0.2.1, denies late.example
// once it has heard what the client says there, and everything else before. It
// is the least that can be put around Handshake.
type relay struct {
	t       testing.TB
	servers map[uint16]string // by the port that is asked for
}

func (r relay) serve(conn net.Conn) {
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	c, err := Handshake(conn)
	if err != nil {
		r.t.Logf("Handshake: %v", err)
		return
	}
	to := r.servers[c.Port]
	if c.Host != "late.example" && c.Host != "a.example" && c.Host != "192.0.2.1" || to == "" {
		if err := c.Reject(refuse.Denial{Resource: c.Host, Reason: "no rule opens it"}); err != nil {
			r.t.Logf("Reject: %v", err)
		}
		return
	}
	r.splice(c, to)
}

func (r relay) splice(c *Client, to string) {
	through, err := c.Accept()
	if err != nil {
		r.t.Errorf("Accept: %v", err)
		return
	}
	defer through.Close()
	hello, raw, err := sniff.Read(through, sniff.Limits{})
	if err != nil || hello.Kind != sniff.HTTP1 && hello.Kind != sniff.TLS {
		r.t.Errorf("%+v, %v", hello, err)
		return
	}
	if c.Host == "late.example" {
		if err := refuse.Write(through, hello, raw, refuse.Denial{Resource: c.Host, Reason: "too late"}); err != nil {
			r.t.Logf("Write: %v", err)
		}
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer server.Close()
	go func() {
		server.Write(raw)
		io.Copy(server, through)
		server.Close()
	}()
	io.Copy(through, server)
}

// TestRealClients: programs that are told of a proxy reach what it opens, over
// each of its protocols, and say that they were denied where it does not.
func TestRealClients(t *testing.T) {
	testenv.Need(t, "curl", "python3", "git")
	origin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if strings.HasPrefix(name, "Proxy-") {
				t.Errorf("%s is passed on", name)
			}
		}
		n, err := io.Copy(io.Discard, r.Body)
		io.WriteString(w, strings.Join([]string{"origin", r.Method, r.Host, r.RequestURI}, " "))
		if n > 0 {
			io.WriteString(w, strings.Repeat("+", int(n)))
		}
		if err != nil {
			t.Error(err)
		}
	})
	plain, secure := httptest.NewServer(origin), httptest.NewTLSServer(origin)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	at := listening.Serve(t, relay{t, map[uint16]string{80: plain.Listener.Addr().String(), 443: secure.Listener.Addr().String()}}.serve).String()

	const py = "import sys, urllib.request as u\ntry: print(u.urlopen(sys.argv[1]).read().decode())\nexcept Exception as e: print(repr(e), e.read().decode() if hasattr(e, 'read') else '')"
	for _, tt := range []struct{ name, want, argv string }{
		{"forward", "origin GET a.example /x?y", "curl -sv -x http://PROXY http://a.example/x?y"},
		{"forward twice", "origin GET a.example /2", "curl -sv -x http://PROXY http://a.example/1 http://a.example/2"},
		{"forward post", "origin POST a.example /+++++", "curl -sv -x http://PROXY -d hello http://a.example/"},
		{"forward chunked", "origin POST a.example /+++++", "curl -sv -x http://PROXY -H Transfer-Encoding:chunked -H Expect: -d hello http://a.example/"},
		{"forward continue", "origin POST a.example /+++++", "curl -sv -x http://PROXY -H Expect:100-continue -d hello http://a.example/"},
		{"forward login", "origin GET a.example /", "curl -sv -x http://u:p@PROXY http://a.example/"},
		{"connect", "origin GET a.example /x", "curl -skv -x http://PROXY https://a.example/x"},
		{"connect 1.0", "origin GET a.example /x", "curl -skv --proxy1.0 PROXY https://a.example/x"},
		{"connect plain", "origin GET a.example /x", "curl -sv -p -x http://PROXY http://a.example/x"},
		{"connect login", "origin GET a.example /x", "curl -skv -x http://u:p@PROXY https://a.example/x"},
		{"socks5h", "origin GET a.example /x", "curl -sv -x socks5h://PROXY http://a.example/x"},
		{"socks5h tls", "origin GET a.example /x", "curl -skv -x socks5h://PROXY https://a.example/x"},
		{"socks5h login", "origin GET a.example /x", "curl -sv -x socks5h://u:p@PROXY http://a.example/x"},
		{"socks5", "origin GET 192.0.2.1 /x", "curl -sv -x socks5://PROXY http://192.0.2.1/x"},
		{"python", "origin GET a.example /x", "env http_proxy=http://PROXY python3 -c PY http://a.example/x"},
		{"forward denied", "bawn: denied: b.example: no rule opens it", "curl -sv -x http://PROXY http://b.example/x"},
		{"connect denied", "response 403", "curl -sv -x http://PROXY https://b.example/x"},
		{"socks5h denied", "(2)", "curl -sv -x socks5h://PROXY http://b.example/x"},
		{"socks5 denied", "(2)", "curl -sv -x socks5://PROXY http://192.0.2.9/x"},
		{"forward denied late", "bawn: denied: late.example: too late", "curl -sv -x http://PROXY -d hello http://late.example/x"},
		{"connect denied late", "access denied", "curl -skv -x http://PROXY https://late.example/x"},
		{"socks5h denied late", "bawn: denied: late.example: too late", "curl -sv -x socks5h://PROXY http://late.example/x"},
		{"socks4", "", "curl -sv -x socks4://PROXY http://192.0.2.1/x"},
		{"tls to the proxy", "access denied", "curl -skv -x https://PROXY http://a.example/x"},
		{"python denied", "403", "env https_proxy=http://PROXY python3 -c PY https://b.example/x"},
		{"git denied", "403", "git -c http.proxy=http://PROXY ls-remote https://b.example/x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			argv := strings.Fields(strings.ReplaceAll(tt.argv, "PROXY", at))
			for i := range argv {
				argv[i] = strings.Replace(argv[i], "PY", py, 1)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
			cmd.Env = append(os.Environ(), "no_proxy=", "NO_PROXY=")
			out, _ := cmd.CombinedOutput()
			if ctx.Err() != nil || !strings.Contains(string(out), tt.want) || tt.want == "" && strings.Contains(string(out), "origin") {
				t.Errorf("%v; want %q in:\n%s", ctx.Err(), tt.want, out)
			}
		})
	}
}
