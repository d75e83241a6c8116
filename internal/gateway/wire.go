package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A transport is the way to a server.
type transport struct {
	mcp.Transport
	b *backend
	w *wire // once connected
}

func (t *transport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.w = &wire{Connection: c, b: t.b, lists: map[jsonrpc.ID]bool{}, sent: map[jsonrpc.ID]*sent{}}
	return t.w, nil
}

// A wire extracts a server's progress notes in their order. The SDK could
// deliver a result before an earlier note. It keeps the list of a server's
// tools as it came, including unknown members. And it carries calls past the
// SDK, which would take each answer apart several times and hand it from
// goroutine to goroutine.
type wire struct {
	mcp.Connection
	b *backend

	mu    sync.Mutex
	lists map[jsonrpc.ID]bool        // requests for a page of tools
	tools []json.RawMessage          // of the pages so far
	meta  map[string]json.RawMessage // which the SDK puts into each request
	sent  map[jsonrpc.ID]*sent       // calls without an answer yet
	last  float64                    // number of them
	err   error                      // why nothing is read any more
}

// firstID is far from the IDs that the SDK gives its own requests, from 1.
const firstID = 1 << 40

// A sent is a request of ours that is under way.
type sent struct {
	w      *wire
	id     jsonrpc.ID
	answer chan *jsonrpc.Response // has room for one
}

// errSilent says that the connection ended before the answer.
var errSilent = errors.New("its end of the connection is closed")

// send sends a request with these parameters, and whatever the SDK adds to each;
// ctx says until when.
func (w *wire) send(ctx context.Context, method string, params map[string]any, token string) (*sent, error) {
	w.mu.Lock()
	if err := w.err; err != nil {
		w.mu.Unlock()
		return nil, err
	}
	meta := w.meta
	w.last++
	id, err := jsonrpc.MakeID(firstID + w.last)
	s := &sent{w, id, make(chan *jsonrpc.Response, 1)}
	w.sent[id] = s
	w.mu.Unlock()
	if err == nil {
		err = w.request(ctx, id, method, params, meta, token)
	}
	if err != nil {
		s.forget()
		return nil, err
	}
	return s, nil
}

func (w *wire) request(ctx context.Context, id jsonrpc.ID, method string, params map[string]any, meta map[string]json.RawMessage, token string) error {
	if token != "" {
		meta = maps.Clone(meta)
		if meta == nil {
			meta = map[string]json.RawMessage{}
		}
		meta[progressToken] = json.RawMessage(printed(token))
	}
	if len(meta) > 0 {
		params["_meta"] = meta
	}
	text, err := encoded(params)
	if err != nil {
		return err
	}
	return w.put(ctx, &jsonrpc.Request{ID: id, Method: method, Params: text})
}

// put writes a message. A server that has read a part of one gets no other.
func (w *wire) put(ctx context.Context, m jsonrpc.Message) error {
	err := w.Connection.Write(ctx, m)
	if errors.Is(err, errUnread) {
		w.b.unread(w)
	}
	return err
}

func (s *sent) forget() {
	s.w.mu.Lock()
	delete(s.w.sent, s.id)
	s.w.mu.Unlock()
}

// result is what the answer says.
func (s *sent) result(r *jsonrpc.Response) (json.RawMessage, error) {
	switch {
	case r == nil:
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		return nil, s.w.err
	case r.Error != nil:
		return nil, r.Error
	}
	return r.Result, nil
}

// giveUp takes the request back. The server is told, as soon as it reads.
func (s *sent) giveUp(why error) {
	s.forget()
	text, err := encoded(map[string]any{"requestId": s.id.Raw(), "reason": why.Error()})
	if err != nil {
		return
	}
	go func() {
		_ = s.w.put(context.Background(), &jsonrpc.Request{Method: "notifications/cancelled", Params: text}) // a server that is gone needs no message
	}()
}

// progressToken is the member of _meta under which progress is told.
const progressToken = "progressToken"

// Write is for the SDK.
func (w *wire) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Request); ok && strings.HasSuffix(r.Method, "/list") {
		w.listing(r)
	}
	return w.put(ctx, m)
}

// listing notes a request of the SDK's for a list, and what it adds to requests.
func (w *wire) listing(r *jsonrpc.Request) {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(r.Params, &p) // the SDK wrote it
	delete(p.Meta, progressToken)
	if len(p.Meta) > 0 { // each request says the level, since 2026-07-28
		p.Meta[mcp.MetaKeyLogLevel] = json.RawMessage(`"` + serverLevel + `"`)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meta = p.Meta
	if r.Method == "tools/list" {
		w.lists[r.ID] = true
	}
}

// Read is for the SDK: what is not said in answer to a call.
func (w *wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := w.Connection.Read(ctx)
		if err != nil {
			w.silent(err)
			return m, err
		}
		switch m := m.(type) {
		case *jsonrpc.Response:
			if w.answered(m) {
				continue
			}
			w.keep(m)
		case *jsonrpc.Request:
			if !m.IsCall() && w.told(m) {
				continue
			}
		}
		return m, nil
	}
}

// told takes what belongs to a call and has to come before its answer, which the SDK does not
// see.
func (w *wire) told(m *jsonrpc.Request) bool {
	switch m.Method {
	case "notifications/progress":
		var p mcp.ProgressNotificationParams
		if json.Unmarshal(m.Params, &p) == nil { // else it tells nobody anything
			w.b.progressed(&p)
		}
	case "notifications/message":
		var p mcp.LoggingMessageParams
		if json.Unmarshal(m.Params, &p) == nil {
			w.b.logged(&p)
		}
	default:
		return false
	}
	return true
}

// answered hands an answer to whose call it is of.
func (w *wire) answered(r *jsonrpc.Response) bool {
	w.mu.Lock()
	s := w.sent[r.ID]
	delete(w.sent, r.ID)
	w.mu.Unlock()
	if s != nil {
		s.answer <- r
	}
	return s != nil
}

// silent ends the calls that are under way: no answer comes any more.
func (w *wire) silent(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errors.Join(errSilent, err)
	for id, s := range w.sent {
		delete(w.sent, id)
		s.answer <- nil
	}
}

// keep keeps a page of tools.
func (w *wire) keep(r *jsonrpc.Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.lists[r.ID] {
		return
	}
	delete(w.lists, r.ID)
	var page struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if json.Unmarshal(r.Result, &page) == nil { // else the SDK can't read it either
		w.tools = append(w.tools, page.Tools...)
	}
}

// take returns the tools that have been listed since it was called last.
func (w *wire) take() []json.RawMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.tools
	w.tools = nil
	return list
}
