package frontend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/relay/api"
	"github.com/bawn-dev/bawn/internal/relay/store"
	"github.com/bawn-dev/bawn/internal/testenv"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

type records struct {
	mu     sync.Mutex
	events []bawn.Event
}

func (r *records) Record(_ context.Context, e bawn.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	return nil
}

// A rig is all frontends over a real queue and a real store.
type rig struct {
	Options
	queue  *approval.Queue
	client *http.Client // through the socket
	roots  *x509.CertPool
}

// newRig serves until the test ends; wrong is a part of the error with which it
// should end at once, or "".
func newRig(t *testing.T, wrong string, change ...func(*Options)) *rig {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "relay.db"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	r := &rig{roots: x509.NewCertPool()}
	if r.queue, err = approval.NewQueue(t.Context(), approval.Options{Store: db}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.queue.Close() })
	path := filepath.Join(dir, "relay.sock")
	socket, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	r.Options = Options{
		Runtime: dir, State: dir, Queue: r.queue, History: db.History, Items: db, Recorder: &records{}, Log: slog.New(slog.DiscardHandler),
		Socket: func() (net.Listener, error) { return socket, nil }, Admit: func(net.Conn) error { return nil }, User: "anna", Page: Page{Listen: "127.0.0.1:0", NoticeAfter: time.Millisecond},
	}
	for _, f := range change {
		f(&r.Options)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, r.Options) }()
	t.Cleanup(cancel)
	if wrong != "" {
		if err := <-done; err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("error %v; want %q", err, wrong)
		}
		return r
	}
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	testenv.Until(t, "the socket's key", func() bool { _, err := os.Stat(link.KeyOf(path)); return err == nil })
	r.client = api.Client(path)
	return r
}

// TestPage: what Pair says leads to the page, over a certificate of the
// authority whose fingerprint it tells; nothing of the API is there without a
// login.
func TestPage(t *testing.T) {
	r := newRig(t, "")
	m, err := bawnv1connect.NewDeviceServiceClient(r.client, "http://relay").Pair(t.Context(), &bawnv1.DeviceServicePairRequest{})
	if err != nil {
		t.Fatal(err)
	}
	address, code, ok := strings.Cut(m.GetUrl(), "/#pair=")
	if !ok || len(code) != 26 || !strings.HasPrefix(address, "https://localhost:") || len(m.GetFingerprint()) != 95 {
		t.Fatalf("%v", m)
	}
	pem, err := os.ReadFile(filepath.Join(r.State, "web-ca-localhost.pem"))
	if err != nil {
		t.Fatal(err)
	}
	r.roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.roots}}}
	answer, err := client.Get(strings.Replace(address, "localhost", "127.0.0.1", 1) + "/")
	if err == nil {
		answer.Body.Close()
		t.Error("the certificate is good for an address")
	}
	if answer, err = client.Get(address + "/"); err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), "<title>") {
		t.Errorf("%q %v", text, err)
	}
	request, err := http.NewRequest(http.MethodPost, address+bawnv1connect.ApprovalServiceListProcedure, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Origin", address)
	refused, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Body.Close()
	if refused.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a login: %d; want 401", refused.StatusCode)
	}
	list, err := bawnv1connect.NewApprovalServiceClient(r.client, "http://relay").List(t.Context(), &bawnv1.ApprovalServiceListRequest{})
	if err != nil || len(list.GetApprovals()) != 0 {
		t.Errorf("control, over the socket: %v %v", list, err)
	}
}

// TestNoPage: by default the relay serves no page, and pairing says so.
func TestNoPage(t *testing.T) {
	r := newRig(t, "", func(o *Options) { o.Page = Page{} })
	_, err := bawnv1connect.NewDeviceServiceClient(r.client, "http://relay").Pair(t.Context(), &bawnv1.DeviceServicePairRequest{})
	if connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("%v; want failed_precondition", err)
	}
	if _, err := os.Stat(filepath.Join(r.State, "web-ca-localhost.pem")); err == nil {
		t.Error("an authority was made for nothing")
	}
}

// TestWrongPages: what is wrong is said, and nothing is served.
func TestWrongPages(t *testing.T) {
	open := filepath.Join(t.TempDir(), "notices")
	if err := os.WriteFile(open, []byte("ntfy://x/y"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		page Page
		want string
	}{
		{Page{Listen: "7443"}, "want ADDRESS:PORT"},
		{Page{Listen: "localhost:0"}, "want an IP address"},
		{Page{Listen: "127.0.0.1:0", Name: "127.0.0.1"}, "passkey"},
		{Page{Listen: "127.0.0.1:0", CertFile: "x"}, "--tls-key"},
		{Page{Listen: "127.0.0.1:0", Notices: open}, "chmod 600"},
	} {
		newRig(t, one.want, func(o *Options) { o.Page = one.page })
	}
}

// TestNotice (canary): a question that waits leads to a notice through a real
// service's protocol; nothing of the action is in it.
func TestNotice(t *testing.T) {
	const canary = "CANARY-s3cr3t"
	got := make(chan string, 1)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, "{}")
		got <- fmt.Sprint(r.URL, r.Header, string(body))
	}))
	defer service.Close()
	file := filepath.Join(t.TempDir(), "notices")
	if err := os.WriteFile(file, []byte("ntfy://"+strings.TrimPrefix(service.URL, "http://")+"/topic?scheme=http\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, "", func(o *Options) { o.Page.Notices = file })
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_, _ = r.queue.Ask(ctx, approval.Question{ // it ends with the test
			ID: approval.NewID(), Session: "abcdef0123", Agent: "claude", Expires: time.Now().Add(time.Minute), Suggested: bawn.Ask,
			Canonical: canary, Reason: canary, Rule: canary, Contains: canary, Justification: canary,
			Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "curl " + canary, Args: []string{canary}, Dir: "/" + canary, Session: "abcdef0123", Agent: canary},
		})
	}()
	text := testenv.Receive(t, "a notice", got)
	if !strings.Contains(text, "Session abcdef01 (agent claude) asks to run a command: open Bawn https://localhost:") || strings.Contains(text, canary) {
		t.Errorf("the service got %q", text)
	}
	cancel()
	<-asked
}
