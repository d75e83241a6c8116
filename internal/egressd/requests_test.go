package egressd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/relay"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/netrule"
	"github.com/bawn-dev/bawn/internal/policy"
)

// A site is a session with entries, and a host that notes what it gets.
type site struct {
	t        *testing.T
	requests *requests

	mu  sync.Mutex
	got []string
}

func newSite(t *testing.T, e bawn.Egress) *site {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "log")
	log, err := audit.Open(dir, audit.Options{})
	must(err)
	t.Cleanup(func() { log.Close() })
	rules, err := netrule.Compile(e)
	must(err)
	p, err := policy.New(nil, policy.Options{})
	must(err)
	s := &session{
		config: egress.Config{Session: "s", Egress: e, AuditDir: dir}, rules: rules, log: log, tell: func(egress.Denial) {},
		event: bawn.Event{Session: "s"}, events: audit.NewShare(log, audit.MaxShare, "the session"),
		guard: guard.Guard{Decider: policy.Egress{Policy: p, Rules: rules}, Approver: newPending(nil, 0), Recorder: log, Now: now},
	}
	at := &site{t: t, requests: newRequests(s)}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(err)
	host := &http.Server{Handler: at, ReadHeaderTimeout: 20 * time.Second}
	go host.Serve(l)
	t.Cleanup(func() { host.Close() })
	at.requests.server.Dial = func(ctx context.Context, _ string, _ uint16) (net.Conn, netip.AddrPort, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
		return c, netip.AddrPort{}, err
	}
	return at
}

func (a *site) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got = append(a.got, r.Method+" "+r.URL.Path+" "+string(body))
}

// ask sends one request over plain HTTP and returns the status and what the
// host got.
func (a *site) ask(method, path, body string, header ...string) (int, []string) {
	a.t.Helper()
	guest, ours := net.Pipe()
	defer guest.Close()
	go a.requests.Serve(context.Background(), ours, relay.Target{Host: "forge.example", Port: 80})
	var text bytes.Buffer
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	if slices.Contains(header, "Transfer-Encoding: chunked") {
		length = ""
	}
	fmt.Fprintf(&text, "%s %s HTTP/1.1\r\nHost: forge.example\r\n%s\r\n", method, path, strings.Join(append(header, length), "\r\n"))
	text.WriteString(body)
	guest.SetDeadline(time.Now().Add(20 * time.Second))
	go guest.Write(text.Bytes())
	res, err := http.ReadResponse(bufio.NewReader(guest), nil)
	if err != nil {
		a.t.Fatal(err)
	}
	res.Body.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.got = nil }()
	return res.StatusCode, a.got
}

// push is the body of a push that creates a ref.
func push(ref string) string {
	line := strings.Repeat("0", 40) + " " + strings.Repeat("b", 40) + " " + ref + "\x00report-status"
	return fmt.Sprintf("%04x%s0000PACK", len(line)+4, line)
}

const receivePack = "Content-Type: application/x-git-receive-pack-request"

// TestPlainGitIsGit: on the port of plain HTTP, which hosts opens, git entries
// without a port decide all the same. Other requests go where they went.
func TestPlainGitIsGit(t *testing.T) {
	const path, ref = "/team/app.git/git-receive-pack", "refs/heads/main"
	open := newSite(t, bawn.Egress{Hosts: []string{"forge.example"}})
	if status, got := open.ask("POST", path, push(ref), receivePack); status != 200 || len(got) != 1 {
		t.Fatalf("control: %d %q", status, got)
	}
	a := newSite(t, bawn.Egress{Hosts: []string{"forge.example"}, Git: []string{"forge.example push team/app refs/heads/agent/*"}})
	for _, body := range []string{push(ref), push(ref) + push("refs/heads/agent/x")} {
		if status, got := a.ask("POST", path, body, receivePack); status != 403 || got != nil {
			t.Errorf("%d %q; want a refusal", status, got)
		}
	}
	if status, got := a.ask("PUT", "/team/app.git/"+ref, "x"); status != 403 || got != nil {
		t.Errorf("WebDAV: %d %q; want a refusal", status, got)
	}
	if status, got := a.ask("GET", "/team/app", ""); status != 200 || len(got) != 1 {
		t.Errorf("%d %q; want the page", status, got)
	}
}

// TestPushArrivesAsJudged: the refs that were judged are the ones that the
// host reads, however the body is cut.
func TestPushArrivesAsJudged(t *testing.T) {
	a := newSite(t, bawn.Egress{Git: []string{"forge.example:80,443 push team/app refs/heads/agent/*"}})
	good, evil := push("refs/heads/agent/x"), push("refs/heads/main")
	good += strings.Repeat("x", 4096-len(good)) // of the pack: the judge reads this far and no further
	for _, body := range []string{good, good + evil} {
		chunks := fmt.Sprintf("%x\r\n%s\r\n", len(good), good)
		if body != good {
			chunks += fmt.Sprintf("%x\r\n%s\r\n", len(evil), evil)
		}
		for sent, header := range map[string]string{body: "X-None: x", chunks + "0\r\n\r\n": "Transfer-Encoding: chunked"} {
			status, got := a.ask("POST", "/team/app.git/git-receive-pack", sent, receivePack, header)
			if status != 200 || len(got) != 1 || got[0] != "POST /team/app.git/git-receive-pack "+body {
				t.Errorf("%s: %d, the host got %q", header, status, got)
			}
		}
	}
}

// TestDestinationIsAPath: MOVE and COPY write to a path that no entry lists.
func TestDestinationIsAPath(t *testing.T) {
	a := newSite(t, bawn.Egress{HTTP: []string{"forge.example * /mine/**"}})
	if status, got := a.ask("COPY", "/mine/a", "", "Destination: http://forge.example/yours/a"); status != 403 || got != nil {
		t.Errorf("%d %q; want a refusal", status, got)
	}
	if status, got := a.ask("COPY", "/mine/a", ""); status != 200 || len(got) != 1 {
		t.Errorf("control: %d %q", status, got)
	}
}

// TestRefusalsOfTheAgentAreBounded: a guest that says to its ssh-agent what is
// refused, again and again, has a share of the log for that, too.
func TestRefusalsOfTheAgentAreBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := &keyring{session: &session{log: log, events: audit.NewShare(log, 100<<10, "the session"), tell: func(egress.Denial) {}}}
	for range 1000 {
		k.refused(errors.New("message 99 is not one of an agent's"))
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "log.jsonl"))
	if n := strings.Count(string(text), `"ssh-agent"`); err != nil || n == 0 || n > 200 {
		t.Errorf("%d events of 1,000 refusals, %v", n, err)
	}
}

// TestHopelessPushIsNotRead: of a push that no entry could allow the pack is not
// waited for, whatever it would show; TestPushArrivesAsJudged has one that is.
func TestHopelessPushIsNotRead(t *testing.T) {
	line := strings.Repeat("a", 40) + " " + strings.Repeat("b", 40) + " refs/heads/x\x00report-status"
	begun := fmt.Sprintf("%04x%s0000PACK", len(line)+4, line)
	begun = fmt.Sprintf("%x\r\n%s\r\n", len(begun), begun) // more chunks would follow
	for _, entry := range []string{"forge.example fetch", "forge.example push team/other refs/heads/x", "forge.example push team/app refs/heads/y"} {
		a := newSite(t, bawn.Egress{Git: []string{entry}})
		if status, _ := a.ask("POST", "/team/app.git/git-receive-pack", begun, receivePack, "Transfer-Encoding: chunked"); status != http.StatusForbidden {
			t.Errorf("%s: %d", entry, status)
		}
	}
}
