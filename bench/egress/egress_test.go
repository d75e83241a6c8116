package main

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/bench/measure"
)

// server answers as startServer does, on a port of its own.
func server(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go serveBytes(l)
	return l.Addr().String()
}

func TestJobs(t *testing.T) {
	at := server(t)
	for _, j := range []job{{Kind: download, Addr: at, N: 3 << 20}, {Kind: connect, Addr: at, N: 20}, {Kind: parallel, Addr: at, N: 500}} {
		got, err := take(j)
		if err != nil {
			t.Fatalf("%s: %v", j.Kind, err)
		}
		for name, s := range got.(figures) {
			if s.Wall <= 0 {
				t.Errorf("%s took %v", name, s.Wall)
			}
		}
	}
	if _, err := take(job{Kind: "upload"}); err == nil {
		t.Error("an unknown job: no error")
	}
}

// A connection that is lost is an error, not a fast sample.
func TestLossIsSeen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	for _, kind := range []string{download, connect, parallel} {
		if _, err := take(job{Kind: kind, Addr: l.Addr().String(), N: 10}); err == nil {
			t.Errorf("%s from a server that closes: no error", kind)
		}
	}
}

func TestRequests(t *testing.T) {
	dir := t.TempDir()
	if err := makeCertificates(dir); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", certFile(dir))
	client, err := httpsClient()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	size := answerSize
	s := &http.Server{ErrorLog: quiet, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(strings.Repeat("x", size)))
	})}
	defer s.Close()
	go s.ServeTLS(l, certFile(dir), filepath.Join(dir, "key.pem"))
	client.Transport.(*http.Transport).TLSClientConfig.ServerName = hostName
	if err := get(client, "https://"+l.Addr().String()); err != nil {
		t.Error(err)
	}
	size-- // a refusal, say, instead of the answer
	if err := get(client, "https://"+l.Addr().String()); err == nil {
		t.Error("another answer: no error")
	}
}

// What can't be measured is left out, and said.
func TestReport(t *testing.T) {
	var out strings.Builder
	r := measure.NewReport("x", &out)
	all := results{}
	more := results{Notes: []string{"a note"}}
	for _, v := range []string{bare, ours} {
		more.put(download, v, measure.Sample{Wall: 1e9, CPU: 1e8})
	}
	all.add(more)
	all.add(more)
	write(r, all, load{Bytes: 1 << 30, Connections: 1, Parallel: 1, Requests: 1})
	for _, want := range []string{"a note", "bawn, 10 hosts", "1.00 [1.00 1.00]", "0.10", "≥ 0.4: 1.00 [1.00 1.00], met", "× pasta ≥ 1: not measured"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "NaN") {
		t.Error(out.String())
	}
}
