package web_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// shelf is one copy whose session is over, with hostile names and lines, and one of a
// session that runs.
type shelf struct {
	bawnv1connect.UnimplementedCopyServiceHandler
	f *fixture
}

const (
	copyID    = "s4dddddddddddddddddddddddd"
	busyID    = "s5eeeeeeeeeeeeeeeeeeeeeeee"
	heldName  = ".vscode/<b>\u202e.json"
	heldWhy   = "the host would execute or obey it (protected:.vscode)"
	copyTouch = `{"publicKey":{"rpId":"localhost","userVerification":"required","challenge":"`
)

func (s shelf) List(context.Context, *v1.CopyServiceListRequest) (*v1.CopyServiceListResponse, error) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	out := &v1.CopyServiceListResponse{Copies: []*v1.Copy{{Session: busyID, Name: "docs", Agent: "claude", Dir: "/home/anna/blog", Began: timestamppb.New(time.Now().Add(-time.Minute)), Runs: true, Files: 1}}}
	if !s.f.discarded {
		out.Copies = append(out.Copies, &v1.Copy{Session: copyID, Name: "fix", Agent: "opencode <b>", Dir: "/home/anna/shop", Began: timestamppb.New(time.Now().Add(-time.Hour)), Files: 1204})
	}
	return out, nil
}

func (s shelf) Files(_ context.Context, r *v1.CopyServiceFilesRequest) (*v1.CopyServiceFilesResponse, error) {
	changed := &v1.ChangedFile{Id: "f1", Name: hostileName, Kind: v1.ChangeKind_CHANGE_KIND_MODIFIED, OldMode: "100644", NewMode: "100644", Counted: true, Added: 2, Deleted: 1}
	if r.GetSession() == busyID {
		return &v1.CopyServiceFilesResponse{Listing: "l2", Files: []*v1.ChangedFile{changed}}, nil
	}
	return &v1.CopyServiceFilesResponse{Listing: "l1", More: 1200, Commits: []*v1.Step{{What: "commits", Name: "refs/heads/main", Detail: "at refs/bawn/x"}}, Files: []*v1.ChangedFile{
		{Id: "h1", Name: heldName, Kind: v1.ChangeKind_CHANGE_KIND_ADDED, NewMode: "100644", NewSize: 9, Counted: true, Added: 1, Held: heldWhy},
		{Id: "x1", Name: "run.sock", Stays: "a device or a socket"},
		changed,
		{Id: "f2", Name: "notes.md", Kind: v1.ChangeKind_CHANGE_KIND_ADDED, NewMode: "100644", NewSize: 4, Counted: true, Added: 1},
	}}, nil
}

func (s shelf) Lines(ctx context.Context, r *v1.CopyServiceLinesRequest) (*v1.CopyServiceLinesResponse, error) {
	if r.GetFile() != "f1" && r.GetFile() != "h1" {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no such file"))
	}
	l, err := past{}.Lines(ctx, &v1.UndoServiceLinesRequest{File: "f1"})
	return &v1.CopyServiceLinesResponse{Hunks: l.GetHunks(), Cut: l.GetCut()}, err
}

// planOf names what was chosen.
func planOf(s *v1.Selection) string {
	plan := "all"
	if len(s.GetFiles()) > 0 {
		plan = strings.Join(s.GetFiles(), ",")
	}
	if s.GetHeld() {
		plan = "held " + plan
	}
	return plan
}

func (s shelf) Preview(_ context.Context, r *v1.CopyServicePreviewRequest) (*v1.CopyServicePreviewResponse, error) {
	m := r.GetSelection()
	if m.GetSession() != copyID || m.GetListing() != "l1" {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("look again"))
	}
	return &v1.CopyServicePreviewResponse{
		Steps:     []*v1.Step{{What: "change", Name: hostileName}, {What: "add", Name: "notes.md"}},
		Conflicts: []*v1.Step{{What: "conflict", Name: "README.md", Detail: "you have changed it since the session began; the session's stays in the copy"}},
		Plan:      planOf(m), Ceremony: "c4", Options: copyTouch + challenge() + `"}}`,
	}, nil
}

func (s shelf) Apply(_ context.Context, r *v1.CopyServiceApplyRequest) (*v1.CopyServiceApplyResponse, error) {
	if r.GetPlan() != planOf(r.GetSelection()) || r.GetCeremony() != "c4" || !strings.Contains(r.GetCredential(), `"authenticatorData"`) {
		return nil, connect.NewError(connect.CodePermissionDenied, errNoPasskey)
	}
	first := false
	s.f.do(func() {
		first = len(s.f.applied) == 0
		s.f.applied = append(s.f.applied, r.GetPlan())
	})
	if first {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("what the human has seen is not what is there now; look again"))
	}
	return &v1.CopyServiceApplyResponse{Done: 2, Before: "20261127-093015.120000-k3xr"}, nil
}

func (s shelf) PreviewDiscard(context.Context, *v1.CopyServicePreviewDiscardRequest) (*v1.CopyServicePreviewDiscardResponse, error) {
	return &v1.CopyServicePreviewDiscardResponse{Ceremony: "c5", Options: copyTouch + challenge() + `"}}`}, nil
}

func (s shelf) Discard(_ context.Context, r *v1.CopyServiceDiscardRequest) (*v1.CopyServiceDiscardResponse, error) {
	if r.GetSession() != copyID || r.GetListing() != "l1" || r.GetCeremony() != "c5" || !strings.Contains(r.GetCredential(), `"authenticatorData"`) {
		return nil, connect.NewError(connect.CodePermissionDenied, errNoPasskey)
	}
	s.f.do(func() { s.f.discarded = true })
	return &v1.CopyServiceDiscardResponse{}, nil
}
