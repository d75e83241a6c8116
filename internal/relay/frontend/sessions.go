package frontend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/relay/api"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// sessions are those of the registry, with the audit log's record of them.
type sessions struct {
	dir  string
	flow *flow
}

var _ api.Sessions = (*sessions)(nil)

func newSessions(runtime, auditDir string) *sessions {
	return &sessions{dir: runtime, flow: &flow{dir: auditDir}}
}

// List is api.Sessions'.
func (s *sessions) List(_ context.Context, all bool) ([]*bawnv1.Session, error) {
	entries, err := attach.List(s.dir)
	if err != nil {
		return nil, err
	}
	s.flow.update(time.Now(), entries)
	var out []*bawnv1.Session
	for _, e := range below(entries) {
		if all || e.State == attach.Running {
			out = append(out, s.show(e))
		}
	}
	return out, nil
}

// below returns parents before their children. A circle of parents is not
// followed: its members come as they stand.
func below(entries []attach.Entry) []attach.Entry {
	placed := map[string]bool{}
	known := map[string]bool{}
	for _, e := range entries {
		known[e.ID] = true
	}
	var out []attach.Entry
	for left := entries; len(left) > 0; {
		var later []attach.Entry
		for _, e := range left {
			if known[e.Parent] && !placed[e.Parent] {
				later = append(later, e)
				continue
			}
			placed[e.ID] = true
			out = append(out, e)
		}
		if len(later) == len(left) {
			return append(out, later...)
		}
		left = later
	}
	return out
}

func (s *sessions) show(e attach.Entry) *bawnv1.Session {
	traffic := s.flow.of(e.ID)
	out := &bawnv1.Session{
		Id: api.Line(e.ID), Parent: api.Line(e.Parent), Agent: api.Line(e.Agent), Command: api.Line(strings.Join(e.Argv, " ")), Dir: api.Line(e.Workspace), Mode: api.Line(e.Mode),
		Provider: api.Line(e.Provider), Started: timestamppb.New(e.Started), Alive: e.State == attach.Running, Terminal: e.Hosted && e.State == attach.Running,
		Viewers: int32(e.Viewers), Split: len(e.Zones) > 0, Enforced: traffic.enforced,
	}
	if len(out.Enforced) == 0 {
		out.Enforced = []*bawnv1.Enforced{{Name: "network", How: api.Line(e.Network)}}
		for _, name := range e.InPart {
			out.Enforced = append(out.Enforced, &bawnv1.Enforced{Name: api.Line(name), Partly: true})
		}
	}
	if out.Alive {
		out.Connections = traffic.connections()
	}
	return out
}

// Kill is api.Sessions'. Children end after their parents have been told.
func (s *sessions) Kill(_ context.Context, id string) error {
	entries, err := attach.List(s.dir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(entries, func(e attach.Entry) bool { return e.ID == id && e.State == attach.Running })
	if i < 0 {
		return api.ErrNoSession
	}
	doomed := map[string]bool{id: true}
	for _, e := range below(entries) {
		if !doomed[e.ID] && !doomed[e.Parent] || e.State != attach.Running {
			continue
		}
		doomed[e.ID] = true
		if told := attach.Signal(s.dir, e, "TERM"); told != nil && !errors.Is(told, attach.ErrNotRunning) {
			err = errors.Join(err, fmt.Errorf("session %q: %w", e.ID, told))
		}
	}
	return err
}

// Attach is api.Sessions'.
func (s *sessions) Attach(_ context.Context, id string, readOnly bool) (api.View, error) {
	c, err := attach.Dial(s.dir, id, readOnly)
	var unknown *attach.NotFoundError
	if errors.As(err, &unknown) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, api.ErrNoSession
	}
	if err != nil {
		return nil, err
	}
	return &view{c: c}, nil
}

// A view is an attach.Client as the API wants it.
type view struct {
	c     *attach.Client
	ended bool
}

// Next is api.View's.
func (v *view) Next() (*bawnv1.SessionServiceAttachResponse, error) {
	for !v.ended {
		e, err := v.c.Next()
		switch {
		case errors.Is(err, attach.ErrHostGone):
			v.ended = true
			return &bawnv1.SessionServiceAttachResponse{Ended: &bawnv1.Ended{Exit: 137, Why: api.Line(err.Error())}}, nil
		case err != nil:
			return nil, err
		case e.Exit != nil:
			v.ended = true
			return &bawnv1.SessionServiceAttachResponse{Ended: &bawnv1.Ended{Exit: int32(e.Exit.Code)}}, nil
		case len(e.Output) > 0 || e.Anew:
			return &bawnv1.SessionServiceAttachResponse{Output: slices.Clone(e.Output), Anew: e.Anew}, nil
		case e.Notice != "":
			return &bawnv1.SessionServiceAttachResponse{Notice: api.Line(e.Notice)}, nil
		}
	}
	return nil, io.EOF
}

// Input is api.View's.
func (v *view) Input(keys []byte) error { return v.c.Input(keys) }

// Resize is api.View's.
func (v *view) Resize(rows, columns uint16) error {
	return v.c.Resize(attach.Size{Rows: rows, Cols: columns})
}

// Close is api.View's.
func (v *view) Close() error { return v.c.Close() }
