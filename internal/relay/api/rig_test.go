package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/testenv"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// records keep what was recorded.
type records struct {
	mu     sync.Mutex
	events []bawn.Event
	fail   error
}

func (r *records) Record(_ context.Context, e bawn.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	return r.fail
}

func (r *records) has(operation, resource string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Operation == operation && e.Resource == resource && e.Details["by"] != "" {
			return true
		}
	}
	return false
}

// A rig is an API over a real queue, served over HTTP on loopback. Who calls
// stands in a header.
type rig struct {
	*API
	queue   *approval.Queue
	records *records
	url     string
	client  *http.Client
}

func newRig(t *testing.T, change ...func(*Options)) *rig {
	t.Helper()
	store := &approval.Memory{}
	r := &rig{records: &records{}}
	var err error
	if r.queue, err = approval.NewQueue(t.Context(), approval.Options{Store: store, Recorder: r.records}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.queue.Close() })
	o := Options{Inbox: r.queue, History: store.History, Recorder: r.records, Now: time.Now, Beat: 50 * time.Millisecond}
	for _, f := range change {
		f(&o)
	}
	if r.API, err = New(o); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx := req.Context()
		if who := req.Header.Get("Who"); who != "" {
			ctx = WithCaller(ctx, Caller{Name: who, Device: req.Header.Get("Device"), ReadOnly: req.Header.Get("Read-Only") != "", Peer: req.RemoteAddr})
		}
		r.ServeHTTP(w, req.WithContext(ctx))
	}))
	t.Cleanup(server.Close)
	r.url, r.client = server.URL, server.Client()
	return r
}

// as adds who calls to every request.
type as struct {
	caller Caller
	under  http.RoundTripper
}

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Who", a.caller.Name)
	r.Header.Set("Device", a.caller.Device)
	if a.caller.ReadOnly {
		r.Header.Set("Read-Only", "yes")
	}
	return a.under.RoundTrip(r)
}

func (r *rig) as(c Caller) *http.Client { return &http.Client{Transport: as{c, r.client.Transport}} }

var (
	human  = Caller{Name: "anna"}
	phone  = Caller{Name: "web:phone", Device: "phone"}
	viewer = Caller{Name: "web:screen", Device: "screen", ReadOnly: true}
)

func (r *rig) approvals(c Caller) bawnv1connect.ApprovalServiceClient {
	return bawnv1connect.NewApprovalServiceClient(r.as(c), r.url, connect.WithProtoJSON())
}

// ask puts a question in the background and returns its ID and its answer.
func (r *rig) ask(t *testing.T, change ...func(*approval.Question)) (string, <-chan bawn.Answer) {
	t.Helper()
	q := approval.Question{
		ID: approval.NewID(), Session: "s1", Agent: "claude", Reason: "nothing says otherwise", Expires: time.Now().Add(time.Minute),
		Action:    bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "git push", Args: []string{"git", "push"}, Session: "s1"},
		Suggested: bawn.Ask,
	}
	for _, f := range change {
		f(&q)
	}
	out := make(chan bawn.Answer, 1)
	go func() {
		a, err := r.queue.Ask(context.WithoutCancel(t.Context()), q)
		if err != nil {
			a = bawn.Answer{Why: err.Error()}
		}
		out <- a
	}()
	testenv.Until(t, "the question", func() bool {
		list, err := r.queue.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list, func(one approval.Record) bool { return one.ID == q.ID })
	})
	return q.ID, out
}

// A terminal is a Sessions with one session that echoes.
type terminal struct {
	mu     sync.Mutex
	keys   chan string
	sizes  []string
	killed []string
	closed int
}

func (s *terminal) List(context.Context, bool) ([]*bawnv1.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []*bawnv1.Session{{Id: "s1", Alive: len(s.killed) == 0}}, nil
}

func (s *terminal) Kill(_ context.Context, id string) error {
	if id != "s1" {
		return ErrNoSession
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = append(s.killed, id)
	return nil
}

func (s *terminal) Attach(_ context.Context, id string, _ bool) (View, error) {
	if id != "s1" {
		return nil, ErrNoSession
	}
	return &echo{s: s, gone: make(chan struct{})}, nil
}

type echo struct {
	s    *terminal
	gone chan struct{}
	once sync.Once
}

func (e *echo) Next() (*bawnv1.SessionServiceAttachResponse, error) {
	select {
	case text := <-e.s.keys:
		if text == "exit" {
			return nil, io.EOF
		}
		return &bawnv1.SessionServiceAttachResponse{Output: []byte("> " + text)}, nil
	case <-e.gone:
		return nil, errors.New("closed")
	}
}

func (e *echo) Input(keys []byte) error { e.s.keys <- string(keys); return nil }

func (e *echo) Resize(rows, columns uint16) error {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	e.s.sizes = append(e.s.sizes, strconv.Itoa(int(rows))+"x"+strconv.Itoa(int(columns)))
	return nil
}

func (e *echo) Close() error {
	e.once.Do(func() { close(e.gone) })
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	e.s.closed++
	return nil
}
