package api

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/bawn-dev/bawn/internal/copies"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sealed"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/undo"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// A copyRig is an API over the copy of one workspace.
type copyRig struct {
	*rig
	touches
	t         *testing.T
	w, upper  string
	reviewer  *copies.Reviewer
	writing   []string
	unlooked  error // why it is not known who writes
	forgotten []string
}

const copied = "aaaabbbbccccddddeeeeffffgg"

func newCopyRig(t *testing.T) *copyRig {
	testenv.Need(t, "userns")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &copyRig{t: t, w: filepath.Join(dir, "w"), touches: touches{ceremonys: map[string]string{}}}
	h.reviewer = &copies.Reviewer{
		State: filepath.Join(dir, "state"), Path: os.Getenv("PATH"), Runs: func(string) bool { return false },
		Writing: func([]string) ([]string, error) { return h.writing, h.unlooked },
		Forget:  func(r *copies.Record) error { h.forgotten = append(h.forgotten, r.ID); return nil },
	}
	h.rig = newRig(t, func(o *Options) { o.Copies, o.Touches = h.reviewer, h })
	h.put(h.w, "plan", "one\ntwo\nthree\n")
	h.put(h.w, "both", "old\n")
	h.session()
	return h
}

// session makes a copy, whose session has ended and has changed files.
func (h *copyRig) session() {
	h.t.Helper()
	base, finish, err := undo.Base(undo.Options{State: h.reviewer.State, Workspace: h.w, Session: copied})
	if err == nil {
		err = finish()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	filter := copies.FilterOf(&layout.Plan{Protected: []string{h.w}, Projects: []string{h.w}}, h.w)
	c, err := copies.Create(h.reviewer.State, copies.Record{
		ID: copied, Name: "fix", Agent: "agent\x1b[2J", Workspace: h.w, Started: time.Now(), Ended: time.Now(), Base: base.ID, Filter: filter,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Close()
	layer := filepath.Join(copies.Places(h.reviewer.State), copied, "layer")
	h.t.Cleanup(func() { _ = sealed.Remove(layer) }) // it may be discarded
	inside, err := sealed.Open(layer)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { inside.Close() })
	h.upper = sealed.Path(inside, "upper")
	h.guest()
}

// guest changes what the session changes.
func (h *copyRig) guest() {
	h.put(h.upper, "plan", "one\n\x1b[2J\u202e<b>\nthree\n")
	h.put(h.upper, "both", "guest\n")
	h.put(h.upper, "made", "by the guest\n")
	h.put(h.upper, ".envrc", "evil\n")
	h.put(h.upper, ".vscode/tasks.json", "evil\n")
}

func (h *copyRig) put(dir, name, text string) {
	h.t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *copyRig) read(name string) string {
	b, err := os.ReadFile(filepath.Join(h.w, name))
	if err != nil {
		return "gone"
	}
	return string(b)
}

func (h *copyRig) as(c Caller) bawnv1connect.CopyServiceClient {
	return bawnv1connect.NewCopyServiceClient(h.rig.as(c), h.url, connect.WithProtoJSON())
}

// files lists the copy, and the IDs of its files by name.
func (h *copyRig) files() (*bawnv1.CopyServiceFilesResponse, map[string]string) {
	h.t.Helper()
	l, err := h.as(viewer).Files(h.t.Context(), &bawnv1.CopyServiceFilesRequest{Session: copied})
	if err != nil {
		h.t.Fatal(err)
	}
	ids := map[string]string{}
	for _, f := range l.GetFiles() {
		ids[f.GetName()] = f.GetId()
	}
	return l, ids
}

// choose is a selection of what is listed now.
func (h *copyRig) choose(held bool, names ...string) *bawnv1.Selection {
	h.t.Helper()
	l, ids := h.files()
	s := &bawnv1.Selection{Session: copied, Listing: l.GetListing(), Held: held}
	for _, n := range names {
		s.Files = append(s.Files, ids[n])
	}
	return s
}

func (h *copyRig) preview(s *bawnv1.Selection) *bawnv1.CopyServicePreviewResponse {
	h.t.Helper()
	p, err := h.as(phone).Preview(h.t.Context(), &bawnv1.CopyServicePreviewRequest{Selection: s})
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// apply takes over what p has shown, with what a changed request changes.
func (h *copyRig) apply(c Caller, s *bawnv1.Selection, p *bawnv1.CopyServicePreviewResponse, change func(*bawnv1.CopyServiceApplyRequest)) (*bawnv1.CopyServiceApplyResponse, error) {
	m := &bawnv1.CopyServiceApplyRequest{Selection: s, Plan: p.GetPlan(), Ceremony: p.GetCeremony(), Credential: "touched"}
	if change != nil {
		change(m)
	}
	return h.as(c).Apply(h.t.Context(), m)
}

func stepWords(list []*bawnv1.Step) string {
	var out []string
	for _, s := range list {
		out = append(out, s.GetWhat()+" "+s.GetName())
	}
	return strings.Join(out, ", ")
}

// TestCopyIsListed: a device that may only look sees the copies, what is held back first,
// and all that the guest wrote as text.
func TestCopyIsListed(t *testing.T) {
	h := newCopyRig(t)
	list, err := h.as(viewer).List(t.Context(), &bawnv1.CopyServiceListRequest{})
	if err != nil || len(list.GetCopies()) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	if c := list.Copies[0]; c.GetSession() != copied || c.GetName() != "fix" || c.GetAgent() != `agent\x1b[2J` || c.GetRuns() || c.GetKilled() || c.GetFiles() != 5 {
		t.Errorf("%v", c)
	}
	l, ids := h.files()
	var got []string
	for _, f := range l.GetFiles() {
		why, _, _ := strings.Cut(f.GetHeld(), " (")
		got = append(got, fmt.Sprintf("%s +%d -%d %s", f.GetName(), f.GetAdded(), f.GetDeleted(), why))
	}
	const obey = "the host would execute or obey it"
	want := ".envrc +1 -0 " + obey + "|.vscode/tasks.json +1 -0 " + obey + "|both +1 -1 |made +1 -0 |plan +1 -1 "
	if strings.Join(got, "|") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "|"), want)
	}
	lines, err := h.as(viewer).Lines(t.Context(), &bawnv1.CopyServiceLinesRequest{Session: copied, File: ids["plan"]})
	if err != nil || len(lines.GetHunks()) != 1 || strings.Join(lines.Hunks[0].GetLines(), "|") != ` one|-two|+\x1b[2J\u202e<b>| three` {
		t.Errorf("%v %v", lines, err)
	}
	h.put(h.upper, "plan", "else\n") // another content is another file
	if _, err := h.as(viewer).Lines(t.Context(), &bawnv1.CopyServiceLinesRequest{Session: copied, File: ids["plan"]}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("what is not the content that was listed: %v", err)
	}
}

