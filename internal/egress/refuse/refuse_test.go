package refuse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/egress/sniff"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/listening"
)

var denial = Denial{
	Resource: "evil.example:80", Rule: "policy.toml:7", Reason: "no rule opens this host",
	Remedy: "ask the human to run bawn with --allow evil.example",
}

const line = "bawn: denied: evil.example:80 (rule policy.toml:7): no rule opens this host; ask the human to run bawn with --allow evil.example"

// refuser answers every client on a loopback address with d.
func refuser(t testing.TB, d Denial) (address string) {
	t.Helper()
	return listening.Serve(t, func(conn net.Conn) {
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		hello, raw, err := sniff.Read(conn, sniff.Limits{})
		if err != nil {
			t.Logf("the client ended early: %v", err)
		}
		if err := Write(conn, hello, raw, d); err != nil {
			t.Logf("Write: %v", err)
		}
	}).String()
}

// says sends raw to the refuser and returns its whole answer.
func says(t *testing.T, d Denial, raw string) (string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", refuser(t, d))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(conn)
	return string(b), err
}

func TestHTTP1(t *testing.T) {
	got, err := says(t, denial, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
	want := "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 129\r\nCache-Control: no-store\r\nConnection: close\r\nX-Bawn-Denied: policy.toml:7\r\n\r\n" + line + "\n"
	if err != nil || got != want {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
	got, err = says(t, denial, "HEAD / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
	if want := strings.TrimSuffix(want, line+"\n"); err != nil || got != want {
		t.Errorf("HEAD: got %q, %v\nwant %q", got, err, want)
	}
}

func TestJSON(t *testing.T) {
	got, err := says(t, denial, "GET / HTTP/1.1\r\nHost: evil.example\r\nAccept: application/json\r\n\r\n")
	head, body, _ := strings.Cut(got, "\r\n\r\n")
	if err != nil || !strings.Contains(head, "\r\nContent-Type: application/json\r\n") {
		t.Errorf("got %q, %v", got, err)
	}
	var said struct {
		Error string
		Denial
	}
	if err := json.Unmarshal([]byte(body), &said); err != nil || said.Denial != denial || said.Error != line {
		t.Errorf("got %+v, %v", said, err)
	}
}

// TestNoInjection: what comes from the client stays within its place.
func TestNoInjection(t *testing.T) {
	evil := "x\r\nSet-Cookie: a=b\r\n\r\n<script>\x1b[31m\u202e\x00\xff"
	d := Denial{Resource: evil, Rule: evil + strings.Repeat("ö", 1000), Reason: evil, Remedy: strings.Repeat("r", 100000)}
	for _, accept := range []string{"*/*", "application/json"} {
		got, err := says(t, d, "GET / HTTP/1.1\r\nHost: evil.example\r\nAccept: "+accept+"\r\n\r\n")
		head, body, _ := strings.Cut(got, "\r\n\r\n")
		if err != nil || len(strings.Split(head, "\r\n")) != 6 || strings.Count(got, "\n") != 8 || strings.ContainsAny(got, "\x1b\x00\u202e") || len(body) > 8*maxPart {
			t.Errorf("got %q, %v", got, err)
		}
		for _, row := range strings.Split(head, "\r\n") {
			if strings.HasPrefix(row, "Set-Cookie") {
				t.Errorf("injected: %q", row)
			}
		}
	}
	if got := string(d.visible().disconnect()); strings.Count(got, "\n") != 1 {
		t.Errorf("SSH: %q", got)
	}
}

func TestZero(t *testing.T) {
	if got := (Denial{}).String(); got != "bawn: denied" {
		t.Errorf("the zero denial says %q", got)
	}
	if got := (Denial{}).header(); got != "default" {
		t.Errorf("the zero denial's header is %q", got)
	}
}

// TestReset: what has no words is reset, at once; the control is an end
// without reset.
func TestReset(t *testing.T) {
	for _, raw := range []string{"\x00\x00\x00\x08\x04\xd2\x16\x2f", "EHLO x\r\n"} {
		if got, err := says(t, denial, raw); got != "" || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after %q: %q, %v; want a reset", raw, got, err)
		}
	}
	if _, err := says(t, denial, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"); err != nil {
		t.Errorf("control: %v", err)
	}
}

// TestUnreadUpload: a client that is still sending reads its answer all the
// same, and one that sends without end, or reads nothing, is not waited for.
func TestUnreadUpload(t *testing.T) {
	got, err := says(t, denial, "POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 200000\r\n\r\n"+strings.Repeat("x", 200000))
	if err != nil || !strings.HasSuffix(got, line+"\n") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestClientsThatHang(t *testing.T) {
	for _, kind := range []sniff.Kind{sniff.HTTP1, sniff.HTTP2, sniff.TLS, sniff.SSH, sniff.Unknown} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			client, server := net.Pipe() // nobody reads
			defer client.Close()
			done := make(chan error, 1)
			go func() { done <- Write(server, sniff.Hello{Kind: kind}, nil, denial) }()
			_ = testenv.Receive(t, "its end", done) // nobody took the answer
			if _, err := client.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("the connection is open: %v", err)
			}
		})
	}
}

// TestFrames: the frames of an answer of HTTP/2, in their order.
func TestFrames(t *testing.T) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	got, err := says(t, denial, preface+string(frame(frameSettings, 0, 0, nil))+string(frame(frameHeaders, flagEndHeaders, 7, []byte("\x82"))))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for len(got) >= 9 {
		kinds = append(kinds, fmt.Sprintf("%d/%d on %d", got[3], got[4], got[8]))
		got = got[min(len(got), 9+int(got[1])<<8+int(got[2])):]
	}
	want := []string{"4/0 on 0", "4/1 on 0", "1/4 on 7", "0/1 on 7", "7/0 on 0"}
	if !slices.Equal(kinds, want) || got != "" {
		t.Errorf("got frames %q and %q; want %q", kinds, got, want)
	}
}

// FuzzFrames: no frames of a client are waited for without end, and the stream
// that is answered is one of them.
func FuzzFrames(f *testing.F) {
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	settings := string(frame(frameSettings, 0, 0, nil))
	f.Add([]byte(preface + settings + string(frame(frameHeaders, flagEndHeaders, 1, []byte("\x82")))))
	f.Add([]byte(preface + settings + string(frame(8, 0, 0, []byte("\x00\x00\xff\xff"))) + string(frame(frameHeaders, 0, 1<<31|3, nil))))
	f.Add([]byte(preface + strings.Repeat(settings, maxFrames+1)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		id, err := firstRequest(bytes.NewReader(raw))
		if err == nil && (id >= 1<<31 || len(raw) < prefaceLength+9) {
			t.Fatalf("%q: stream %d", raw, id)
		}
	})
}
