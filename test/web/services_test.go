package web_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

var (
	errWrongCode = errors.New("this code is unknown, used or too old; run bawn pair again")
	errNoPasskey = errors.New("this is no passkey of this machine")
	errNoSession = errors.New("no such session")
	errNoAction  = errors.New("the action can't be read")
)

// approvals is the queue.
type approvals struct{ f *fixture }

func (a approvals) List(_ context.Context, r *v1.ApprovalServiceListRequest) (*v1.ApprovalServiceListResponse, error) {
	out := &v1.ApprovalServiceListResponse{}
	for _, q := range a.f.questions() {
		if !r.Pending || q.State == v1.ApprovalState_APPROVAL_STATE_PENDING {
			out.Approvals = append(out.Approvals, q)
		}
	}
	return out, nil
}

// questions returns copies: they are sent while others answer.
func (f *fixture) questions() []*v1.Approval {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*v1.Approval
	for _, q := range f.asked {
		out = append(out, proto.CloneOf(q))
	}
	return out
}

func (a approvals) Get(_ context.Context, r *v1.ApprovalServiceGetRequest) (*v1.ApprovalServiceGetResponse, error) {
	for _, q := range a.f.questions() {
		if q.Id == r.Id {
			return &v1.ApprovalServiceGetResponse{Approval: q}, nil
		}
	}
	return nil, connect.NewError(connect.CodeNotFound, errors.New("no such question"))
}

func (a approvals) Watch(ctx context.Context, _ *v1.ApprovalServiceWatchRequest, s *connect.ServerStream[v1.ApprovalServiceWatchResponse]) error {
	said := map[string]v1.ApprovalState{}
	if err := s.Send(&v1.ApprovalServiceWatchResponse{}); err != nil {
		return err
	}
	first := true
	return a.f.watch(ctx, func() error {
		for _, q := range a.f.questions() {
			before, known := said[q.Id]
			said[q.Id] = q.State
			if known && before == q.State || first && q.State != v1.ApprovalState_APPROVAL_STATE_PENDING {
				continue
			}
			if err := s.Send(&v1.ApprovalServiceWatchResponse{Approval: q}); err != nil {
				return err
			}
		}
		first = false
		return nil
	})
}

func (a approvals) Answer(_ context.Context, r *v1.ApprovalServiceAnswerRequest) (*v1.ApprovalServiceAnswerResponse, error) {
	first := a.f.answer(r, "the test's phone")
	for _, q := range a.f.questions() {
		if q.Id == r.Id {
			return &v1.ApprovalServiceAnswerResponse{Approval: q, First: first}, nil
		}
	}
	return nil, connect.NewError(connect.CodeNotFound, errors.New("no such question"))
}

// answer records an answer and reports whether it was the first.
func (f *fixture) answer(r *v1.ApprovalServiceAnswerRequest, by string) (first bool) {
	f.do(func() {
		f.answers = append(f.answers, r)
		for _, q := range f.asked {
			if q.Id == r.Id && q.State == v1.ApprovalState_APPROVAL_STATE_PENDING {
				q.State, first = v1.ApprovalState_APPROVAL_STATE_ANSWERED, true
				q.Answer = &v1.Answer{Verdict: r.Verdict, Scope: r.Scope, By: by, Why: r.Why, At: timestamppb.Now()}
			}
		}
	})
	return first
}

// sessions are two, one below the other.
type sessions struct{ f *fixture }

func twoSessions() []*v1.Session {
	return []*v1.Session{
		{Id: "s1aaaaaaaaaaaaaaaaaaaaaaaa", Agent: "qwen-code", Command: "qwen", Dir: "/home/anna/shop", Mode: "auto", Autonomy: "medium", Provider: "native",
			Started: timestamppb.New(time.Now().Add(-42 * time.Minute)), Alive: true, Terminal: true, Viewers: 1, Split: true,
			Enforced: []*v1.Enforced{
				{Name: "files", How: "writes only below /home/anna/shop, by mounts and Landlock"},
				{Name: "network", How: "by name: 6 hosts, the rest is refused"},
				{Name: "memory", How: "4 GB; swap is not limited here", Partly: true},
			},
			Connections: []*v1.Connection{{Host: "api.example.org:443", Opened: timestamppb.New(time.Now().Add(-95 * time.Second)), Sent: 18_432, Received: 2_410_000}}},
		{Id: "s2bbbbbbbbbbbbbbbbbbbbbbbb", Parent: "s1aaaaaaaaaaaaaaaaaaaaaaaa", Agent: "reviewer", Command: "reviewer --diff", Dir: "/home/anna/shop", Mode: "plan",
			Started: timestamppb.New(time.Now().Add(-3 * time.Minute)), Alive: true},
	}
}

func (s sessions) all() []*v1.Session {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	return slices.Clone(s.f.sessions)
}

func (s sessions) List(context.Context, *v1.SessionServiceListRequest) (*v1.SessionServiceListResponse, error) {
	return &v1.SessionServiceListResponse{Sessions: s.all()}, nil
}

func (s sessions) Watch(ctx context.Context, _ *v1.SessionServiceWatchRequest, out *connect.ServerStream[v1.SessionServiceWatchResponse]) error {
	return s.f.watch(ctx, func() error { return out.Send(&v1.SessionServiceWatchResponse{Changed: true, Sessions: s.all()}) })
}

func (s sessions) Kill(_ context.Context, r *v1.SessionServiceKillRequest) (*v1.SessionServiceKillResponse, error) {
	s.f.do(func() {
		s.f.killed = append(s.f.killed, r.Id)
		s.f.sessions = slices.DeleteFunc(slices.Clone(s.f.sessions), func(x *v1.Session) bool { return x.Id == r.Id })
	})
	return &v1.SessionServiceKillResponse{}, nil
}

