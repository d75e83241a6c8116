package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/bawn-dev/bawn"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// Sessions are those of this user. Texts in what they return are shown as
// they are: an implementation escapes what guests wrote, see Line.
type Sessions interface {
	// List returns the sessions, parents first; with all also those that ended.
	List(ctx context.Context, all bool) ([]*bawnv1.Session, error)
	// Kill ends a session and its children. It returns ErrNoSession if no session
	// has the ID.
	Kill(ctx context.Context, id string) error
	// Attach opens a view of a session's terminal. It returns ErrNoSession if no
	// session with the ID can be attached to.
	Attach(ctx context.Context, id string, readOnly bool) (View, error)
}

// A View is a session's terminal as one viewer sees it.
type View interface {
	// Next returns what comes next: output, a notice, the end. io.EOF after it.
	Next() (*bawnv1.SessionServiceAttachResponse, error)
	Input(keys []byte) error
	Resize(rows, columns uint16) error
	Close() error
}

// ErrNoSession says that there is no such session, or that it can't be reached.
var ErrNoSession = errors.New("there is no such session, or it can't be attached to; \"bawn ps\" lists those that can")

// Line makes untrusted text fit to be shown as one line.
func Line(s string) string { return line(s) }

// Limits of terminals.
const (
	maxKeys  = 64 << 10
	maxSide  = 1000
	maxViews = 200
	poll     = time.Second // how soon a change of the sessions is seen
)

// views are the terminals that are attached to, by the secret of the view.
type views struct {
	mu   sync.Mutex
	open map[string]openView
}

type openView struct {
	View
	caller   Caller
	readOnly bool
}

// add enters a view; ok is false where there are too many.
func (v *views) add(one openView) (id string, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.open) >= maxViews {
		return "", false
	}
	if v.open == nil {
		v.open = map[string]openView{}
	}
	id = rand.Text()
	v.open[id] = one
	return id, true
}

// get returns a view that the caller may type into.
func (v *views) get(id string, c Caller) (View, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	one, ok := v.open[id]
	switch {
	case !ok || one.caller.Device != c.Device:
		return nil, connect.NewError(connect.CodeNotFound, errors.New("there is no such view; attach first"))
	case one.readOnly:
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("this view is one to look at only"))
	}
	return one.View, nil
}

func (v *views) drop(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.open, id)
}

// sessions shows sessions and their terminals.
type sessions struct{ *API }

var _ bawnv1connect.SessionServiceHandler = (*sessions)(nil)

func (s *sessions) list(ctx context.Context, all bool) ([]*bawnv1.Session, error) {
	if s.o.Sessions == nil {
		return nil, missing("sessions")
	}
	out, err := s.o.Sessions.List(ctx, all)
	return out, inside(err)
}

// List is the service's.
func (s *sessions) List(ctx context.Context, m *bawnv1.SessionServiceListRequest) (*bawnv1.SessionServiceListResponse, error) {
	out, err := s.list(ctx, m.GetAll())
	return &bawnv1.SessionServiceListResponse{Sessions: out}, err
}

// Watch is the service's.
func (s *sessions) Watch(ctx context.Context, _ *bawnv1.SessionServiceWatchRequest, to *connect.ServerStream[bawnv1.SessionServiceWatchResponse]) error {
	tick := time.NewTicker(min(poll, s.o.Beat))
	defer tick.Stop()
	var last *bawnv1.SessionServiceWatchResponse
	var sent time.Time
	for {
		now, err := s.list(ctx, true)
		if err != nil {
			return err
		}
		m := &bawnv1.SessionServiceWatchResponse{Changed: true, Sessions: now}
		switch {
		case !proto.Equal(m, last):
			last, sent = m, time.Now()
			err = to.Send(m)
		case time.Since(sent) >= s.o.Beat:
			sent = time.Now()
			err = to.Send(&bawnv1.SessionServiceWatchResponse{})
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return inside(ctx.Err())
		case <-tick.C:
		}
	}
}

// Kill is the service's.
func (s *sessions) Kill(ctx context.Context, m *bawnv1.SessionServiceKillRequest) (*bawnv1.SessionServiceKillResponse, error) {
	if s.o.Sessions == nil {
		return nil, missing("sessions")
	}
	c, _ := callerOf(ctx)
	if err := s.record(ctx, c, "kill", line(m.GetId()), bawn.Allow, "a human ends the session"); err != nil {
		return nil, err
	}
	return &bawnv1.SessionServiceKillResponse{}, known(s.o.Sessions.Kill(ctx, m.GetId()))
}

