package api

import (
	"context"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/bawn-dev/bawn/internal/testenv"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

func (r *rig) sessions(c Caller) bawnv1connect.SessionServiceClient {
	return bawnv1connect.NewSessionServiceClient(r.as(c), r.url, connect.WithProtoJSON())
}

// attach attaches and returns the view's secret and what comes.
func attach(t *testing.T, c bawnv1connect.SessionServiceClient, m *bawnv1.SessionServiceAttachRequest) (string, *connect.ServerStreamForClient[bawnv1.SessionServiceAttachResponse], context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s, err := c.Attach(ctx, m)
	if err != nil || !s.Receive() || s.Msg().GetView() == "" {
		t.Fatalf("attach: %v %v", err, s.Err())
	}
	return s.Msg().GetView(), s, cancel
}

// output returns the next output.
func output(t *testing.T, s *connect.ServerStreamForClient[bawnv1.SessionServiceAttachResponse]) string {
	t.Helper()
	for s.Receive() {
		if out := s.Msg().GetOutput(); len(out) > 0 {
			return string(out)
		}
	}
	t.Fatalf("no output: %v", s.Err())
	return ""
}

// TestTerminal: what is typed comes back; only who has attached can type; the
// view ends with the stream.
func TestTerminal(t *testing.T) {
	shell := &terminal{keys: make(chan string, 10)}
	r := newRig(t, func(o *Options) { o.Sessions = shell })
	c := r.sessions(phone)
	view, s, cancel := attach(t, c, &bawnv1.SessionServiceAttachRequest{Id: "s1", Rows: 24, Columns: 80})
	if _, err := c.Send(t.Context(), &bawnv1.SessionServiceSendRequest{View: view, Data: []byte("ls")}); err != nil {
		t.Fatal(err)
	}
	if out := output(t, s); out != "> ls" {
		t.Errorf("output %q", out)
	}
	if _, err := c.Resize(t.Context(), &bawnv1.SessionServiceResizeRequest{View: view, Rows: 50, Columns: 132}); err != nil {
		t.Error(err)
	}
	if got := strings.Join(shell.sizes, " "); got != "24x80 50x132" {
		t.Errorf("sizes %q", got)
	}
	for name, send := range map[string]func() error{
		"another device, with the view's secret": func() error {
			_, err := r.sessions(Caller{Name: "x", Device: "other"}).Send(t.Context(), &bawnv1.SessionServiceSendRequest{View: view, Data: []byte("rm")})
			return err
		},
		"no view": func() error {
			_, err := c.Send(t.Context(), &bawnv1.SessionServiceSendRequest{Data: []byte("rm")})
			return err
		},
		"too much": func() error {
			_, err := c.Send(t.Context(), &bawnv1.SessionServiceSendRequest{View: view, Data: make([]byte, maxKeys+1)})
			return err
		},
		"no size": func() error {
			_, err := c.Resize(t.Context(), &bawnv1.SessionServiceResizeRequest{View: view, Rows: 1, Columns: maxSide + 1})
			return err
		},
	} {
		if err := send(); err == nil {
			t.Errorf("%s: it worked", name)
		}
	}
	cancel()
	testenv.Until(t, "the end of the view", func() bool {
		_, err := c.Send(t.Context(), &bawnv1.SessionServiceSendRequest{View: view, Data: nil})
		shell.mu.Lock()
		defer shell.mu.Unlock()
		return connect.CodeOf(err) == connect.CodeNotFound && shell.closed > 0
	})
	if !r.records.has("attach", "s1") {
		t.Error("nothing is recorded")
	}
}

// TestReadOnlyViews: who may only look can't type, whatever they ask for.
func TestReadOnlyViews(t *testing.T) {
	shell := &terminal{keys: make(chan string, 10)}
	r := newRig(t, func(o *Options) { o.Sessions = shell })
	if s, err := r.sessions(viewer).Attach(t.Context(), &bawnv1.SessionServiceAttachRequest{Id: "s1"}); err == nil && (s.Receive() || connect.CodeOf(s.Err()) != connect.CodePermissionDenied) {
		t.Errorf("a device that may only look attaches for typing: %v", s.Err())
	}
	view, s, _ := attach(t, r.sessions(viewer), &bawnv1.SessionServiceAttachRequest{Id: "s1", ReadOnly: true, Rows: 1, Columns: 1})
	shell.keys <- "hello"
	if out := output(t, s); out != "> hello" {
		t.Errorf("output %q", out)
	}
	if _, err := r.sessions(viewer).Send(t.Context(), &bawnv1.SessionServiceSendRequest{View: view, Data: []byte("x")}); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("it types: %v", err)
	}
	own, _, _ := attach(t, r.sessions(phone), &bawnv1.SessionServiceAttachRequest{Id: "s1", ReadOnly: true})
	if _, err := r.sessions(phone).Send(t.Context(), &bawnv1.SessionServiceSendRequest{View: own, Data: []byte("x")}); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("a view to look at is typed into: %v", err)
	}
	if len(shell.sizes) != 0 {
		t.Errorf("a view to look at changes the size: %v", shell.sizes)
	}
}

// TestKill: a human ends a session, and everybody who watches sees it.
func TestKill(t *testing.T) {
	shell := &terminal{}
	r := newRig(t, func(o *Options) { o.Sessions = shell })
	ctx := testenv.Context(t)
	s, err := r.sessions(viewer).Watch(ctx, &bawnv1.SessionServiceWatchRequest{})
	if err != nil || !s.Receive() || !s.Msg().GetSessions()[0].GetAlive() {
		t.Fatalf("%v %v", err, s.Err())
	}
	if _, err := r.sessions(phone).Kill(ctx, &bawnv1.SessionServiceKillRequest{Id: "nothing"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("no session: %v", err)
	}
	r.records.fail = context.DeadlineExceeded
	if _, err := r.sessions(phone).Kill(ctx, &bawnv1.SessionServiceKillRequest{Id: "s1"}); err == nil || len(shell.killed) > 0 {
		t.Errorf("what can't be recorded happens: %v", err)
	}
	r.records.fail = nil
	if _, err := r.sessions(phone).Kill(ctx, &bawnv1.SessionServiceKillRequest{Id: "s1"}); err != nil {
		t.Fatal(err)
	}
	for s.Receive() {
		if s.Msg().GetChanged() {
			break
		}
	}
	if s.Err() != nil || s.Msg().GetSessions()[0].GetAlive() {
		t.Errorf("%v %v; want it dead", s.Msg(), s.Err())
	}
}