// TestCopyIsApplied: all that is not held back arrives, but for what both have changed.
func TestCopyIsApplied(t *testing.T) {
	h := newCopyRig(t)
	h.put(h.w, "both", "mine\n")
	all := h.choose(false)
	p := h.preview(all)
	if stepWords(p.GetSteps()) != "add made, change plan" || stepWords(p.GetConflicts()) != "conflict both" || !strings.Contains(p.Conflicts[0].GetDetail(), "the session's stays in the copy") {
		t.Fatalf("%v", p)
	}
	if h.read("made") != "gone" {
		t.Error("a preview has done something")
	}
	out, err := h.apply(phone, all, p, nil)
	if err != nil || out.GetDone() != 2 || out.GetBefore() == "" || out.GetFailed() != "" {
		t.Fatalf("%v %v", out, err)
	}
	if got := h.read("made") + h.read("both") + h.read(".envrc") + h.read(".vscode/tasks.json"); got != "by the guest\nmine\ngonegone" {
		t.Errorf("%q", got)
	}
	if !h.records.has("apply", copied) {
		t.Error("it is not recorded")
	}
	if again := h.preview(h.choose(false)); len(again.GetSteps()) != 0 || again.GetCeremony() != "" {
		t.Errorf("then: %v", again)
	}
}

