package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const testToken = "0123456789abcdefghijklmnopqrstuv"

func serveHTTP(t *testing.T, r *rig) string {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = r.ServeHTTP(t.Context(), l, testToken) }()
	return "http://" + l.Addr().String()
}

// bearer shows a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Server{Name: "a", Start: program("new")})
			at := serveHTTP(t, r)
			c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "ann"}}, nil
				},
			})
			s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: at + Path, HTTPClient: &http.Client{Transport: bearer(testToken)}, MaxRetries: -1},
				&mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if text, failed := invoke(t, s, "a__echo", map[string]any{"x": 1}); failed || text != `{"x":1}` {
				t.Errorf("got %q", text)
			}
			if text, failed := invoke(t, s, "a__ask", nil); failed || text != "accept ann" {
				t.Errorf("got %q", text)
			}
			if got := s.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("it speaks %q", got)
			}
		})
	}
}

// TestWhoIsNotServed attacks as other users, pages in browsers and names that
// were made to lead here do. The control differs in the one header.
func TestWhoIsNotServed(t *testing.T) {
	t.Parallel()
	r := newRig(t, Server{Name: "a", Start: program("new")})
	at := serveHTTP(t, r)
	port := at[strings.LastIndex(at, ":"):]
	for name, tt := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"control":            {func(*http.Request) {}, 200},
		"control: localhost": {func(r *http.Request) { r.Host = "localhost" + port }, 200},
		"no token":           {func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"part of the token":  {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testToken[:20]) }, 401},
		"more than it":       {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testToken+"x") }, 401},
		"twice":              {func(r *http.Request) { r.Header.Add("Authorization", "Bearer "+testToken) }, 401},
		"in the address":     {func(r *http.Request) { r.Header.Del("Authorization"); r.URL.RawQuery = "access_token=" + testToken }, 401},
		"a page":             {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		"a local page":       {func(r *http.Request) { r.Header.Set("Origin", at) }, 403},
		"a page in a file":   {func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"a page, no origin":  {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, 403},
		"a name made ours":   {func(r *http.Request) { r.Host = "evil.example" + port }, 403},
		"no port":            {func(r *http.Request) { r.Host = "127.0.0.1" }, 403},
		"another path":       {func(r *http.Request) { r.URL.Path = "/other" }, 404},
		"too much": {func(r *http.Request) {
			r.Body = io.NopCloser(io.LimitReader(zeros{}, maxClientMessage+1))
			r.ContentLength = -1
		}, 413},
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+Path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+testToken)
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			tt.change(req)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != tt.want {
				text, _ := io.ReadAll(res.Body)
				t.Errorf("got %s: %s, want %d", res.Status, text, tt.want)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestWhereItIsServed(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "localhost:0", "127.0.0.1", ""} {
		if l, err := Listen(t.Context(), address); err == nil {
			l.Close()
			t.Errorf("%q is listened at", address)
		}
	}
	r := newRig(t)
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.ServeHTTP(t.Context(), l, "short"); err == nil {
		t.Error("a short token is taken")
	}
}
