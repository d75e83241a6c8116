package webui

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

var discard = slog.New(slog.DiscardHandler)

// canary is what must not leave: it stands in everything a guest can choose.
const canary = "CANARY-s3cr3t"

// A sink is what a service of notices got.
type sink struct {
	mu   sync.Mutex
	got  []string
	more chan struct{}
}

func (s *sink) add(text string) {
	s.mu.Lock()
	s.got = append(s.got, text)
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *sink) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.got...)
}

// TestNoticesTime: a notice after five seconds, one a minute for a session,
// those of a minute together, none of what was answered.
func TestNoticesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{more: make(chan struct{}, 1)}
		n := &Notifier{Log: discard, Page: "https://localhost:7/", Ways: []Notice{{"test", func(text string) error { s.add(text); return nil }}}}
		changes := make(chan Change)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { n.Run(ctx, changes); close(done) }()
		wants := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if got := s.all(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("after %s: got %q; want %q", "this", got, want)
			}
		}
		ask := func(id, session string) Change {
			return Change{ID: id, Session: session, Agent: "claude", Kind: bawn.Command, Pending: true}
		}
		first := "Session aaaa (agent claude) asks to run a command: open Bawn https://localhost:7/"
		changes <- ask("1", "aaaa")
		changes <- ask("gone", "bbbb")
		time.Sleep(3 * time.Second)
		changes <- Change{ID: "gone", Session: "bbbb"}
		time.Sleep(1900 * time.Millisecond)
		wants()
		time.Sleep(200 * time.Millisecond)
		wants(first)
		changes <- ask("1", "aaaa") // waits still: no second notice
		for i := range 3 {
			changes <- ask(fmt.Sprint("more", i), "aaaa")
			time.Sleep(10 * time.Second)
		}
		wants(first)
		time.Sleep(31 * time.Second)
		second := "Session aaaa (agent claude) asks 3 questions: open Bawn https://localhost:7/"
		wants(first, second)
		time.Sleep(time.Hour)
		wants(first, second)
		cancel()
		<-done
	})
}

// TestNoticesAreFew: 500 sessions that ask at once are told of bit by bit.
func TestNoticesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{more: make(chan struct{}, 1)}
		n := &Notifier{Log: discard, Ways: []Notice{{"test", func(text string) error { s.add(text); return nil }}}}
		changes := make(chan Change)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { n.Run(ctx, changes); close(done) }()
		for i := range 500 {
			changes <- Change{ID: fmt.Sprint(i), Session: fmt.Sprint("s", i), Pending: true}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(s.all()); got < 10 || got > noticesBurst+25 {
			t.Errorf("%d notices in a minute", got)
		}
		cancel()
		<-done
	})
}

// TestNoSecretInNotices (canary): whatever the guest puts into names.
func TestNoSecretInNotices(t *testing.T) {
	n := &Notifier{Page: "https://localhost/"}
	for _, agent := range []string{"x " + canary, "/home/me/" + canary, "https://evil.example/" + canary, canary + "\n", strings.Repeat("a", 25)} {
		m := n.compose(Change{ID: canary, Session: "abcdef0123456789", Agent: agent, Kind: bawn.Command}, 1)
		if want := "Session abcdef01 asks to run a command: open Bawn"; m.short != want {
			t.Errorf("agent %q: %q; want %q", agent, m.short, want)
		}
	}
}

// run sends one question through a notifier and waits until the sink has got
// something.
func run(t *testing.T, n *Notifier, s *sink) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	changes, done := make(chan Change), make(chan struct{})
	go func() { n.Run(ctx, changes); close(done) }()
	changes <- Change{ID: canary, Session: "abcdef0123456789", Agent: "claude", Kind: bawn.Network, Pending: true}
	select {
	case <-s.more:
	case <-ctx.Done():
		t.Error("nothing came")
	}
	cancel()
	<-done
	return strings.Join(s.all(), "\n")
}

