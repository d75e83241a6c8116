package egressd

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/mitm"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/netrule"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestNamesOfSecretsAreRecorded: the log takes out what stands behind a name
// that is a credential's, and must not do so with the names of secrets.
func TestNamesOfSecretsAreRecorded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	rules, err := netrule.Compile(bawn.Egress{HTTP: []string{"api.test GET /**"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{rules: rules}
	s.config.AuditDir = dir
	s.event = bawn.Event{Session: "s", Agent: "test", Provider: "native", Mode: bawn.ModeNormal}
	if err := s.openLog(context.Background()); err != nil {
		t.Fatal(err)
	}
	r := &requests{session: s}
	req := mitm.Request{Method: "GET", Scheme: "https", Host: "api.test", Port: 443, Path: "/v1", Readings: []string{"/v1"}}
	r.done(req, mitm.Result{Status: 200, Secrets: []string{"github", "api"}, Decision: bawn.Decision{Verdict: bawn.Allow, Rule: "isolation:http"}})
	if err := s.log.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "log.jsonl"))
	if err != nil || !strings.Contains(string(text), `"lent":"api github"`) {
		t.Errorf("the log has %s, %v; want the names of the secrets", text, err)
	}
}

// TestLibrariesPrintIntoTheLog: what net/http prints of a host's answer that nobody asked
// for is recorded, and is not on the standard error, which is a human's terminal.
func TestLibrariesPrintIntoTheLog(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	idle, seen := make(chan bool), make(chan bool)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		http.ReadRequest(bufio.NewReader(c))
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-idle
		io.WriteString(c, "unasked token=hunter2hunter2")
		io.Copy(io.Discard, c)
		close(seen)
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c := config(t, bawn.Egress{HostPorts: []string{"80:" + port}})
	r, stderr := start(t, c)
	if _, err := r.Ready(); err != nil {
		t.Fatal(err)
	}
	files := []*os.File{socketOf(t, 't'), socketOf(t, 'u'), socketOf(t, 't'), socketOf(t, 't')}
	front, err := net.FileListener(files[3])
	if err != nil {
		t.Fatal(err)
	}
	at := front.Addr().String()
	front.Close()
	if err := r.Serve(files, remote.Handlers{Ask: func(egress.Question) {}, Withdraw: func(uint64) {}, Denied: func(egress.Denial) {}}); err != nil {
		t.Fatal(err)
	}
	conn, _ := tunnel(t, at, "127.0.0.1:80")
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != 200 {
		t.Fatalf("control: %v, %v", res, err)
	}
	close(idle)
	testenv.Receive(t, "the end of the host's connection", seen)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(newest(t, c.AuditDir))
	if err != nil || !strings.Contains(string(text), "Unsolicited response") || strings.Contains(string(text), "hunter2") {
		t.Errorf("recorded %s, %v", text, err)
	}
	if stderr.Len() > 0 {
		t.Errorf("printed %q", stderr)
	}
}

// TestPrintedLinesAreMasked: values that the session was lent do not stand in the record.
func TestPrintedLinesAreMasked(t *testing.T) {
	a := newSite(t, bawn.Egress{HTTP: []string{"forge.example GET /**"}})
	s := a.requests.session
	s.masked = func(text string) string { return strings.ReplaceAll(text, "v4lu3", "placeholder") }
	for range 2 * maxPrinted {
		s.print("it says v4lu3")
	}
	if err := s.log.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(s.config.AuditDir, "log.jsonl"))
	if err != nil || strings.Contains(string(text), "v4lu3") || strings.Count(string(text), "it says placeholder") != maxPrinted {
		t.Errorf("%v, %s", err, text)
	}
}
