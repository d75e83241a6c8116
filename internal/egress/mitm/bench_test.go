package mitm

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

// reverseProxy starts what we are measured against: Go's own, with TLS on both
// sides and the same certificates.
func (r *rig) reverseProxy(b *testing.B) string {
	leaf, err := r.CA.Leaf(host)
	if err != nil {
		b.Fatal(err)
	}
	dial := r.Dial
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "https", host
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, _, err := dial(ctx, host, 443)
				return conn, err
			},
			TLSClientConfig: &tls.Config{RootCAs: r.Roots, ServerName: host}, ForceAttemptHTTP2: true,
		},
		ErrorLog: quiet,
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: proxy, ErrorLog: quiet}
	go server.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*leaf}, NextProtos: []string{"h2", "http/1.1"}}))
	b.Cleanup(func() { server.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// BenchmarkRequest takes turns between a plain reverse proxy and Serve, so that
// both meet the same machine, and reports the ratio of their latencies.
func BenchmarkRequest(b *testing.B) {
	for _, bb := range []struct {
		name   string
		h2     bool
		body   int
		secret bool
	}{
		{"h1", false, 0, false}, {"h2", true, 0, false},
		{"h1 with a secret", false, 4 << 10, true}, {"h2 with a secret", true, 4 << 10, true},
	} {
		b.Run(bb.name, func(b *testing.B) {
			answer := bytes.Repeat([]byte("answer! "), 256)
			r := newRig(b, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				io.Copy(io.Discard, q.Body)
				w.Write(answer)
			}), func(r *rig) {
				if bb.secret {
					bind(bawn.Bearer, "")(r)
				}
			})
			plain := &rig{Server: r.Server, t: b}
			plain.port = r.reverseProxy(b)
			clients := []*http.Client{plain.client(bb.h2), r.client(bb.h2)}
			body := bytes.Repeat([]byte("question "), bb.body/9)
			took := [2][]time.Duration{}
			one := func(i int) {
				q, _ := http.NewRequest("POST", r.url("/path/to/it?a=b"), bytes.NewReader(body))
				q.Header.Set("Authorization", "Bearer "+placeholder)
				start := time.Now()
				res, err := clients[i].Do(q)
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
				took[i] = append(took[i], time.Since(start))
			}
			one(0)
			one(1)
			took = [2][]time.Duration{}
			for n := 0; b.Loop(); n++ {
				one(n % 2)
				one(1 - n%2)
			}
			report(b, took)
		})
	}
}

func report(b *testing.B, took [2][]time.Duration) {
	at := func(i int, q float64) float64 {
		slices.Sort(took[i])
		return float64(took[i][int(q*float64(len(took[i])-1))].Microseconds())
	}
	for name, q := range map[string]float64{"p50": 0.5, "p99": 0.99} {
		b.ReportMetric(at(1, q), name+"-us")
		b.ReportMetric(at(1, q)/at(0, q), name+"-ratio")
	}
}

func BenchmarkScan(b *testing.B) {
	text := make([]byte, 1<<20)
	io.ReadFull(endless{}, text)
	for name, text := range map[string][]byte{"with escapes": text, "plain": bytes.ReplaceAll(text, []byte("%"), []byte("x"))} {
		b.Run(name, func(b *testing.B) {
			s := newScanner(placeholders())
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.feed(text)
			}
		})
	}
}

// BenchmarkRedact looks through an answer of 1 MiB of text for one value.
func BenchmarkRedact(b *testing.B) {
	e := newEcho([]use{{value: []byte(value)}})
	text := bytes.Repeat([]byte("the quick brown fox, \"jumps\": over/the <lazy> dog;\r\n"), 1<<20/54)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r := &redactor{known: func() *echo { return e }, from: bytes.NewReader(text), src: io.NopCloser(nil), res: &http.Response{}}
		if n, err := io.Copy(io.Discard, r); err != nil || n != int64(len(text)) {
			b.Fatal(n, err)
		}
		r.Close()
	}
}
