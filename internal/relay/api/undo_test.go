package api

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/bawn-dev/bawn/internal/undo"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// A handRig is an API over the checkpoints of one workspace, in which a session has
// changed files.
type handRig struct {
	*rig
	touches
	t        *testing.T
	w        string
	past     *undo.Past
	writing  []string
	unlooked error // why it is not known who writes
}

// touches are those of a passkey that does what a test says.
type touches struct {
	wanted    []string // purposes for which a touch was begun
	ceremonys map[string]string
}

// BeginTouch is Touches'.
func (h *touches) BeginTouch(_ context.Context, device, purpose string) (ceremony, options string, err error) {
	h.wanted = append(h.wanted, purpose)
	ceremony = fmt.Sprint("c", len(h.wanted))
	h.ceremonys[ceremony] = device + " " + purpose
	return ceremony, `{"publicKey":{}}`, nil
}

var errNoTouch = connect.NewError(connect.CodePermissionDenied, errors.New("no touch"))

// FinishTouch is Touches'. The credential of these tests is "touched".
func (h *touches) FinishTouch(_ context.Context, device, purpose, ceremony, credential string) error {
	begun := h.ceremonys[ceremony]
	delete(h.ceremonys, ceremony)
	if begun != device+" "+purpose || credential != "touched" {
		return errNoTouch
	}
	return nil
}

func newHandRig(t *testing.T) *handRig {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &handRig{t: t, w: filepath.Join(dir, "w"), touches: touches{ceremonys: map[string]string{}}}
	h.past = &undo.Past{
		State: filepath.Join(dir, "state"), Path: os.Getenv("PATH"),
		Writing: func([]string) ([]string, error) { return h.writing, h.unlooked }, Publish: func(string) error { return nil },
	}
	h.rig = newRig(t, func(o *Options) { o.Past, o.Touches = h.past, h })
	h.put("kept", "line 1\nline 2\n")
	h.put("changed", "old\n\ttabbed\n")
	h.put("odd\x1b[2J\u202e", "before")
	return h
}

func (h *handRig) put(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.w, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *handRig) read(name string) string {
	b, err := os.ReadFile(filepath.Join(h.w, name))
	if err != nil {
		return "gone"
	}
	return string(b)
}

// session runs a session that changes what change changes.
func (h *handRig) session(id string, change func()) {
	h.t.Helper()
	k := undo.Begin(undo.Options{State: h.past.State, Workspace: h.w, Roots: []string{h.w}, Session: id, Agent: "agent\x1b[2J"})
	k.Keep()
	if err := k.Ready(); err != nil {
		h.t.Fatal(err)
	}
	k.Run()
	change()
	k.Ended()
	if _, err := k.End(); err != nil {
		h.t.Fatal(err)
	}
}

func (h *handRig) destroy() {
	h.session("session1", func() {
		h.put("changed", "new\x1b[2J\n\ttabbed\n")
		h.put("made", "by the guest")
		h.put("odd\x1b[2J\u202e", "after")
		if err := os.Remove(filepath.Join(h.w, "kept")); err != nil {
			h.t.Fatal(err)
		}
	})
}

func (h *handRig) as(c Caller) bawnv1connect.UndoServiceClient {
	return bawnv1connect.NewUndoServiceClient(h.rig.as(c), h.url, connect.WithProtoJSON())
}

