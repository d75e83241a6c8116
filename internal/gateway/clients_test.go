package gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestFloodOfSessions: a client that begins sessions without end holds no more of them
// than there may be, and takes none from a client that is being served.
func TestFloodOfSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t, Server{Name: "a", Start: program("new")})
	at := serveHTTP(t, r)
	connect := func() *mcp.ClientSession {
		c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: at + Path, HTTPClient: &http.Client{Transport: bearer(testToken)}, MaxRetries: -1},
			&mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	served := connect() // it listens for events
	first := session(t, at)
	for range maxClients + 20 {
		session(t, at)
	}
	testenv.Until(t, "sessions are ended", func() bool {
		n := 0
		for range r.front.Sessions() {
			n++
		}
		return n <= maxClients
	})
	if text, failed := invoke(t, served, "a__echo", map[string]any{"x": 1}); failed || text != `{"x":1}` {
		t.Errorf("the client that is served got %q", text)
	}
	if got := status(t, at, first, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); got != http.StatusNotFound {
		t.Errorf("the first session of the flood: %d; want that it has ended", got)
	}
	if got := status(t, at, session(t, at), `{"jsonrpc":"2.0","id":2,"method":"ping"}`); got != http.StatusOK {
		t.Errorf("control: a new session: %d", got)
	}
}

const greeting = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// session begins a session, and says which.
func session(t *testing.T, at string) string {
	t.Helper()
	res := post(t, at, "", greeting)
	id := res.Header.Get(sessionHeader)
	if id == "" {
		t.Fatalf("no session: %s", res.Status)
	}
	return id
}

func status(t *testing.T, at, session, body string) int {
	t.Helper()
	return post(t, at, session, body).StatusCode
}

func post(t *testing.T, at, session, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+Path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", sessionHeader: session} {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	res, err := bearer(testToken).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body) // the answer may be a stream
	return res
}

// TestKnownAtOnce: a request that a client sends as soon as it knows its session's name is
// counted, though the request that began the session has not ended.
func TestKnownAtOnce(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	var c *clients
	c = newClients(nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Get(sessionHeader); id != "" {
			c.mu.Lock()
			defer c.mu.Unlock()
			if u := c.used[id]; u == nil || u.open != 1 {
				t.Errorf("%+v is known of the session", u)
			}
			close(asked)
			return
		}
		w.Header().Set(sessionHeader, "s")
		w.WriteHeader(http.StatusOK)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-asked
	}))
	c.front = mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Body.Close()
	if got := status(t, s.URL, first.Header.Get(sessionHeader), ""); got != http.StatusOK {
		t.Errorf("the second request: %d", got)
	}
}

// TestBusy: where every session is in use, a new one is refused until one is free.
func TestBusy(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	c := newClients(server, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	for range maxClients {
		id := session(t, s.URL)
		c.mu.Lock()
		c.used[id].open = 1
		c.mu.Unlock()
	}
	if got := status(t, s.URL, "", greeting); got != http.StatusServiceUnavailable {
		t.Errorf("one session too many: %d", got)
	}
	c.mu.Lock()
	for _, u := range c.used {
		u.open = 0
	}
	c.mu.Unlock()
	if got := status(t, s.URL, "", greeting); got != http.StatusOK {
		t.Errorf("control: once they are not in use: %d", got)
	}
}

// TestBounded: requests that are too many, too large together or too slow are refused.
func TestBounded(t *testing.T) {
	t.Parallel()
	c := newClients(nil, nil)
	c.bodyTime = 100 * time.Millisecond
	s := httptest.NewServer(c.bounded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})))
	t.Cleanup(s.Close)
	if got := status(t, s.URL, "", "x"); got != http.StatusOK {
		t.Fatalf("control: %d", got)
	}
	testenv.Until(t, "nothing is held", func() bool { return c.hold(maxHeld) })
	if got := status(t, s.URL, "", "x"); got != http.StatusServiceUnavailable {
		t.Errorf("more bytes than there may be: %d", got)
	}
	c.hold(-maxHeld)
	for range maxRequests {
		c.requests <- struct{}{}
	}
	if got := status(t, s.URL, "", "x"); got != http.StatusServiceUnavailable {
		t.Errorf("one request too many: %d", got)
	}
	for range maxRequests {
		<-c.requests
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nslow"); err != nil {
		t.Fatal(err)
	}
	defer context.AfterFunc(testenv.Context(t), func() { _ = conn.Close() })()
	answer, _ := io.ReadAll(conn)
	if !strings.HasPrefix(string(answer), "HTTP/1.1 400") {
		t.Errorf("a request that does not come: %q", answer)
	}
}
