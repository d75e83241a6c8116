package mitm

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// within fails a test whose step takes too long.
func within(t *testing.T, what string, step func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); step() }()
	testenv.Receive(t, what, done)
}

// Each event has to arrive before the next is sent, also where it is looked
// through for a value.
func TestEventsArriveAtOnce(t *testing.T) {
	for _, auth := range []string{"none", "Bearer " + placeholder} {
		for _, h2 := range []bool{false, true} {
			next := make(chan struct{})
			r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if len(auth) == 4 { // a file that comes slowly
					w.Header().Set("Content-Length", fmt.Sprint(3*len("data: 0\n\n")))
				} else {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				for i := range 3 {
					fmt.Fprintf(w, "data: %d\n\n", i)
					w.(http.Flusher).Flush()
					<-next
				}
			}), bind(bawn.Bearer, ""))
			res, err := r.client(h2).Do(request(t, "GET", r.url("/"), nil, "Authorization", auth))
			if err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(res.Body)
			for i := range 3 {
				within(t, "an event", func() {
					line, _ := in.ReadString('\n')
					in.ReadString('\n')
					if want := fmt.Sprintf("data: %d\n", i); line != want {
						t.Errorf("got %q, want %q", line, want)
					}
				})
				next <- struct{}{}
			}
			res.Body.Close()
		}
	}
}

// Both directions of one request run at once, as gRPC's streams do.
func TestBothWaysAtOnce(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			http.NewResponseController(w).EnableFullDuplex()
			w.Header().Set("Trailer", "Grpc-Status")
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			for in := bufio.NewReader(q.Body); ; {
				line, err := in.ReadString('\n')
				if err != nil {
					break
				}
				io.WriteString(w, "echo "+line)
				w.(http.Flusher).Flush()
			}
			w.Header().Set("Grpc-Status", "0")
		}), bind(bawn.Bearer, ""))
		body, send := io.Pipe()
		res, err := r.client(h2).Do(request(t, "POST", r.url("/"), body, "Te", "trailers"))
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(res.Body)
		for i := range 3 {
			within(t, "an answer to a part of a request", func() {
				fmt.Fprintf(send, "%d\n", i)
				if line, _ := in.ReadString('\n'); line != fmt.Sprintf("echo %d\n", i) {
					t.Errorf("got %q", line)
				}
			})
		}
		send.Close()
		within(t, "the end", func() { io.Copy(io.Discard, in) })
		if res.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("h2 %v: trailer %v", h2, res.Trailer)
		}
	}
}

// A placeholder that comes late aborts what is under way on both sides.
func TestLatePlaceholderAborts(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		broken := make(chan error, 1)
		var seen saw
		r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			http.NewResponseController(w).EnableFullDuplex()
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			_, err := io.Copy(&seen, q.Body)
			broken <- err
		}), bind(bawn.Bearer, ""))
		body, send := io.Pipe()
		res, err := r.client(h2).Do(request(t, "POST", r.url("/"), body))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(send, "harmless %s", placeholder[:10])
		go fmt.Fprintf(send, "%s and so on", placeholder[10:])
		within(t, "the abort upstream", func() {
			if err := testenv.Receive(t, "the end", broken); err == nil {
				t.Error("the server was told that the request is whole")
			}
		})
		within(t, "the abort", func() { io.Copy(io.Discard, res.Body) })
		if strings.Contains(seen.String(), placeholder) {
			t.Errorf("the server saw %q", &seen)
		}
		var refusal *Refusal
		if got := r.result(); !errors.As(got.Err, &refusal) || !strings.Contains(refusal.Reason, `"token"`) {
			t.Errorf("result %+v", got)
		}
	}
}

// Large bodies pass both ways in little memory, looked through.
func TestLargeBodies(t *testing.T) {
	testenv.Whole(t) // it measures memory
	const size = 48 << 20
	var peak uint64
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		n, _ := io.Copy(io.Discard, q.Body)
		if n != size {
			t.Errorf("the server got %d bytes", n)
		}
		io.Copy(w, io.LimitReader(endless{}, size))
	}), bind(bawn.Bearer, ""))
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	res, err := r.client(false).Do(request(t, "POST", r.url("/"), io.LimitReader(endless{}, size), "Authorization", "Bearer "+placeholder))
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, res.Body)
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	peak = now.Sys - before.Sys
	if n != size || err != nil || peak > 32<<20 {
		t.Errorf("got %d bytes, %v; the process grew by %d MiB", n, err, peak>>20)
	}
	if got := r.result(); got.In != size || got.Out != size {
		t.Errorf("result %+v", got)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "abcdefghij %+"[i%13]
	}
	return len(p), nil
}