// web is an HTTP server that keeps what it gets, with headers and address.
func web(t *testing.T, s *sink, status int) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(status)
		fmt.Fprint(w, `{}`)
		s.add(fmt.Sprint(r.Method, " ", r.URL, " ", r.Header, " ", string(body)))
	}))
	t.Cleanup(server.Close)
	return server
}

// TestNtfy sends through shoutrrr to a server that stands for ntfy.
func TestNtfy(t *testing.T) {
	s := &sink{more: make(chan struct{}, 1)}
	server := web(t, s, http.StatusOK)
	ways, err := ParseWays("# mine\n\nntfy://" + strings.TrimPrefix(server.URL, "http://") + "/topic?scheme=http\n")
	if err != nil {
		t.Fatal(err)
	}
	notices, err := Open(t.Context(), ways, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, &Notifier{After: time.Millisecond, Page: "https://localhost:7/", Ways: notices, Log: discard}, s)
	if !strings.Contains(got, "POST /topic") || !strings.Contains(got, "Session abcdef01 (agent claude) asks for a host: open Bawn https://localhost:7/") || strings.Contains(got, canary) {
		t.Errorf("ntfy got %q", got)
	}
}

// TestSlack sends through shoutrrr's Slack to a server that stands for it: its
// transport is the default one, which is led there.
func TestSlack(t *testing.T) {
	s := &sink{more: make(chan struct{}, 1)}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, "ok")
		s.add(r.Host + r.URL.Path + " " + string(body))
	}))
	defer server.Close()
	old := http.DefaultTransport
	defer func() { http.DefaultTransport = old }()
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.ServerName = "example.com" // of httptest's certificate
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	http.DefaultTransport = transport
	vault := func(_ context.Context, name string) (bawn.Secret, error) {
		if name != "slack-notices" {
			return bawn.Secret{}, fmt.Errorf("no secret %q", name)
		}
		return bawn.NewSecret([]byte("slack://hook:" + "T00000000" + "-" + "B00000000" + "-" + strings.Repeat("x", 24) + "@webhook\n")), nil
	}
	ways, err := ParseWays("secret:slack-notices\n")
	if err != nil {
		t.Fatal(err)
	}
	notices, err := Open(t.Context(), ways, vault)
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, &Notifier{After: time.Millisecond, Ways: notices, Log: discard}, s)
	if !strings.Contains(got, "hooks.slack.com/services/") || !strings.Contains(got, "asks for a host") || strings.Contains(got, canary) {
		t.Errorf("Slack got %q", got)
	}
}

// TestAddressesStaySecret: a service that fails is named in the log, its
// address is not.
func TestAddressesStaySecret(t *testing.T) {
	s := &sink{more: make(chan struct{}, 1)}
	server := web(t, s, http.StatusInternalServerError)
	host := strings.TrimPrefix(server.URL, "http://")
	log := &logText{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	notices, err := Open(t.Context(), []Way{{Address: bawn.NewSecret([]byte("ntfy://user:" + canary + "@" + host + "/" + canary + "?scheme=http"))}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan struct{})
	send := notices[0].Send
	notices[0].Send = func(text string) error { defer close(failed); return send(text) }
	n := &Notifier{After: time.Millisecond, Ways: notices, Log: logger}
	run(t, n, s)
	<-failed
	testenv.Until(t, "the line that is written after Send", func() bool { return log.String() != "" })
	if got := log.String(); strings.Contains(got, canary) || strings.Contains(got, host) || !strings.Contains(got, "ntfy") {
		t.Errorf("log %q", got)
	}
	for _, text := range []string{"ntfy:/" + canary, canary + "://x", "telegram://" + canary, "logger://" + canary, "secret:" + canary + " x"} {
		ways, err := ParseWays(text)
		if err == nil {
			_, err = Open(t.Context(), ways, nil)
		}
		if err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%q: %v; want an error without it", text, err)
		}
	}
}
