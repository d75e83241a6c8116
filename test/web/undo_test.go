package web_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// past is one session that is over, with hostile names and lines, and one that runs.
type past struct {
	bawnv1connect.UnimplementedUndoServiceHandler
	f *fixture
}

const overID = "s3cccccccccccccccccccccccc"

func (past) List(context.Context, *v1.UndoServiceListRequest) (*v1.UndoServiceListResponse, error) {
	return &v1.UndoServiceListResponse{Sessions: []*v1.Past{
		{Session: "s1aaaaaaaaaaaaaaaaaaaaaaaa", Agent: "qwen-code", Dir: "/home/anna/shop", Began: timestamppb.New(time.Now().Add(-42 * time.Minute)), Runs: true},
		{Session: overID, Agent: "codex <b>", Dir: "/home/anna/blog", Began: timestamppb.New(time.Now().Add(-3 * time.Hour)), Killed: true},
	}}, nil
}

// hostileName is what a relay would never send: the page holds all the same.
const hostileName = "src/<img src=//evil.invalid/x onerror=alert(1)>\u202e.go"

func (past) Diff(_ context.Context, r *v1.UndoServiceDiffRequest) (*v1.UndoServiceDiffResponse, error) {
	if r.GetSession() != overID {
		return &v1.UndoServiceDiffResponse{}, nil
	}
	return &v1.UndoServiceDiffResponse{More: 3, Git: []*v1.Step{{What: "git", Name: "refs/heads/main", Detail: "0b5a77e1c2 to 4f1c09aa21"}}, Files: []*v1.ChangedFile{
		{Id: "f1", Name: hostileName, Kind: v1.ChangeKind_CHANGE_KIND_MODIFIED, OldMode: "100644", NewMode: "100755", OldSize: 10, NewSize: 12, Counted: true, Added: 2, Deleted: 1},
		{Id: "f2", Name: "data.db", Kind: v1.ChangeKind_CHANGE_KIND_DELETED, OldMode: "100644", OldSize: 2_410_000, Binary: true},
		{Id: "f3", Name: "docs/" + strings.Repeat("long", 60), Kind: v1.ChangeKind_CHANGE_KIND_ADDED, NewMode: "100644", NewSize: 4, Counted: true, Added: 1},
	}}, nil
}

func (past) Lines(_ context.Context, r *v1.UndoServiceLinesRequest) (*v1.UndoServiceLinesResponse, error) {
	if r.GetFile() != "f1" {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no such file"))
	}
	return &v1.UndoServiceLinesResponse{Cut: true, Hunks: []*v1.Hunk{{OldStart: 3, OldLines: 2, NewStart: 3, NewLines: 3, Lines: []string{
		" \tif err != nil {", "-<script>alert(1)</script>", "+\u202e\u200bhidden\x1b[2J" + strings.Repeat(" wide", 100), "+</pre><a href=//evil.invalid>",
		`\ No newline at end of file`,
	}}}}, nil
}

func (past) Preview(context.Context, *v1.UndoServicePreviewRequest) (*v1.UndoServicePreviewResponse, error) {
	return &v1.UndoServicePreviewResponse{
		Steps:  []*v1.Step{{What: "restore", Name: hostileName}, {What: "put back", Name: "data.db"}, {What: "git", Name: "refs/heads/fix", Detail: "nothing to 4f1c09aa21"}},
		Kept:   []*v1.Step{{What: "keep", Name: "README.md", Detail: "you have changed it since the session"}},
		Killed: true, Plan: "plan", Ceremony: "c3", Options: `{"publicKey":{"rpId":"localhost","userVerification":"required","challenge":"` + challenge() + `"}}`,
	}, nil
}

func (p past) Undo(_ context.Context, r *v1.UndoServiceUndoRequest) (*v1.UndoServiceUndoResponse, error) {
	if r.GetPlan() != "plan" || r.GetCeremony() != "c3" || !strings.Contains(r.GetCredential(), `"authenticatorData"`) {
		return nil, connect.NewError(connect.CodePermissionDenied, errNoPasskey)
	}
	first := false
	p.f.do(func() {
		first = !slices.Contains(p.f.undone, r.GetSession())
		p.f.undone = append(p.f.undone, r.GetSession())
	})
	if first {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("what would be taken back has changed meanwhile; look again"))
	}
	return &v1.UndoServiceUndoResponse{Done: 3, Before: "20261127-093015.120000-k3xr"}, nil
}