// A host that never ends a body, and one that never answers, hold up nobody
// else on the same connection.
func TestStalledHostsDoNotStallOthers(t *testing.T) {
	stop := make(chan struct{})
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/endless":
			for q.Context().Err() == nil {
				io.WriteString(w, strings.Repeat("x", 1<<16))
			}
		case "/silent":
			<-stop
		}
	}), nil)
	defer close(stop)
	c := r.client(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 5 {
		go c.Do(request(t, "GET", r.url("/silent"), nil).WithContext(ctx))
		res, err := c.Do(request(t, "GET", r.url("/endless"), nil).WithContext(ctx)) // never read
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
	}
	within(t, "a request beside stalled ones", func() {
		if res, _ := r.do(c, request(t, "GET", r.url("/"), nil)); res.StatusCode != 200 {
			t.Errorf("%d", res.StatusCode)
		}
	})
}

func TestExpectContinue(t *testing.T) {
	for _, verdict := range []bawn.Verdict{bawn.Allow, bawn.Deny} {
		var seen saw
		r := newRig(t, http.HandlerFunc(seen.describe), func(r *rig) {
			r.up.NextProtos = []string{"http/1.1"}
			r.Decide = func(context.Context, Request) bawn.Decision { return bawn.Decision{Verdict: verdict} }
		})
		conn := r.conn()
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n", host)
		in := bufio.NewReader(conn)
		line, _ := in.ReadString('\n')
		if verdict == bawn.Deny {
			if !strings.Contains(line, " 403 ") || seen.String() != "" {
				t.Errorf("denied: %q", line)
			}
			continue
		}
		if !strings.Contains(line, " 100 ") {
			t.Fatalf("allowed: %q", line)
		}
		in.ReadString('\n')
		io.WriteString(conn, "body")
		for line, _ = in.ReadString('\n'); strings.Contains(line, " 100 "); line, _ = in.ReadString('\n') { // there may be several (RFC 9110 15.2)
			in.ReadString('\n')
		}
		if !strings.Contains(line, " 200 ") || !strings.Contains(seen.String(), `body="body"`) {
			t.Errorf("after the body: %q; the server saw %q", line, &seen)
		}
	}
}

func TestPeek(t *testing.T) {
	const text = "0098a push command and the rest of it"
	for name, packed := range map[string]bool{"plain": false, "gzip": true} {
		for _, bound := range []bool{false, true} {
			var seen saw
			var read []string
			r := newRig(t, http.HandlerFunc(seen.describe), func(r *rig) {
				if bound {
					bind(bawn.Bearer, "")(r)
				}
				r.Decide = func(_ context.Context, q Request) bawn.Decision {
					first, err1 := q.Peek(4)
					part := make([]byte, 6)
					_, err2 := io.ReadFull(q.Prefix(), part)
					whole, err3 := q.Peek(1000)
					_, err4 := q.Peek(MaxPeek + 1)
					read = append(read, string(first), string(part), string(whole), fmt.Sprint(err1, err2, err3, errors.Is(err4, ErrPeek)))
					if q.Path == "/deny" {
						return bawn.Denied("no", "")
					}
					return bawn.Decision{Verdict: bawn.Allow}
				}
			})
			body, header := text, []string{}
			if packed {
				body, header = gzipped(text), []string{"Content-Encoding", "gzip"}
			}
			for _, path := range []string{"/", "/deny"} {
				read = nil
				r.do(r.client(false), request(t, "POST", r.url(path), strings.NewReader(body), header...))
				if want := []string{text[:4], text[:6], text, "<nil> <nil> EOF true"}; fmt.Sprint(read) != fmt.Sprint(want) {
					t.Errorf("%s: read %q, want %q", name, read, want)
				}
			}
			if got := seen.String(); !strings.Contains(got, fmt.Sprintf("body=%q", body)) || strings.Contains(got, "/deny") || strings.Count(got, "POST") != 1 {
				t.Errorf("%s: the server saw %q", name, got)
			}
		}
	}
}

// Peek waits for no more than it was asked for.
func TestPeekDoesNotWait(t *testing.T) {
	asked := make(chan string, 1)
	r := newRig(t, http.NotFoundHandler(), func(r *rig) {
		r.Decide = func(_ context.Context, q Request) bawn.Decision {
			got, _ := q.Peek(4)
			asked <- string(got)
			return bawn.Decision{}
		}
	})
	conn := r.conn()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 400\r\n\r\n0000", host)
	within(t, "Peek", func() {
		if got := testenv.Receive(t, "the question", asked); got != "0000" {
			t.Errorf("got %q", got)
		}
	})
	conn.(*tls.Conn).NetConn().Close()
}