func (h *handRig) preview(id string) *bawnv1.UndoServicePreviewResponse {
	h.t.Helper()
	p, err := h.as(phone).Preview(h.t.Context(), &bawnv1.UndoServicePreviewRequest{Session: id})
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// undo undoes what p has shown, with what a changed request changes.
func (h *handRig) undo(c Caller, p *bawnv1.UndoServicePreviewResponse, change func(*bawnv1.UndoServiceUndoRequest)) (*bawnv1.UndoServiceUndoResponse, error) {
	m := &bawnv1.UndoServiceUndoRequest{Session: "session1", Plan: p.GetPlan(), Ceremony: p.GetCeremony(), Credential: "touched"}
	if change != nil {
		change(m)
	}
	return h.as(c).Undo(h.t.Context(), m)
}

// TestDiff: what a session has changed, fit to be shown.
func TestDiff(t *testing.T) {
	h := newHandRig(t)
	h.destroy()
	c := h.as(viewer)
	list, err := c.List(t.Context(), &bawnv1.UndoServiceListRequest{})
	if err != nil || len(list.GetSessions()) != 1 || list.Sessions[0].GetSession() != "session1" || list.Sessions[0].GetAgent() != `agent\x1b[2J` || list.Sessions[0].GetRuns() || list.Sessions[0].GetKilled() {
		t.Fatalf("%v %v", list, err)
	}
	diff, err := c.Diff(t.Context(), &bawnv1.UndoServiceDiffRequest{Session: "session1"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	ids := map[string]string{}
	for _, f := range diff.GetFiles() {
		got = append(got, fmt.Sprintf("%v %s +%d -%d %v", f.GetKind(), f.GetName(), f.GetAdded(), f.GetDeleted(), f.GetCounted()))
		ids[f.GetName()] = f.GetId()
	}
	want := "CHANGE_KIND_MODIFIED changed +1 -1 true, CHANGE_KIND_DELETED kept +0 -2 true, CHANGE_KIND_ADDED made +1 -0 true, CHANGE_KIND_MODIFIED odd\\x1b[2J\\u202e +1 -1 true"
	if strings.Join(got, ", ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, ", "), want)
	}
	if len(diff.GetGit()) != 0 {
		t.Errorf("refs without a repository: %v", diff.GetGit())
	}
	lines, err := c.Lines(t.Context(), &bawnv1.UndoServiceLinesRequest{Session: "session1", File: ids["changed"]})
	if err != nil || len(lines.GetHunks()) != 1 || strings.Join(lines.Hunks[0].GetLines(), "|") != "-old|+new\\x1b[2J| \ttabbed" {
		t.Errorf("%v %v", lines, err)
	}
}

// TestLongDiff: an answer is bounded.
func TestLongDiff(t *testing.T) {
	h := newHandRig(t)
	h.session("session1", func() {
		for i := range maxChanged + 5 {
			h.put(fmt.Sprintf("many/%04d", i), "x")
		}
		h.put("changed", strings.Repeat("a line\n", maxLines/4))
	})
	diff, err := h.as(phone).Diff(t.Context(), &bawnv1.UndoServiceDiffRequest{Session: "session1"})
	if err != nil || len(diff.GetFiles()) != maxChanged || diff.GetMore() != 7 {
		t.Errorf("%d files and %d more, %v", len(diff.GetFiles()), diff.GetMore(), err)
	}
	lines, err := h.as(phone).Lines(t.Context(), &bawnv1.UndoServiceLinesRequest{Session: "session1", File: diff.GetFiles()[0].GetId()})
	if err != nil || !lines.GetCut() {
		t.Errorf("cut %v, %v", lines.GetCut(), err)
	}
}

// TestUndo: preview, touch, and all is as it was, but for what the human has changed.
func TestUndo(t *testing.T) {
	h := newHandRig(t)
	h.destroy()
	h.put("made", "by the human")
	p := h.preview("session1")
	if p.GetPlan() == "" || len(p.GetSteps()) != 3 || len(p.GetKept()) != 1 || p.Kept[0].GetName() != "made" || p.GetKilled() {
		t.Fatalf("%v", p)
	}
	if h.read("kept") != "gone" {
		t.Error("a preview has done something")
	}
	out, err := h.undo(phone, p, nil)
	if err != nil || out.GetDone() != 3 || out.GetBefore() == "" || out.GetFailed() != "" {
		t.Fatalf("%v %v", out, err)
	}
	if got := h.read("kept") + h.read("changed") + h.read("odd\x1b[2J\u202e") + h.read("made"); got != "line 1\nline 2\nold\n\ttabbed\nbeforeby the human" {
		t.Errorf("%q", got)
	}
	if !h.records.has("undo", "session1") {
		t.Error("it is not recorded")
	}
	if again := h.preview("session1"); len(again.GetSteps()) != 0 || again.GetCeremony() != "" {
		t.Errorf("then: %v", again)
	}
}

// TestNoUndo: nobody undoes without a touch for exactly what was shown, and nothing is
// written then. The last case is the control: the same call, as it has to be.
func TestNoUndo(t *testing.T) {
	h := newHandRig(t)
	h.destroy()
	other := Caller{Name: "web:other", Device: "other"}
	type change = func(*bawnv1.UndoServiceUndoRequest)
	for name, c := range map[string]struct {
		caller Caller
		change change
		before func(p *bawnv1.UndoServicePreviewResponse)
		want   connect.Code
	}{
		"nobody":                        {Caller{}, nil, nil, connect.CodeUnauthenticated},
		"a device that may only look":   {Caller{Name: "web:phone", Device: "phone", ReadOnly: true}, nil, nil, connect.CodePermissionDenied},
		"a program over the socket":     {human, nil, nil, connect.CodePermissionDenied},
		"another device's touch":        {other, nil, nil, connect.CodePermissionDenied},
		"no touch":                      {phone, func(m *bawnv1.UndoServiceUndoRequest) { m.Credential = "" }, nil, connect.CodePermissionDenied},
		"no ceremony":                   {phone, func(m *bawnv1.UndoServiceUndoRequest) { m.Ceremony = "" }, nil, connect.CodePermissionDenied},
		"the touch for another plan":    {phone, func(m *bawnv1.UndoServiceUndoRequest) { m.Plan = strings.Repeat("0", 64) }, nil, connect.CodePermissionDenied},
		"the touch for another session": {phone, func(m *bawnv1.UndoServiceUndoRequest) { m.Session = "session2" }, nil, connect.CodePermissionDenied},
		"a touch that was used":         {phone, nil, func(p *bawnv1.UndoServicePreviewResponse) { delete(h.ceremonys, p.GetCeremony()) }, connect.CodePermissionDenied},
		"a session that writes there":   {phone, nil, func(*bawnv1.UndoServicePreviewResponse) { h.writing = []string{"session3"} }, connect.CodeFailedPrecondition},
		"a registry that can't be read": {phone, nil, func(*bawnv1.UndoServicePreviewResponse) { h.unlooked = errors.New("broken") }, connect.CodeInternal},
		"something else than was shown": {phone, nil, func(*bawnv1.UndoServicePreviewResponse) { h.put("made", "by the human") }, connect.CodeFailedPrecondition},
		"a log that can't be written":   {phone, nil, func(*bawnv1.UndoServicePreviewResponse) { h.records.fail = errors.New("full") }, connect.CodeUnavailable},
	} {
		h.put("made", "by the guest")
		p := h.preview("session1")
		if c.before != nil {
			c.before(p)
		}
		_, err := h.undo(c.caller, p, c.change)
		if connect.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if h.read("kept") != "gone" {
			t.Fatalf("%s: it was undone", name)
		}
		h.writing, h.unlooked, h.records.fail = nil, nil, nil
	}
	h.put("made", "by the guest")
	if _, err := h.undo(phone, h.preview("session1"), nil); err != nil || h.read("kept") == "gone" {
		t.Errorf("control: %v", err)
	}
}

// TestOnlyOwnSessions: names that lead elsewhere lead nowhere, and neither do those of
// another user's sessions, whose checkpoints lie in that user's state.
func TestOnlyOwnSessions(t *testing.T) {
	h := newHandRig(t)
	h.destroy()
	stranger := newHandRig(t)
	stranger.session("strangers", func() { stranger.put("changed", "x") })
	// A store below another name than its workspace's is not one of ours either.
	from, err := filepath.Glob(filepath.Join(stranger.past.State, "checkpoints", "*"))
	if err != nil || len(from) != 1 {
		t.Fatal(from, err)
	}
	planted := filepath.Join(h.past.State, "checkpoints", "0123456789abcdef01234567")
	if err := os.CopyFS(planted, os.DirFS(from[0])); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", ".", "..", "../session1", "session1/..", "session", "strangers", "/etc", h.w, "session1\x00"} {
		for name, call := range map[string]func() error{
			"diff": func() error {
				_, err := h.as(phone).Diff(t.Context(), &bawnv1.UndoServiceDiffRequest{Session: id})
				return err
			},
			"lines": func() error {
				_, err := h.as(phone).Lines(t.Context(), &bawnv1.UndoServiceLinesRequest{Session: id, File: fileID(filepath.Join(h.w, "kept"))})
				return err
			},
			"preview": func() error {
				_, err := h.as(phone).Preview(t.Context(), &bawnv1.UndoServicePreviewRequest{Session: id})
				return err
			},
		} {
			if err := call(); connect.CodeOf(err) != connect.CodeNotFound {
				t.Errorf("%s of session %q: %v", name, id, err)
			}
		}
	}
	for _, file := range []string{"", "..", "../w/kept", "/etc/passwd", "kept", fileID("/etc/passwd"), fileID(filepath.Join(h.w, "../w/kept"))[:8]} {
		if _, err := h.as(phone).Lines(t.Context(), &bawnv1.UndoServiceLinesRequest{Session: "session1", File: file}); connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("file %q: %v", file, err)
		}
	}
	if _, err := h.as(phone).Lines(t.Context(), &bawnv1.UndoServiceLinesRequest{Session: "session1", File: fileID(filepath.Join(h.w, "kept"))}); err != nil {
		t.Errorf("control: %v", err)
	}
}
