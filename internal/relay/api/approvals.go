package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// maxHistory is how many settled questions are listed.
const maxHistory = 200

// maxWhy is how many bytes the reason of an answer may have.
const maxWhy = 1000

// approvals is the queue of questions.
type approvals struct{ *API }

var _ bawnv1connect.ApprovalServiceHandler = (*approvals)(nil)

// List is the service's.
func (s *approvals) List(ctx context.Context, m *bawnv1.ApprovalServiceListRequest) (*bawnv1.ApprovalServiceListResponse, error) {
	records, err := s.records(ctx, m.GetPending())
	if err != nil {
		return nil, inside(err)
	}
	out := &bawnv1.ApprovalServiceListResponse{}
	for _, r := range records {
		if m.GetSession() == "" || r.Session == m.GetSession() {
			out.Approvals = append(out.Approvals, approvalOf(r))
		}
	}
	return out, nil
}

// records returns what is pending and, unless only that is wanted, what was
// settled lately, the oldest first.
func (s *approvals) records(ctx context.Context, pending bool) ([]approval.Record, error) {
	waiting, err := s.o.Inbox.List(ctx)
	if err != nil || pending || s.o.History == nil {
		return waiting, err
	}
	past, err := s.o.History(ctx, s.o.Now().Add(time.Minute), maxHistory)
	if err != nil {
		return nil, err
	}
	past = slices.DeleteFunc(past, func(p approval.Record) bool {
		return slices.ContainsFunc(waiting, func(w approval.Record) bool { return w.ID == p.ID }) // settled in between
	})
	all := slices.Concat(past, waiting)
	slices.SortStableFunc(all, func(a, b approval.Record) int { return a.Asked.Compare(b.Asked) })
	return all, nil
}

// find returns one question; the error is not_found if no question has the ID.
func (s *approvals) find(ctx context.Context, id string) (approval.Record, error) {
	records, err := s.records(ctx, false)
	if err != nil {
		return approval.Record{}, inside(err)
	}
	i := slices.IndexFunc(records, func(r approval.Record) bool { return r.ID == id })
	if i < 0 {
		return approval.Record{}, connect.NewError(connect.CodeNotFound, approval.ErrUnknown)
	}
	return records[i], nil
}

// Get is the service's.
func (s *approvals) Get(ctx context.Context, m *bawnv1.ApprovalServiceGetRequest) (*bawnv1.ApprovalServiceGetResponse, error) {
	r, err := s.find(ctx, m.GetId())
	if err != nil {
		return nil, err
	}
	return &bawnv1.ApprovalServiceGetResponse{Approval: approvalOf(r)}, nil
}

// Watch is the service's.
func (s *approvals) Watch(ctx context.Context, _ *bawnv1.ApprovalServiceWatchRequest, to *connect.ServerStream[bawnv1.ApprovalServiceWatchResponse]) error {
	changes, err := s.o.Inbox.Watch(ctx)
	if err != nil {
		return inside(err)
	}
	beat := time.NewTicker(s.o.Beat)
	defer beat.Stop()
	m := &bawnv1.ApprovalServiceWatchResponse{} // the first shows that the stream works
	for {
		if err := to.Send(m); err != nil {
			return err
		}
		m = &bawnv1.ApprovalServiceWatchResponse{}
		select {
		case <-ctx.Done():
			return inside(ctx.Err())
		case <-beat.C:
		case r, ok := <-changes:
			if !ok {
				return connect.NewError(connect.CodeUnavailable, errors.New("the stream has ended; begin anew"))
			}
			m.Approval = approvalOf(r)
		}
	}
}

// Answer is the service's.
func (s *approvals) Answer(ctx context.Context, m *bawnv1.ApprovalServiceAnswerRequest) (*bawnv1.ApprovalServiceAnswerResponse, error) {
	a, err := answerOf(m)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	c, _ := callerOf(ctx)
	a.By, a.At = c.Name, s.o.Now()
	r, err := s.o.Inbox.Answer(ctx, m.GetId(), a)
	var other *approval.AnsweredError
	switch {
	case err == nil:
		return &bawnv1.ApprovalServiceAnswerResponse{Approval: approvalOf(r), First: true}, nil
	case errors.As(err, &other):
		return &bawnv1.ApprovalServiceAnswerResponse{Approval: approvalOf(other.Record)}, nil
	case errors.Is(err, approval.ErrExpired), errors.Is(err, approval.ErrWithdrawn):
		return s.late(ctx, m.GetId(), err)
	case errors.Is(err, approval.ErrUnknown):
		return nil, connect.NewError(connect.CodeNotFound, err)
	}
	return nil, connect.NewError(connect.CodeFailedPrecondition, err)
}

// late says what became of a question for which an answer came too late.
func (s *approvals) late(ctx context.Context, id string, why error) (*bawnv1.ApprovalServiceAnswerResponse, error) {
	r, err := s.find(ctx, id)
	if err == nil {
		return &bawnv1.ApprovalServiceAnswerResponse{Approval: approvalOf(r)}, nil
	}
	state := approval.Expired
	if errors.Is(why, approval.ErrWithdrawn) {
		state = approval.Withdrawn
	}
	return &bawnv1.ApprovalServiceAnswerResponse{Approval: &bawnv1.Approval{Id: line(id), State: states[state]}}, nil
}

// answerOf reads an answer. Only allow and deny are ones.
func answerOf(m *bawnv1.ApprovalServiceAnswerRequest) (bawn.Answer, error) {
	if v := m.GetVerdict(); v != bawnv1.Verdict_VERDICT_ALLOW && v != bawnv1.Verdict_VERDICT_DENY {
		return bawn.Answer{}, fmt.Errorf("verdict %q is no answer; want VERDICT_ALLOW or VERDICT_DENY", v)
	}
	scope, ok := scopes[m.GetScope()]
	if !ok && m.GetScope() != bawnv1.Scope_SCOPE_UNSPECIFIED {
		return bawn.Answer{}, fmt.Errorf("scope %q is invalid; want SCOPE_ONCE, SCOPE_SESSION or SCOPE_ALWAYS", m.GetScope())
	}
	if len(m.GetWhy()) > maxWhy {
		return bawn.Answer{}, fmt.Errorf("the reason has %d bytes; want at most %d", len(m.GetWhy()), maxWhy)
	}
	return bawn.Answer{Verdict: readVerdict(m.GetVerdict()), Scope: scope, Why: m.GetWhy()}, nil
}
