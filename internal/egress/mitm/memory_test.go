package mitm

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/bawn-dev/bawn"
)

// An echoingHost is a host that keeps what it was told and gives it back later.
type echoingHost struct {
	told chan string // closed with the first request that brings a secret
	on   chan bool   // lets a stream that has begun go on
}

func newEchoingHost() *echoingHost {
	return &echoingHost{told: make(chan string, 1), on: make(chan bool, 1)}
}

func (k *echoingHost) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	switch q.URL.Path {
	case "/login":
		k.told <- strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ")
	case "/stream":
		io.WriteString(w, "begun ")
		w.(http.Flusher).Flush()
		<-k.on
		io.WriteString(w, value)
	case "/socket":
		websocket.Handler(func(ws *websocket.Conn) {
			var text string
			for websocket.Message.Receive(ws, &text) == nil {
				websocket.Message.Send(ws, map[string]string{"later": value}[text]+"said")
			}
		}).ServeHTTP(w, q)
	default:
		w.Header().Set("X-Later", value)
		io.WriteString(w, "kept "+value)
	}
}

func (k *echoingHost) login(r *rig) {
	r.t.Helper()
	res, _ := r.do(r.client(false), request(r.t, "GET", r.url("/login"), nil, "Authorization", "Bearer "+placeholder))
	if got := <-k.told; res.StatusCode != 200 || got != value {
		r.t.Fatalf("control: the host got %q, %d", got, res.StatusCode)
	}
}

// TestHostRemembers: a value that a host got with one request is replaced in the answers
// to every other one, also without TLS, and in a stream that has begun before.
func TestHostRemembers(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		k := newEchoingHost()
		r := newRig(t, k, bind(bawn.Bearer, ""))
		if _, body := r.do(r.client(h2), request(t, "GET", r.url("/"), nil)); body != "kept "+value {
			t.Fatalf("control: before it got the value the host's text is %q", body)
		}
		stream, err := r.client(h2).Do(request(t, "GET", r.url("/stream"), nil))
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Body.Close()
		k.login(r)
		k.on <- true
		if got, err := io.ReadAll(stream.Body); err != nil || string(got) != "begun "+placeholder {
			t.Errorf("stream: %q, %v", got, err)
		}
		res, body := r.do(r.client(h2), request(t, "GET", r.url("/"), nil, "Range", "bytes=0-9"))
		if body != "kept "+placeholder || res.Header.Get("X-Later") != placeholder {
			t.Errorf("later: %q %v", body, res.Header)
		}
		if got := r.plain(k, r.target.Host); !strings.Contains(got, "kept "+placeholder) || leaks(got) {
			t.Errorf("without TLS: %q", got)
		}
	}
}

// TestSiblingRemembers: what one host got, another one that it is bound to gives back.
func TestSiblingRemembers(t *testing.T) {
	k := newEchoingHost()
	r := newRig(t, k, func(r *rig) {
		bind(bawn.Bearer, "")(r)
		r.Matches = func(b bawn.Binding, host string, _ uint16) bool {
			return b.Host == host || b.Secret == "token" && host == "sibling.example.com"
		}
	})
	if got := r.plain(k, "sibling.example.com"); !strings.Contains(got, "kept "+value) {
		t.Fatalf("control: before the value was lent: %q", got)
	}
	k.login(r)
	if got := r.plain(k, "sibling.example.com"); !strings.Contains(got, "kept "+placeholder) || leaks(got) {
		t.Errorf("a host with the same binding: %q", got)
	}
	if got := r.plain(k, "stranger.example.com"); !strings.Contains(got, "kept "+value) {
		t.Errorf("control: a host that has nothing to do with it: %q", got)
	}
}

// plain asks a host without TLS, in the same session.
func (r *rig) plain(host http.Handler, name string) string {
	upstream := httptest.NewServer(host)
	r.t.Cleanup(upstream.Close)
	dial := r.Dial
	r.Dial = func(ctx context.Context, _ string, _ uint16) (net.Conn, netip.AddrPort, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", upstream.Listener.Addr().String())
		return conn, netip.MustParseAddrPort("127.0.0.1:80"), err
	}
	defer func() { r.Dial = dial }()
	guest, server := net.Pipe()
	go r.Serve(r.t.Context(), server, Target{Host: name, Port: 80})
	guest.SetDeadline(time.Now().Add(30 * time.Second))
	go io.WriteString(guest, "GET /plain HTTP/1.1\r\nHost: "+name+"\r\nConnection: close\r\n\r\n")
	got, _ := io.ReadAll(guest)
	return string(got)
}

// TestSocketRemembers: a WebSocket that was opened before a host got a value ends when the
// value comes over it.
func TestSocketRemembers(t *testing.T) {
	k := newEchoingHost()
	r := newRig(t, k, bind(bawn.Bearer, ""))
	open := func() *websocket.Conn {
		c, err := websocket.NewConfig("wss://"+r.authority()+"/socket", "https://"+host)
		if err != nil {
			t.Fatal(err)
		}
		ws, err := websocket.NewClient(c, r.conn())
		if err != nil {
			t.Fatal(err)
		}
		return ws
	}
	say := func(ws *websocket.Conn, text string) (got string, err error) {
		within(t, "an answer", func() {
			websocket.Message.Send(ws, text)
			err = websocket.Message.Receive(ws, &got)
		})
		return got, err
	}
	ws := open()
	if got, err := say(ws, "later"); err != nil || got != value+"said" {
		t.Fatalf("control: %q, %v", got, err)
	}
	k.login(r)
	if got, err := say(ws, "other"); err != nil || got != "said" {
		t.Fatalf("control: %q, %v", got, err)
	}
	for _, ws := range []*websocket.Conn{ws, open()} {
		if got, err := say(ws, "later"); err == nil || leaks(got) {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

// TestMask: a text that a library has printed tells no value that was lent.
func TestMask(t *testing.T) {
	k := newEchoingHost()
	r := newRig(t, k, bind(bawn.Bearer, ""))
	printed := fmt.Sprintf("Unsolicited response received on idle HTTP channel starting with %q; err=<nil>", "x "+value)
	if got := r.Mask(printed); got != printed {
		t.Errorf("control: before anything was lent: %q", got)
	}
	k.login(r)
	if got := r.Mask(printed); leaks(got) || !strings.Contains(got, placeholder) {
		t.Errorf("got %q", got)
	}
}
