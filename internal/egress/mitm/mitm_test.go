package mitm

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

var quiet = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)

func TestForwards(t *testing.T) {
	for _, tt := range []struct {
		name      string
		guestH2   bool
		upstream  []string
		wantProto string
	}{
		{"h1 to h1", false, []string{"http/1.1"}, "HTTP/1.1"},
		{"h1 to h2 or h1", false, nil, "HTTP/1.1"},
		{"h2 to h1", true, []string{"http/1.1"}, "HTTP/1.1"},
		{"h2 to h2", true, nil, "HTTP/2.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seen := make(chan string, 1)
			r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				body, _ := io.ReadAll(q.Body)
				seen <- fmt.Sprintf("%s %s %s %s %s %q", q.Proto, q.Method, q.Host, q.RequestURI, body, q.UserAgent())
				w.Header().Set("X-Answer", "42")
				w.WriteHeader(http.StatusCreated)
				io.WriteString(w, "hello")
			}), func(r *rig) { r.up.NextProtos = tt.upstream })
			res, body := r.do(r.client(tt.guestH2), request(t, "PUT", r.url("/a%20b/c?x=%zz&y;z"), strings.NewReader("ping"), "User-Agent", ""))
			if want := tt.wantProto + ` PUT api.example.com /a%20b/c?x=%zz&y;z ping ""`; <-seen != want {
				t.Errorf("want the server to see %q", want)
			}
			if res.StatusCode != 201 || body != "hello" || res.Header.Get("X-Answer") != "42" || (res.ProtoMajor == 2) != tt.guestH2 {
				t.Errorf("got %s %d %q %v", res.Proto, res.StatusCode, body, res.Header)
			}
			got := r.result()
			if got.Status != 201 || got.Out != 4 || got.In != 5 || !got.Addr.IsValid() || got.Err != nil {
				t.Errorf("result %+v", got)
			}
		})
	}
}

func TestZeroServerRefuses(t *testing.T) {
	a, b := net.Pipe()
	go io.Copy(io.Discard, b)
	if err := (&Server{}).Serve(t.Context(), a, Target{Host: host, Port: 443, TLS: true}); err == nil {
		t.Error("a Server without a CA opened TLS")
	}
	r := newRig(t, http.NotFoundHandler(), func(r *rig) { r.Decide = nil })
	res, body := r.do(r.client(false), request(t, "GET", r.url("/"), nil))
	if res.StatusCode != 403 || !strings.Contains(body, "bawn refused") || r.dials != 0 {
		t.Errorf("without Decide: %d %q, %d dials", res.StatusCode, body, r.dials)
	}
}

