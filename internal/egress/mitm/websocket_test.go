package mitm

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/bawn-dev/bawn"
)

// The key of a guest's request, and how a host begins its answer (RFC 6455 section 1.3).
const (
	socketKey = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	accepted  = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
	switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + accepted
)

// socket opens a WebSocket through the rig.
func (r *rig) socket(header ...string) (*websocket.Conn, error) {
	config, err := websocket.NewConfig(strings.Replace(r.url("/ws"), "http", "ws", 1), "https://"+host)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		config.Header.Set(header[i], header[i+1])
	}
	ws, err := websocket.NewClient(config, r.conn())
	return ws, err
}

func wsEcho(w http.ResponseWriter, q *http.Request) {
	websocket.Handler(func(ws *websocket.Conn) {
		var text string
		for websocket.Message.Receive(ws, &text) == nil {
			if text == "tell" {
				text = q.Header.Get("Authorization")
			}
			websocket.Message.Send(ws, text)
		}
	}).ServeHTTP(w, q)
}

func TestWebSocket(t *testing.T) {
	for _, protocols := range [][]string{{"http/1.1"}, nil} { // nil: the host would rather speak HTTP/2
		r := newRig(t, http.HandlerFunc(wsEcho), func(r *rig) {
			r.up.NextProtos = protocols
			r.Decide = func(_ context.Context, q Request) bawn.Decision {
				if q.Upgrade != "websocket" || q.Header.Get("X-Deny") != "" {
					return bawn.Denied("no", "")
				}
				return bawn.Decision{Verdict: bawn.Allow}
			}
		})
		ws, err := r.socket()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"one", strings.Repeat("two", 50_000)} {
			var got string
			within(t, "a message", func() { websocket.Message.Send(ws, text); websocket.Message.Receive(ws, &got) })
			if got != text {
				t.Errorf("got %d bytes, want %d", len(got), len(text))
			}
		}
		ws.Close()
		if got := r.result(); got.Status != 101 || got.Out < 150_000 || got.In < 150_000 {
			t.Errorf("result %+v", got)
		}
		if _, err := r.socket("X-Deny", "1"); err == nil {
			t.Error("a denied WebSocket opened")
		}
	}
}

// A value that comes back in a frame ends the connection.
func TestWebSocketEcho(t *testing.T) {
	r := newRig(t, http.HandlerFunc(wsEcho), bind(bawn.Bearer, ""))
	ws, err := r.socket("Authorization", "Bearer "+placeholder)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	within(t, "a message", func() { websocket.Message.Send(ws, "control"); websocket.Message.Receive(ws, &got) })
	if got != "control" {
		t.Fatalf("control: %q", got)
	}
	within(t, "the end", func() {
		websocket.Message.Send(ws, "tell")
		if err := websocket.Message.Receive(ws, &got); err == nil || leaks(got) {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestWebSocketEchoInHeader(t *testing.T) {
	r := newRawRig(t, func(conn net.Conn) {
		defer conn.Close()
		if q, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			fmt.Fprintf(conn, switching+"X-Echo: %s\r\n\r\n", q.Header.Get("Authorization"))
		}
	}, bind(bawn.Bearer, ""))
	got := r.raw("GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + socketKey + "Authorization: Bearer " + placeholder + "\r\n\r\n")
	if statusCodes(got) != "101" || !strings.Contains(got, "X-Echo: Bearer "+placeholder) || leaks(got) {
		t.Errorf("got %q", got)
	}
}

// A host that switches protocols although nobody asked does not get through.
func TestUnaskedSwitch(t *testing.T) {
	r := newRawRig(t, func(conn net.Conn) {
		defer conn.Close()
		bufio.NewReader(conn).ReadString('\n')
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nanything")
		time.Sleep(100 * time.Millisecond)
	}, nil)
	if got := r.raw("GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"); statusCodes(got) != "502" || strings.Contains(got, "anything") {
		t.Errorf("got %q", got)
	}
}

// TestSwitchWithoutWebSocket: a status 101 that a guest got out of an endpoint opens no way
// for requests that nobody decides on. The control accepts the WebSocket.
func TestSwitchWithoutWebSocket(t *testing.T) {
	const begin = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	for name, tt := range map[string]struct {
		answer, key string
		passes      bool
	}{
		"control":             {begin + accepted, socketKey, true},
		"nothing is accepted": {begin, socketKey, false},
		"another key's":       {begin + "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n", socketKey, false},
		"no key":              {begin + "Sec-WebSocket-Accept: Kfh9QIsMVZcl6xEPYxPHzW8SZ8w=\r\n", "", false}, // of the empty one
		"a key that is not forwarded": {
			begin + accepted, "Connection: Sec-WebSocket-Key\r\n" + socketKey, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen saw
			r := newRawRig(t, func(conn net.Conn) {
				defer conn.Close()
				in := bufio.NewReader(io.TeeReader(conn, &seen))
				if _, err := http.ReadRequest(in); err == nil {
					io.WriteString(conn, tt.answer+"\r\n")
					http.ReadRequest(in)
				}
			}, func(r *rig) {
				r.Decide = func(_ context.Context, q Request) bawn.Decision {
					if q.Method != "GET" {
						return bawn.Denied("GET only", "")
					}
					return bawn.Decision{Verdict: bawn.Allow}
				}
			})
			conn := r.conn()
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+tt.key+"\r\n")
			in := bufio.NewReader(conn)
			answer, err := http.ReadResponse(in, nil)
			if err != nil || (answer.StatusCode == 101) != tt.passes {
				t.Fatalf("%v, %v", answer, err)
			}
			io.Copy(io.Discard, answer.Body)
			io.WriteString(conn, "DELETE /x HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
			http.ReadResponse(in, nil) // a refusal, or the end
			if strings.Contains(seen.String(), "DELETE") != tt.passes {
				t.Errorf("the host got %q", &seen)
			}
		})
	}
}
