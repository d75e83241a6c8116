package mitm

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestSentOnTheWay: what goes out with a secret counts while its request has not ended,
// which a guest may put off. Without a secret nothing is counted.
func TestSentOnTheWay(t *testing.T) {
	for authorization, counts := range map[string]bool{"Bearer " + placeholder: true, "": false} {
		var sent atomic.Int64
		ends := make(chan struct{})
		r := newRig(t, http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { io.Copy(io.Discard, q.Body) }), func(r *rig) {
			bind(bawn.Bearer, "")(r)
			r.Sent = func(secrets []string, n int64) {
				if len(secrets) != 1 || secrets[0] != "token" {
					t.Errorf("sent with %q", secrets)
				}
				sent.Add(n)
			}
		})
		body, guest := io.Pipe()
		q := request(t, "PUT", r.url("/x"), body)
		if authorization != "" {
			q.Header.Set("Authorization", authorization)
		}
		go func() {
			defer close(ends)
			if res, err := r.client(false).Do(q); err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("%v, %v", res, err)
			}
		}()
		io.WriteString(guest, strings.Repeat("x", 100<<10))
		if counts {
			testenv.Until(t, "the bytes on their way", func() bool { return sent.Load() == 100<<10 })
		}
		guest.Close()
		<-ends
		if sent.Load() != r.result().Out && counts || sent.Load() > 0 && !counts {
			t.Errorf("%q: %d of %d bytes were counted", authorization, sent.Load(), r.result().Out)
		}
	}
}

// TestSentOverWebSocket: so it is with a WebSocket, which ends when the guest likes.
func TestSentOverWebSocket(t *testing.T) {
	var sent atomic.Int64
	r := newRig(t, http.HandlerFunc(wsEcho), func(r *rig) {
		bind(bawn.Bearer, "")(r)
		r.Sent = func(_ []string, n int64) { sent.Add(n) }
	})
	ws, err := r.socket("Authorization", "Bearer "+placeholder)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(ws, strings.Repeat("x", 100<<10))
	testenv.Until(t, "the bytes on their way", func() bool { return sent.Load() > 100<<10 })
	ws.Close()
}