// known tells the caller that there is no such session.
func known(err error) error {
	if errors.Is(err, ErrNoSession) {
		return connect.NewError(connect.CodeNotFound, ErrNoSession)
	}
	return inside(err)
}

// Attach is the service's.
func (s *sessions) Attach(ctx context.Context, m *bawnv1.SessionServiceAttachRequest, to *connect.ServerStream[bawnv1.SessionServiceAttachResponse]) error {
	c, _ := callerOf(ctx)
	if s.o.Sessions == nil {
		return missing("sessions")
	}
	if c.ReadOnly && !m.GetReadOnly() {
		return s.refuse(ctx, c, bawnv1connect.SessionServiceAttachProcedure)
	}
	if err := s.record(ctx, c, "attach", line(m.GetId()), bawn.Allow, fmt.Sprintf("a human attaches to the terminal, read-only %v", m.GetReadOnly())); err != nil {
		return err
	}
	view, err := s.o.Sessions.Attach(ctx, m.GetId(), m.GetReadOnly())
	if err != nil {
		return known(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = view.Close() }) // wakes Next; the view is only looked through
	defer stop()
	defer view.Close()
	id, ok := s.views.add(openView{view, c, m.GetReadOnly()})
	if !ok {
		return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("more than %d terminals are attached to", maxViews))
	}
	defer s.views.drop(id)
	if rows, columns := m.GetRows(), m.GetColumns(); !m.GetReadOnly() && side(rows) && side(columns) {
		if err := view.Resize(uint16(rows), uint16(columns)); err != nil {
			return inside(err)
		}
	}
	if err := to.Send(&bawnv1.SessionServiceAttachResponse{View: id}); err != nil {
		return err
	}
	return s.show(ctx, view, to)
}

// A scene is what a view showed, or why it shows nothing more.
type scene struct {
	m   *bawnv1.SessionServiceAttachResponse
	err error
}

// show sends what the view shows until it ends.
func (s *sessions) show(ctx context.Context, view View, to *connect.ServerStream[bawnv1.SessionServiceAttachResponse]) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	scenes := make(chan scene)
	go func() {
		for {
			m, err := view.Next()
			select {
			case scenes <- scene{m, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	beat := time.NewTicker(s.o.Beat)
	defer beat.Stop()
	for {
		m := &bawnv1.SessionServiceAttachResponse{}
		select {
		case <-ctx.Done():
			return inside(ctx.Err())
		case <-beat.C:
		case one := <-scenes:
			if errors.Is(one.err, io.EOF) {
				return nil
			}
			if one.err != nil {
				return inside(one.err)
			}
			m = one.m
		}
		if err := to.Send(m); err != nil {
			return err
		}
	}
}

func side(n uint32) bool { return n >= 1 && n <= maxSide }

// Send is the service's.
func (s *sessions) Send(ctx context.Context, m *bawnv1.SessionServiceSendRequest) (*bawnv1.SessionServiceSendResponse, error) {
	c, _ := callerOf(ctx)
	view, err := s.views.get(m.GetView(), c)
	if err != nil {
		return nil, err
	}
	if len(m.GetData()) > maxKeys {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%d bytes at once; want at most %d", len(m.GetData()), maxKeys))
	}
	return &bawnv1.SessionServiceSendResponse{}, inside(view.Input(m.GetData()))
}

// Resize is the service's.
func (s *sessions) Resize(ctx context.Context, m *bawnv1.SessionServiceResizeRequest) (*bawnv1.SessionServiceResizeResponse, error) {
	c, _ := callerOf(ctx)
	view, err := s.views.get(m.GetView(), c)
	if err != nil {
		return nil, err
	}
	if !side(m.GetRows()) || !side(m.GetColumns()) {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%d rows and %d columns; want 1 to %d each", m.GetRows(), m.GetColumns(), maxSide))
	}
	return &bawnv1.SessionServiceResizeResponse{}, inside(view.Resize(uint16(m.GetRows()), uint16(m.GetColumns())))
}