// screen is output of a hostile guest: colours, a title, a link, a request for
// the clipboard, and markup.
const screen = "\x1b[38;2;240;180;90mtrue colour\x1b[0m\r\n\x1b[1;32m$ go test ./...\x1b[0m\r\nok  \tshop/cart\t0.41s\r\n\x1b]0;<script>alert(1)</script>\x07\x1b]8;;https://evil.invalid/\x07a link\x1b]8;;\x07\r\n\x1b]52;c;ZXZpbA==\x07<img src=//evil.invalid/x onerror=alert(1)>\r\n"

func (s sessions) Attach(ctx context.Context, r *v1.SessionServiceAttachRequest, out *connect.ServerStream[v1.SessionServiceAttachResponse]) error {
	for _, m := range []*v1.SessionServiceAttachResponse{{View: "v1"}, {Output: []byte(screen)}} {
		if err := out.Send(m); err != nil {
			return err
		}
	}
	said := 0
	return s.f.watch(ctx, func() error {
		s.f.mu.Lock()
		typed := s.f.typed[said:]
		s.f.mu.Unlock()
		said += len(typed)
		if len(typed) == 0 || r.ReadOnly {
			return nil
		}
		return out.Send(&v1.SessionServiceAttachResponse{Output: typed}) // as a terminal echoes
	})
}

func (s sessions) Send(_ context.Context, r *v1.SessionServiceSendRequest) (*v1.SessionServiceSendResponse, error) {
	s.f.do(func() { s.f.typed = append(s.f.typed, r.Data...) })
	return &v1.SessionServiceSendResponse{}, nil
}

func (s sessions) Resize(_ context.Context, r *v1.SessionServiceResizeRequest) (*v1.SessionServiceResizeResponse, error) {
	if r.View != "v1" || r.Rows == 0 || r.Columns == 0 {
		return nil, connect.NewError(connect.CodeNotFound, errNoSession)
	}
	return &v1.SessionServiceResizeResponse{}, nil
}

// log holds 120 records.
type log struct{ f *fixture }

const records = 120

func (l log) Query(_ context.Context, r *v1.AuditServiceQueryRequest) (*v1.AuditServiceQueryResponse, error) {
	l.f.do(func() { l.f.queries = append(l.f.queries, r) })
	from := uint64(records)
	if r.Before > 0 {
		from = r.Before - 1
	}
	out := &v1.AuditServiceQueryResponse{}
	for seq := from; seq > 0 && len(out.Records) < int(r.Limit); seq-- {
		out.Records = append(out.Records, recordOf(seq))
		out.Next = seq
	}
	if out.Next == 1 {
		out.Next = 0
	}
	return out, nil
}

func recordOf(seq uint64) *v1.Record {
	r := &v1.Record{Seq: seq, Id: fmt.Sprint("r", seq), Time: timestamppb.New(time.Now().Add(-time.Duration(records-seq) * 11 * time.Minute)), Session: "s1aaaaaaaaaaaaaaaaaaaaaaaa", Agent: "qwen-code",
		Kind: "command", Operation: "exec", Resource: fmt.Sprintf("go test ./cart -run Test%d", seq), Requested: v1.Verdict_VERDICT_ALLOW, Resolved: v1.Verdict_VERDICT_ALLOW,
		Source: "rule", Rule: "builtin:build", Mode: "auto", DurationMs: 412, Exit: proto.Int32(0), Details: map[string]string{"zone": "execution"}}
	if seq%7 == 0 {
		r.Kind, r.Operation, r.Resource, r.Resolved, r.Reason, r.Exit = "network", "connect", "telemetry.example.net:443", v1.Verdict_VERDICT_DENY, "no entry names this host", nil
	}
	return r
}

func (l log) Timeline(_ context.Context, r *v1.AuditServiceTimelineRequest) (*v1.AuditServiceTimelineResponse, error) {
	out := &v1.AuditServiceTimelineResponse{}
	for i := range r.Buckets {
		since := time.Now().Add(-time.Duration(r.Buckets-i) * 30 * time.Minute)
		out.Buckets = append(out.Buckets, &v1.Bucket{Since: timestamppb.New(since), Allowed: (i * 7) % 13, Denied: (i * 5) % 4, Other: i % 2})
	}
	return out, nil
}

func (l log) Verify(context.Context, *v1.AuditServiceVerifyRequest) (*v1.AuditServiceVerifyResponse, error) {
	return &v1.AuditServiceVerifyResponse{InOrder: true, Records: records, Hash: "9f2c"}, nil
}

// judge explains one line.
type judge struct{}

func (judge) Explain(_ context.Context, r *v1.PolicyServiceExplainRequest) (*v1.PolicyServiceExplainResponse, error) {
	if r.Action == "(" {
		return nil, connect.NewError(connect.CodeInvalidArgument, errNoAction)
	}
	return &v1.PolicyServiceExplainResponse{Verdict: "ask", Reason: "it rewrites the history of a branch", Rule: "builtin:git-force", Source: "builtin", Canonical: r.Action, Mode: "auto", Autonomy: "medium", Contained: r.Contained, Cwd: "/home/anna",
		Steps:        []*v1.ExplainedStep{{Stage: "rule", Verdict: "ask", Why: "builtin:git-force matches"}},
		Alternatives: []*v1.Alternative{{Verdict: "allow", Change: "without --force"}}}, nil
}
