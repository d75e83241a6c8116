package web_test

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/relay/api"
	"github.com/bawn-dev/bawn/internal/relay/store"
	"github.com/bawn-dev/bawn/internal/relay/webui"
	"github.com/bawn-dev/bawn/web"
)

// authorityDir holds the authority of the tests.
var authorityDir string

// An authority signs for localhost; the browser of the test is told to trust
// its key, as a human is told to trust the certificate.
func authority(t *testing.T, dir string) (ca *webui.Authority, key string) {
	t.Helper()
	authorityDir = dir
	ca, err := webui.OpenAuthority(dir, "localhost", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(ca.PEM())
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return ca, base64.StdEncoding.EncodeToString(sum[:])
}

// A backend is the real thing behind the page: the queue over its database, the
// audit log, the API and the HTTPS server. Only sessions are missing.
type backend struct {
	t    *testing.T
	dir  string
	ca   *webui.Authority
	db   *store.DB
	log  *audit.Log
	page *webui.Server
	port uint16
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	queue   *approval.Queue
	answers map[string]bawn.Answer
}

func openBackend(t *testing.T, ca *webui.Authority) *backend {
	d := &backend{t: t, dir: t.TempDir(), ca: ca, answers: map[string]bawn.Answer{}}
	var err error
	if d.db, err = store.Open(t.Context(), filepath.Join(d.dir, "relay.db"), time.Now()); err != nil {
		t.Fatal(err)
	}
	if d.log, err = audit.Open(filepath.Join(d.dir, "audit"), audit.Options{}); err != nil {
		t.Fatal(err)
	}
	d.begin(t)
	t.Cleanup(func() {
		d.end()
		if err := errors.Join(d.log.Close(), d.db.Close()); err != nil {
			t.Error(err)
		}
	})
	return d
}

// begin serves, at the same port as before.
func (d *backend) begin(t *testing.T) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(d.port)})
	if err != nil {
		t.Fatal(err)
	}
	d.port = netip.MustParseAddrPort(l.Addr().String()).Port()
	queue, err := approval.NewQueue(t.Context(), approval.Options{Store: d.db, Recorder: d.log, Dead: func(string) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	d.queue = queue
	d.mu.Unlock()
	var served *api.API
	d.page, err = webui.New(t.Context(), webui.Options{
		Name: "localhost", Port: d.port, Certificate: d.ca.Certificate, Machine: "shop", Items: d.db, Recorder: d.log, Files: web.Files(), Now: time.Now,
		Log: slog.New(slog.DiscardHandler),
		API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			device, _ := webui.DeviceOf(r.Context())
			c := api.Caller{Name: "web:" + device.Name, Device: device.ID, ReadOnly: device.ReadOnly, Peer: r.RemoteAddr}
			served.ServeHTTP(w, r.WithContext(api.WithCaller(r.Context(), c)))
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	served, err = api.New(api.Options{Inbox: queue, History: d.db.History, AuditDir: filepath.Join(d.dir, "audit"), Devices: d.page, Recorder: d.log, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	d.stop, d.done = stop, make(chan struct{})
	go func() {
		defer close(d.done)
		if err := d.page.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	}()
}

// end stops serving; what is pending stays in the database.
func (d *backend) end() {
	d.stop()
	<-d.done
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.queue.Close() // it never fails
}

func (d *backend) origin() string { return webui.Origin("localhost", d.port) }

// ask puts a question as a session's host does, and asks anew with the same
// question where the relay went away.
func (d *backend) ask(ctx context.Context, q approval.Question) {
	for ctx.Err() == nil {
		d.mu.Lock()
		queue := d.queue
		d.mu.Unlock()
		a, err := queue.Ask(ctx, q)
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.answers[q.Agent] = a
		return
	}
}

// realQuestion is a question of the agent that is called name.
func realQuestion(name, line string) approval.Question {
	rule := bawn.Rule{ID: "approved:1", Kind: bawn.Command, Operations: []bawn.Operation{bawn.Exec}, Pattern: "git push origin main", Verdict: bawn.Allow, Source: bawn.User}
	never := rule
	never.Verdict = bawn.Deny
	return approval.Question{
		ID: approval.NewID(), Session: "s1", Agent: name, Canonical: line, Reason: "it reaches another machine", Rule: "builtin:git-push", Contains: "It may write below /home/anna/shop.",
		Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: line, Args: []string{"sh", "-c", line}, Session: "s1", Agent: name, Dir: "/home/anna/shop", At: time.Now()},
		Always: []bawn.Rule{rule}, Never: []bawn.Rule{never}, Covers: []string{"git push origin main:main"}, Asked: time.Now(), Expires: time.Now().Add(5 * time.Minute),
	}
}
