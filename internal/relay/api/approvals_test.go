package api

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/testenv"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// TestFiftyApproversRace (P9): of fifty who answer each question at once, over
// HTTP, exactly one is first, and everybody is told the same.
func TestFiftyApproversRace(t *testing.T) {
	const approvers, questions = 50, 20
	r := newRig(t)
	ids, answers := make([]string, questions), make([]<-chan bawn.Answer, questions)
	for i := range ids {
		ids[i], answers[i] = r.ask(t, func(q *approval.Question) { q.Action.Resource = fmt.Sprint("make ", i) })
	}
	var firsts [questions]atomic.Int32
	var said [questions]sync.Map
	var all sync.WaitGroup
	for n := range approvers {
		c := r.approvals(Caller{Name: fmt.Sprint("web:", n), Device: fmt.Sprint(n)})
		all.Go(func() {
			for i, id := range ids {
				verdict := bawnv1.Verdict_VERDICT_ALLOW
				if n%2 == 0 {
					verdict = bawnv1.Verdict_VERDICT_DENY
				}
				m, err := c.Answer(t.Context(), &bawnv1.ApprovalServiceAnswerRequest{Id: id, Verdict: verdict})
				if err != nil {
					t.Error(err)
					return
				}
				if m.GetFirst() {
					firsts[i].Add(1)
				}
				said[i].Store(m.GetApproval().GetAnswer().GetBy(), true)
			}
		})
	}
	all.Wait()
	for i := range ids {
		a, names := <-answers[i], 0
		said[i].Range(func(by, _ any) bool {
			names++
			if by != a.By {
				t.Errorf("question %d was answered by %q; somebody was told %q", i, a.By, by)
			}
			return true
		})
		if n := firsts[i].Load(); n != 1 || names != 1 {
			t.Errorf("question %d: %d were first, %d names", i, n, names)
		}
	}
}

// TestAnswer: how a question can be answered, and how not.
func TestAnswer(t *testing.T) {
	r := newRig(t)
	c := r.approvals(phone)
	for name, one := range map[string]struct {
		m    *bawnv1.ApprovalServiceAnswerRequest
		code connect.Code
	}{
		"no verdict":            {&bawnv1.ApprovalServiceAnswerRequest{}, connect.CodeInvalidArgument},
		"ask":                   {&bawnv1.ApprovalServiceAnswerRequest{Verdict: bawnv1.Verdict_VERDICT_ASK}, connect.CodeInvalidArgument},
		"an unknown verdict":    {&bawnv1.ApprovalServiceAnswerRequest{Verdict: 99}, connect.CodeInvalidArgument},
		"an unknown scope":      {&bawnv1.ApprovalServiceAnswerRequest{Verdict: bawnv1.Verdict_VERDICT_ALLOW, Scope: 99}, connect.CodeInvalidArgument},
		"a long reason":         {&bawnv1.ApprovalServiceAnswerRequest{Verdict: bawnv1.Verdict_VERDICT_DENY, Why: strings.Repeat("x", maxWhy+1)}, connect.CodeInvalidArgument},
		"always without a rule": {&bawnv1.ApprovalServiceAnswerRequest{Verdict: bawnv1.Verdict_VERDICT_ALLOW, Scope: bawnv1.Scope_SCOPE_ALWAYS}, connect.CodeFailedPrecondition},
	} {
		id, _ := r.ask(t, func(q *approval.Question) { q.Action.Resource = name })
		one.m.Id = id
		if _, err := c.Answer(t.Context(), one.m); connect.CodeOf(err) != one.code {
			t.Errorf("%s: %v; want %v", name, err, one.code)
		}
		if m, err := c.Get(t.Context(), &bawnv1.ApprovalServiceGetRequest{Id: id}); err != nil || m.GetApproval().GetState() != bawnv1.ApprovalState_APPROVAL_STATE_PENDING {
			t.Errorf("%s: %v %v; want it pending still", name, m.GetApproval().GetState(), err)
		}
	}
	if _, err := c.Answer(t.Context(), &bawnv1.ApprovalServiceAnswerRequest{Id: approval.NewID(), Verdict: bawnv1.Verdict_VERDICT_ALLOW}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("of no question: %v; want not_found", err)
	}
	id, answer := r.ask(t)
	if m, err := c.Answer(t.Context(), &bawnv1.ApprovalServiceAnswerRequest{Id: id, Verdict: bawnv1.Verdict_VERDICT_DENY, Scope: bawnv1.Scope_SCOPE_SESSION, Why: "not now"}); err != nil || !m.GetFirst() {
		t.Fatalf("%v %v", m, err)
	}
	if a := <-answer; a.Verdict != bawn.Deny || a.Scope != bawn.ForSession || a.By != "web:phone" || a.Why != "not now" {
		t.Errorf("the asker got %+v", a)
	}
}