func TestLeaf(t *testing.T) {
	ca := newCA(t)
	leaf, err := ca.Leaf(host)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(name string, at time.Time, usage x509.ExtKeyUsage) error {
		_, err := leaf.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool(ca), CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	now := time.Now()
	if err := verify(host, now, x509.ExtKeyUsageServerAuth); err != nil {
		t.Errorf("control: %v", err)
	}
	if verify("www."+host, now, x509.ExtKeyUsageServerAuth) == nil || verify("example.com", now, x509.ExtKeyUsageServerAuth) == nil {
		t.Error("the leaf is good for another host")
	}
	if verify(host, now.Add(32*24*time.Hour), x509.ExtKeyUsageServerAuth) == nil || verify(host, now.Add(-2*time.Hour), x509.ExtKeyUsageServerAuth) == nil {
		t.Error("the leaf is good for too long")
	}
	if verify(host, now, x509.ExtKeyUsageClientAuth) == nil {
		t.Error("the leaf is good for clients")
	}
	if len(leaf.Leaf.ExtKeyUsage) != 1 || leaf.Leaf.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth || len(leaf.Leaf.DNSNames) != 1 || leaf.Leaf.IsCA || !ca.cert.MaxPathLenZero {
		t.Errorf("leaf %v %v", leaf.Leaf.DNSNames, leaf.Leaf.IsCA)
	}
	if again, _ := ca.Leaf(host); again != leaf {
		t.Error("the leaf was minted twice")
	}
	for i := range maxLeaves {
		ca.leaves[fmt.Sprintf("h%d.example.com", i)] = leaf
	}
	if ca.Leaf("one.more.example.com"); len(ca.leaves) > maxLeaves {
		t.Errorf("%d leaves are kept", len(ca.leaves))
	}
	if _, err := (&CA{}).Leaf(host); err == nil {
		t.Error("the zero CA minted a leaf")
	}
}

func TestLeafForAddress(t *testing.T) {
	leaf, err := newCA(t).Leaf("192.0.2.7")
	if err != nil || leaf.Leaf.VerifyHostname("192.0.2.7") != nil || len(leaf.Leaf.DNSNames) != 0 {
		t.Errorf("%v %v", err, leaf.Leaf.IPAddresses)
	}
}

func TestServerNameMustAgree(t *testing.T) {
	r := newRig(t, http.NotFoundHandler(), nil)
	for name, want := range map[string]bool{host: true, "API.Example.Com": true, "other.example.com": false} {
		conn, err := tls.Dial("tcp", "127.0.0.1:"+r.port, &tls.Config{ServerName: name, RootCAs: pool(r.CA), InsecureSkipVerify: true})
		if (err == nil) != want {
			t.Errorf("server name %q: %v", name, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

func TestBundle(t *testing.T) {
	system, session := newCA(t), newCA(t)
	bundle := bundle(t, session, bytes.TrimSpace(system.PEM()))
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(bundle) || strings.Count(string(bundle), "BEGIN CERTIFICATE") != 2 || strings.Contains(string(bundle), "PRIVATE") {
		t.Errorf("bundle %s", bundle)
	}
	for _, ca := range []*CA{system, session} {
		leaf, _ := ca.Leaf(host)
		if _, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: p}); err != nil {
			t.Error(err)
		}
	}
}

func TestDenial(t *testing.T) {
	var seen saw
	r := newRig(t, http.HandlerFunc(seen.describe), func(r *rig) {
		r.Decide = func(_ context.Context, q Request) bawn.Decision {
			if q.Method == "GET" && q.Path == "/open" {
				return bawn.Decision{Verdict: bawn.Allow}
			}
			if q.Path == "/ask" {
				return bawn.Decision{Verdict: bawn.Ask, Reason: "nobody answered"}
			}
			return bawn.Denied("only reading is allowed", "policy.toml:7")
		}
	})
	c := r.client(true)
	if res, body := r.do(c, request(t, "GET", r.url("/open"), nil)); res.StatusCode != 200 {
		t.Fatalf("control: %d %q", res.StatusCode, body)
	}
	res, body := r.do(c, request(t, "DELETE", r.url("/open"), nil))
	for _, want := range []string{"bawn", "only reading is allowed", "policy.toml:7", "what to do: "} {
		if !strings.Contains(body, want) {
			t.Errorf("the refusal %q lacks %q", body, want)
		}
	}
	if res.StatusCode != 403 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	_, body = r.do(c, request(t, "DELETE", r.url("/open"), nil, "Accept", "application/json"))
	var got struct{ Error struct{ Bawn Refusal } }
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.Error.Bawn.Rule != "policy.toml:7" || got.Error.Bawn.Remedy == "" {
		t.Errorf("JSON refusal %q: %v", body, err)
	}
	if res, _ := r.do(c, request(t, "GET", r.url("/ask"), nil)); res.StatusCode != 403 {
		t.Errorf("an unanswered question got %d", res.StatusCode)
	}
	if n := strings.Count(seen.String(), "\n"); n != 1 {
		t.Errorf("the server saw %d requests, want 1: %s", n, &seen)
	}
}

func TestUpstreamCertificate(t *testing.T) {
	wrongName := func(r *rig) {
		ca := newCA(t)
		leaf, _ := ca.Leaf("www.example.com")
		r.up.Certificates, r.Roots = []tls.Certificate{*leaf}, pool(ca)
	}
	expired := func(r *rig) {
		ca, _ := NewCA("old", time.Now().Add(-60*24*time.Hour))
		leaf, _ := ca.Leaf(host)
		r.up.Certificates, r.Roots = []tls.Certificate{*leaf}, pool(ca)
	}
	for _, tt := range []struct {
		name   string
		change func(*rig)
		want   string
	}{
		{"control", nil, ""},
		{"unknown root", func(r *rig) { r.Roots = pool(newCA(t)) }, "signed by nobody this machine trusts"},
		{"the session's own root", func(r *rig) {
			leaf, _ := r.CA.Leaf(host)
			r.up.Certificates = []tls.Certificate{*leaf}
		}, "signed by nobody this machine trusts"},
		{"another host", wrongName, "is for another host"},
		{"expired", expired, "is not valid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var seen saw
			r := newRig(t, http.HandlerFunc(seen.describe), tt.change)
			res, body := r.do(r.client(false), request(t, "GET", r.url("/"), nil))
			if tt.want == "" {
				if res.StatusCode != 200 {
					t.Errorf("%d %q", res.StatusCode, body)
				}
				return
			}
			if res.StatusCode != 502 || !strings.Contains(body, tt.want) || seen.String() != "" {
				t.Errorf("%d %q; the server saw %q", res.StatusCode, body, &seen)
			}
		})
	}
}

// Upstream connections belong to one guest's connection.
func TestUpstreamConnectionsAreNotShared(t *testing.T) {
	r := newRig(t, http.NotFoundHandler(), func(r *rig) { r.up.NextProtos = []string{"http/1.1"} })
	a, b := r.client(false), r.client(false)
	for range 3 {
		r.do(a, request(t, "GET", r.url("/"), nil))
	}
	if r.dials != 1 {
		t.Errorf("control: three requests of one connection made %d connections upstream, want 1", r.dials)
	}
	r.do(b, request(t, "GET", r.url("/"), nil))
	if r.dials != 2 {
		t.Errorf("a second guest's connection made %d in all, want 2", r.dials)
	}
}

func TestServeEnds(t *testing.T) {
	r := newRig(t, http.NotFoundHandler(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	guest, ours := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx, ours, Target{Host: host, Port: 80}) }()
	go io.Copy(io.Discard, guest)
	io.WriteString(guest, "GET / HTTP/1.1\r\nHost: "+host+"\r\n")
	cancel()
	if err := testenv.Receive(t, "Serve's end after its context", ended); err != nil {
		t.Error(err)
	}
}