// TestHeldIsOpened: a touch for one file that is held back opens this one, and no other.
func TestHeldIsOpened(t *testing.T) {
	h := newCopyRig(t)
	one := h.choose(true, ".vscode/tasks.json")
	p := h.preview(one)
	if stepWords(p.GetSteps()) != "add .vscode, add .vscode/tasks.json" {
		t.Fatalf("%v", p)
	}
	other := h.choose(true, ".envrc")
	if _, err := h.apply(phone, other, p, nil); connect.CodeOf(err) != connect.CodeFailedPrecondition || h.read(".envrc") != "gone" {
		t.Errorf("the touch for another file: %v", err)
	}
	p = h.preview(one)
	h.put(h.upper, ".vscode/tasks.json", "worse\n")
	if _, err := h.apply(phone, one, p, nil); connect.CodeOf(err) != connect.CodeFailedPrecondition || h.read(".vscode/tasks.json") != "gone" {
		t.Errorf("another content: %v", err)
	}
	if _, err := h.apply(phone, h.choose(true, ".vscode/tasks.json"), p, nil); err == nil || h.read(".vscode/tasks.json") != "gone" {
		t.Errorf("another content, listed anew, with the old touch: %v", err)
	}
	h.put(h.upper, ".vscode/tasks.json", "evil\n")
	h.put(h.upper, "odd/file", "x") // in a directory that is held back
	if err := os.Chmod(filepath.Join(h.upper, "odd"), 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	one, other = h.choose(true, ".vscode/tasks.json"), h.choose(true, ".envrc")
	for name, c := range map[string]struct {
		*bawnv1.Selection
		want connect.Code
	}{
		"two at once":                {&bawnv1.Selection{Session: copied, Listing: one.Listing, Held: true, Files: append(slices.Clone(one.Files), other.Files...)}, connect.CodeInvalidArgument},
		"none":                       {&bawnv1.Selection{Session: copied, Listing: one.Listing, Held: true}, connect.CodeInvalidArgument},
		"one with more in it":        {h.choose(true, "odd"), connect.CodeFailedPrecondition},
		"one that is not held back":  {h.choose(true, "made"), connect.CodeFailedPrecondition},
		"held back, as if it wasn't": {h.choose(false, ".envrc"), connect.CodeFailedPrecondition},
		"a file that is not listed":  {&bawnv1.Selection{Session: copied, Listing: one.Listing, Files: []string{fileID("/etc/passwd")}}, connect.CodeFailedPrecondition},
	} {
		if _, err := h.as(phone).Preview(t.Context(), &bawnv1.CopyServicePreviewRequest{Selection: c.Selection}); connect.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := h.apply(phone, one, h.preview(one), nil); err != nil || h.read(".vscode/tasks.json") != "evil\n" || h.read(".envrc") != "gone" || h.read("made") != "gone" {
		t.Errorf("control: %v", err)
	}
}

// TestNoApply: nobody takes over or discards without a touch for exactly what was shown,
// and nothing is written then. The last cases are the controls.
func TestNoApply(t *testing.T) {
	h := newCopyRig(t)
	other, reader := Caller{Name: "web:other", Device: "other"}, Caller{Name: "web:phone", Device: "phone", ReadOnly: true}
	type change = func(*bawnv1.CopyServiceApplyRequest)
	for name, c := range map[string]struct {
		caller Caller
		change change
		before func(p *bawnv1.CopyServicePreviewResponse)
		want   connect.Code
	}{
		"nobody":                        {Caller{}, nil, nil, connect.CodeUnauthenticated},
		"a device that may only look":   {reader, nil, nil, connect.CodePermissionDenied},
		"a program over the socket":     {human, nil, nil, connect.CodePermissionDenied},
		"another device's touch":        {other, nil, nil, connect.CodePermissionDenied},
		"no touch":                      {phone, func(m *bawnv1.CopyServiceApplyRequest) { m.Credential = "" }, nil, connect.CodePermissionDenied},
		"no ceremony":                   {phone, func(m *bawnv1.CopyServiceApplyRequest) { m.Ceremony = "" }, nil, connect.CodePermissionDenied},
		"the touch for another plan":    {phone, func(m *bawnv1.CopyServiceApplyRequest) { m.Plan = strings.Repeat("0", 64) }, nil, connect.CodePermissionDenied},
		"the touch for another session": {phone, func(m *bawnv1.CopyServiceApplyRequest) { m.Selection.Session = "session2" }, nil, connect.CodePermissionDenied},
		"a touch that was used":         {phone, nil, func(p *bawnv1.CopyServicePreviewResponse) { delete(h.ceremonys, p.GetCeremony()) }, connect.CodePermissionDenied},
		"another choice":                {phone, func(m *bawnv1.CopyServiceApplyRequest) { m.Selection.Files = []string{} }, nil, connect.CodeFailedPrecondition},
		"another listing":               {phone, func(m *bawnv1.CopyServiceApplyRequest) { m.Selection.Listing = strings.Repeat("0", 64) }, nil, connect.CodeFailedPrecondition},
		"a session that writes there":   {phone, nil, func(*bawnv1.CopyServicePreviewResponse) { h.writing = []string{"session3"} }, connect.CodeFailedPrecondition},
		"a registry that can't be read": {phone, nil, func(*bawnv1.CopyServicePreviewResponse) { h.unlooked = errors.New("broken") }, connect.CodeFailedPrecondition},
		"another content on the copy":   {phone, nil, func(*bawnv1.CopyServicePreviewResponse) { h.put(h.upper, "made", "by somebody!\n") }, connect.CodeFailedPrecondition},
		"another file on the copy":      {phone, nil, func(*bawnv1.CopyServicePreviewResponse) { h.put(h.upper, "new", "new") }, connect.CodeFailedPrecondition},
		"another content in the way":    {phone, nil, func(*bawnv1.CopyServicePreviewResponse) { h.put(h.w, "plan", "zero\none\ntwo\nthree\n") }, connect.CodeFailedPrecondition},
		"a log that can't be written":   {phone, nil, func(*bawnv1.CopyServicePreviewResponse) { h.records.fail = errors.New("full") }, connect.CodeUnavailable},
	} {
		s := h.choose(false, "made", "plan")
		p := h.preview(s)
		if c.before != nil {
			c.before(p)
		}
		if _, err := h.apply(c.caller, s, p, c.change); connect.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if h.read("made") != "gone" {
			t.Fatalf("%s: it was taken over", name)
		}
		h.writing, h.unlooked, h.records.fail = nil, nil, nil
		h.put(h.w, "plan", "one\ntwo\nthree\n")
		h.guest()
		if err := os.RemoveAll(filepath.Join(h.upper, "new")); err != nil {
			t.Fatal(err)
		}
	}
	s := h.choose(false, "made")
	if _, err := h.apply(phone, s, h.preview(s), nil); err != nil || h.read("made") == "gone" || h.read("both") != "old\n" {
		t.Errorf("control: %v", err)
	}
}

// TestNoDiscard: the same for discarding.
func TestNoDiscard(t *testing.T) {
	h := newCopyRig(t)
	reader := Caller{Name: "web:phone", Device: "phone", ReadOnly: true}
	there := func() bool {
		list, err := copies.List(h.reviewer.State, h.w)
		return err == nil && len(list) == 1
	}
	begin := func() *bawnv1.CopyServiceDiscardRequest {
		l, _ := h.files()
		b, err := h.as(phone).PreviewDiscard(t.Context(), &bawnv1.CopyServicePreviewDiscardRequest{Session: copied, Listing: l.GetListing()})
		if err != nil {
			t.Fatal(err)
		}
		return &bawnv1.CopyServiceDiscardRequest{Session: copied, Listing: l.GetListing(), Ceremony: b.GetCeremony(), Credential: "touched"}
	}
	all := h.choose(false)
	apply := h.preview(all)
	for name, c := range map[string]struct {
		caller Caller
		change func(*bawnv1.CopyServiceDiscardRequest)
		want   connect.Code
	}{
		"nobody":                      {Caller{}, nil, connect.CodeUnauthenticated},
		"a device that may only look": {reader, nil, connect.CodePermissionDenied},
		"a program over the socket":   {human, nil, connect.CodePermissionDenied},
		"no touch":                    {phone, func(m *bawnv1.CopyServiceDiscardRequest) { m.Credential = "" }, connect.CodePermissionDenied},
		"the touch for an apply":      {phone, func(m *bawnv1.CopyServiceDiscardRequest) { m.Ceremony = apply.GetCeremony() }, connect.CodePermissionDenied},
		"another file on the copy":    {phone, func(*bawnv1.CopyServiceDiscardRequest) { h.put(h.upper, "new", "new") }, connect.CodeFailedPrecondition},
		"a log that can't be written": {phone, func(*bawnv1.CopyServiceDiscardRequest) { h.records.fail = errors.New("full") }, connect.CodeUnavailable},
	} {
		m := begin()
		if c.change != nil {
			c.change(m)
		}
		if _, err := h.as(c.caller).Discard(t.Context(), m); connect.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if !there() || len(h.forgotten) > 0 {
			t.Fatalf("%s: it was discarded", name)
		}
		h.records.fail = nil
	}
	if _, err := h.as(phone).Discard(t.Context(), begin()); err != nil || there() || !slices.Equal(h.forgotten, []string{copied}) || !h.records.has("discard", copied) {
		t.Errorf("control: %v, there %v, forgotten %v", err, there(), h.forgotten)
	}
}

// TestCopyOfRunningSession: it is shown, and neither taken over nor discarded.
func TestCopyOfRunningSession(t *testing.T) {
	h := newCopyRig(t)
	c, err := copies.Open(h.reviewer.State, copied)
	if err != nil {
		t.Fatal(err)
	}
	h.reviewer.Runs = func(string) bool { return true }
	list, err := h.as(viewer).List(t.Context(), &bawnv1.CopyServiceListRequest{})
	if err != nil || !list.GetCopies()[0].GetRuns() {
		t.Errorf("%v %v", list, err)
	}
	s := h.choose(false)
	if _, err := h.as(phone).Preview(t.Context(), &bawnv1.CopyServicePreviewRequest{Selection: s}); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("preview: %v", err)
	}
	if _, err := h.as(phone).PreviewDiscard(t.Context(), &bawnv1.CopyServicePreviewDiscardRequest{Session: copied, Listing: s.GetListing()}); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("discard: %v", err)
	}
	c.Close()
	h.preview(s) // the control: its session has ended
}

// TestOnlyOwnCopies: names that lead elsewhere lead nowhere.
func TestOnlyOwnCopies(t *testing.T) {
	h := newCopyRig(t)
	stranger := newCopyRig(t)
	if err := os.Rename(filepath.Join(copies.Places(stranger.reviewer.State), copied, "record.json"), filepath.Join(h.w, "record.json")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", ".", "..", "fix", copied[:8], "../copies/" + copied, copied + "/..", "../../w", h.w, copied + "\x00"} {
		if _, err := h.as(phone).Files(t.Context(), &bawnv1.CopyServiceFilesRequest{Session: id}); connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("files of session %q: %v", id, err)
		}
		if _, err := h.as(phone).Preview(t.Context(), &bawnv1.CopyServicePreviewRequest{Selection: &bawnv1.Selection{Session: id}}); connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("preview of session %q: %v", id, err)
		}
	}
	h.files() // the control
}
