//go:build linux || darwin

package shim

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
)

// TestRequestChange asks session sockets that answer in every way. Only a clear yes grants.
func TestRequestChange(t *testing.T) {
	for name, tt := range map[string]struct {
		reply   *intent.Reply // nil hangs up
		granted bool
		says    string
	}{
		"yes":            {&intent.Reply{Answer: &intent.RequestAnswer{Granted: true, Why: "fine"}}, true, "fine"},
		"no":             {&intent.Reply{Answer: &intent.RequestAnswer{Why: "not now"}}, false, "not now"},
		"refused":        {&intent.Reply{Denied: &intent.Refusal{Reason: "too many"}}, false, "too many"},
		"something else": {&intent.Reply{Started: true}, false, "something else"},
		"silence":        {nil, false, "closed without an answer"},
	} {
		path := filepath.Join(t.TempDir(), "socket")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		go serveOnce(l, tt.reply)
		granted, answer, err := requestChange(context.Background(), intent.Request{Want: []string{"--allow", "example.org"}, Dir: "/"}, path)
		if err != nil {
			answer = err.Error()
		}
		if granted != tt.granted || !strings.Contains(answer, tt.says) {
			t.Errorf("%s: got %v %q", name, granted, answer)
		}
		l.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path) // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if granted, _, err := requestChange(ctx, intent.Request{Dir: "/"}, path); granted || err == nil {
		t.Error("a session socket that is silent has granted it")
	}
	if granted, _, err := requestChange(context.Background(), intent.Request{Dir: "/"}, path+"x"); granted || err == nil {
		t.Error("no session socket has granted it")
	}
}

func serveOnce(l net.Listener, reply *intent.Reply) {
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	f, err := c.(*net.UnixConn).File()
	if err != nil {
		return
	}
	conn, err := ipc.New(f, intent.Limits)
	if err != nil {
		return
	}
	defer conn.Close()
	if _, err := conn.Receive(new(intent.Hello)); err == nil && reply != nil {
		_ = conn.Send(reply)
	}
}