// TestTooLate: an answer after the time is told what became of the question.
func TestTooLate(t *testing.T) {
	r := newRig(t)
	id, answer := r.ask(t, func(q *approval.Question) { q.Expires = time.Now().Add(2 * time.Second) })
	<-answer
	m, err := r.approvals(human).Answer(t.Context(), &bawnv1.ApprovalServiceAnswerRequest{Id: id, Verdict: bawnv1.Verdict_VERDICT_ALLOW})
	if err != nil || m.GetFirst() || m.GetApproval().GetState() != bawnv1.ApprovalState_APPROVAL_STATE_EXPIRED {
		t.Errorf("%v %v; want expired", m, err)
	}
}

// TestWatch: what is pending comes first, then changes; in between the stream
// shows that it is alive.
func TestWatch(t *testing.T) {
	r := newRig(t)
	id, _ := r.ask(t)
	ctx := testenv.Context(t)
	s, err := r.approvals(viewer).Watch(ctx, &bawnv1.ApprovalServiceWatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	next := func() *bawnv1.Approval {
		for s.Receive() {
			if a := s.Msg().GetApproval(); a != nil {
				return a
			}
		}
		t.Fatal(s.Err())
		return nil
	}
	if !s.Receive() || s.Msg().GetApproval() != nil {
		t.Errorf("no sign of life first, but %v, %v", s.Msg(), s.Err())
	}
	if a := next(); a.GetId() != id || a.GetState() != bawnv1.ApprovalState_APPROVAL_STATE_PENDING {
		t.Errorf("first %v", a)
	}
	if !s.Receive() || s.Msg().GetApproval() != nil {
		t.Fatalf("no sign of life, but %v, %v", s.Msg(), s.Err())
	}
	if _, err := r.approvals(phone).Answer(ctx, &bawnv1.ApprovalServiceAnswerRequest{Id: id, Verdict: bawnv1.Verdict_VERDICT_DENY}); err != nil {
		t.Fatal(err)
	}
	if a := next(); a.GetState() != bawnv1.ApprovalState_APPROVAL_STATE_ANSWERED || a.GetAnswer().GetBy() != "web:phone" {
		t.Errorf("then %v", a)
	}
	list, err := r.approvals(viewer).List(ctx, &bawnv1.ApprovalServiceListRequest{})
	if err != nil || len(list.GetApprovals()) != 1 || list.GetApprovals()[0].GetState() != bawnv1.ApprovalState_APPROVAL_STATE_ANSWERED {
		t.Errorf("the list with what was settled: %v %v", list, err)
	}
}

// TestTextIsFitToBeShown: nothing that a guest wrote acts on a terminal or a
// browser, or hides.
func TestTextIsFitToBeShown(t *testing.T) {
	const evil = "a\x1b[2Jb\u202ec\x00d"
	r := newRig(t)
	id, _ := r.ask(t, func(q *approval.Question) {
		q.Agent, q.Reason, q.Justification, q.Canonical = evil, evil, "one\n"+evil, "one\n"+evil
		q.Action.Resource, q.Action.Args, q.Action.Dir, q.Action.Agent = evil, []string{evil}, "/"+evil, evil
		q.Covers, q.NoAlways, q.Contains, q.SuggestedWhy = []string{evil}, evil, evil, evil
	})
	m, err := r.approvals(human).Get(t.Context(), &bawnv1.ApprovalServiceGetRequest{Id: id})
	if err != nil {
		t.Fatal(err)
	}
	if text := m.String(); strings.ContainsAny(text, "\x1b\u202e\x00") || strings.Contains(text, `\x1b`) && !strings.Contains(text, `\\x1b`) {
		t.Errorf("%q", text)
	}
	if a := m.GetApproval(); a.GetCanonical() != "one\n"+`a\x1b[2Jb\u202ec\x00d` || a.GetAction().GetArgs()[0] != `a\x1b[2Jb\u202ec\x00d` {
		t.Errorf("canonical %q, args %q", a.GetCanonical(), a.GetAction().GetArgs())
	}
}
