package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/undo"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// A Past is what sessions of this user have changed.
type Past interface {
	Sessions(most int) ([]undo.Session, error)
	Session(id string) (*undo.Session, error)
	Compare(s *undo.Session) (*undo.Diff, error)
	Prepare(s *undo.Session) (*undo.Plan, error)
}

var _ Past = (*undo.Past)(nil)

// Touches ask for the touch of a paired device's passkey, which stands for its human's
// yes to one purpose. Their errors are *connect.Errors where the caller is to be told.
type Touches interface {
	BeginTouch(ctx context.Context, device, purpose string) (ceremony, options string, err error)
	FinishTouch(ctx context.Context, device, purpose, ceremony, credential string) error
}

// Limits of one answer.
const (
	maxPast     = 100
	maxChanged  = 500      // files of a diff
	maxCompared = 32 << 20 // bytes of files whose lines are counted
	compareTime = 3 * time.Second
	maxLines    = 256 << 10
	maxSteps    = 500
)

// undos shows the changes of sessions, and takes them back.
type undos struct{ *API }

var _ bawnv1connect.UndoServiceHandler = (*undos)(nil)

// List is the service's.
func (s *undos) List(context.Context, *bawnv1.UndoServiceListRequest) (*bawnv1.UndoServiceListResponse, error) {
	if s.o.Past == nil {
		return nil, missing("checkpoints")
	}
	list, err := s.o.Past.Sessions(maxPast)
	out := &bawnv1.UndoServiceListResponse{}
	for i := range list {
		out.Sessions = append(out.Sessions, pastOf(&list[i]))
	}
	return out, inside(err)
}

func pastOf(s *undo.Session) *bawnv1.Past {
	return &bawnv1.Past{
		Session: line(s.Target.Session), Agent: line(s.Agent), Dir: line(s.Workspace), Began: at(s.Began), Runs: len(s.Writing) > 0,
		Killed: s.Killed && !slices.Contains(s.Writing, s.Target.Session),
	}
}

// session finds a session of the past.
func (s *undos) session(id string) (*undo.Session, error) {
	if s.o.Past == nil {
		return nil, missing("checkpoints")
	}
	one, err := s.o.Past.Session(id)
	if errors.Is(err, undo.ErrNoSession) {
		return nil, connect.NewError(connect.CodeNotFound, undo.ErrNoSession)
	}
	return one, inside(err)
}

// compare calls f with what a session has changed.
func (s *undos) compare(id string, f func(*undo.Session, *undo.Diff) error) error {
	s.undoing.Lock()
	defer s.undoing.Unlock()
	one, err := s.session(id)
	if err != nil {
		return err
	}
	d, err := s.o.Past.Compare(one)
	if err != nil {
		return later(err)
	}
	defer d.Close()
	return f(one, d)
}

// later tells the human why nothing can be compared or taken back now: a store is in use,
// a session still runs, or what undo itself says. Undo's errors name files of the human's,
// who may see them.
func later(err error) error {
	var runs *undo.RunningError
	switch {
	case errors.Is(err, checkpoint.ErrBusy):
		return connect.NewError(connect.CodeUnavailable, errors.New("a session or \"bawn\" uses these checkpoints just now; try again"))
	case errors.As(err, &runs):
		return connect.NewError(connect.CodeFailedPrecondition, errors.New(line(runs.Error())+"; end it first"))
	case err != nil:
		return connect.NewError(connect.CodeFailedPrecondition, errors.New(line(err.Error())))
	}
	return nil
}

// Diff is the service's.
func (s *undos) Diff(_ context.Context, m *bawnv1.UndoServiceDiffRequest) (*bawnv1.UndoServiceDiffResponse, error) {
	out := &bawnv1.UndoServiceDiffResponse{}
	err := s.compare(m.GetSession(), func(one *undo.Session, d *undo.Diff) error {
		list := d.List()
		out.More = int32(max(0, len(list)-maxChanged))
		count := counting(d)
		for _, x := range list[:min(len(list), maxChanged)] {
			out.Files = append(out.Files, count(one.Workspace, fileID(x.Path), x))
		}
		out.Git = stepsOf(one.Workspace, d.Git())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// counting describes files with their lines, until it has compared enough.
func counting(d *undo.Diff) func(workspace, id string, x checkpoint.Difference) *bawnv1.ChangedFile {
	left, until := int64(maxCompared), time.Now().Add(compareTime)
	return func(workspace, id string, x checkpoint.Difference) *bawnv1.ChangedFile {
		left -= sizeOf(x.Old) + sizeOf(x.New)
		c := &undo.Change{Difference: x}
		compare := left >= 0 && time.Now().Before(until)
		if compare {
			c = d.Change(x)
		}
		return changedOf(workspace, id, c, compare)
	}
}

func sizeOf(e *checkpoint.Entry) int64 {
	if e == nil {
		return 0
	}
	return e.Size
}

// fileID names a file for the page, which so sends no paths.
func fileID(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

func changedOf(workspace, id string, c *undo.Change, compared bool) *bawnv1.ChangedFile {
	out := &bawnv1.ChangedFile{
		Id: id, Name: undo.Show(workspace, c.Path), Kind: bawnv1.ChangeKind_CHANGE_KIND_MODIFIED, OldSize: sizeOf(c.Old), NewSize: sizeOf(c.New),
		Counted: compared && c.Missing == nil && !c.Binary, Binary: c.Binary, Added: int32(min(c.Added, 1<<30)), Deleted: int32(min(c.Deleted, 1<<30)),
	}
	if c.Old != nil {
		out.OldMode = c.Old.GitMode()
	} else {
		out.Kind = bawnv1.ChangeKind_CHANGE_KIND_ADDED
	}
	if c.New != nil {
		out.NewMode = c.New.GitMode()
	} else {
		out.Kind = bawnv1.ChangeKind_CHANGE_KIND_DELETED
	}
	return out
}

// Lines is the service's.
func (s *undos) Lines(_ context.Context, m *bawnv1.UndoServiceLinesRequest) (*bawnv1.UndoServiceLinesResponse, error) {
	out := &bawnv1.UndoServiceLinesResponse{}
	err := s.compare(m.GetSession(), func(_ *undo.Session, d *undo.Diff) error {
		i := slices.IndexFunc(d.List(), func(x checkpoint.Difference) bool { return fileID(x.Path) == m.GetFile() })
		if i < 0 {
			return connect.NewError(connect.CodeNotFound, errors.New("the session has not changed such a file"))
		}
		c := d.Change(d.List()[i])
		if c.Missing != nil {
			out.Missing = line(c.Missing.Error())
		}
		out.Hunks, out.Cut = hunksOf(c.Hunks)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// hunksOf returns as much of a difference as an answer has room for.
func hunksOf(list []undo.Hunk) (out []*bawnv1.Hunk, cut bool) {
	left := maxLines
	for _, h := range list {
		one := &bawnv1.Hunk{OldStart: int32(h.OldStart), OldLines: int32(h.OldLines), NewStart: int32(h.NewStart), NewLines: int32(h.NewLines)}
		out = append(out, one)
		for _, e := range h.Edits {
			text := string(e.Op) + tabbed(e.Text)
			if left -= len(text) + 8; left < 0 {
				return out, true
			}
			one.Lines = append(one.Lines, text)
			if e.Open {
				one.Lines = append(one.Lines, `\ No newline at end of file`)
			}
		}
	}
	return out, false
}

// tabbed escapes a line of a file, but for tabs.
func tabbed(s string) string {
	parts := strings.Split(s, "\t")
	for i := range parts {
		parts[i] = line(parts[i])
	}
	return strings.Join(parts, "\t")
}

// prepare calls f with a plan to take back a session, and with its digest.
func (s *undos) prepare(id string, f func(one *undo.Session, p *undo.Plan, digest string) error) error {
	s.undoing.Lock()
	defer s.undoing.Unlock()
	one, err := s.session(id)
	if err != nil {
		return err
	}
	if s.o.Touches == nil {
		return missing("passkeys")
	}
	p, err := s.o.Past.Prepare(one)
	if err != nil {
		return later(err)
	}
	defer p.Close()
	digest, err := p.Digest()
	if err != nil {
		return inside(err)
	}
	return f(one, p, digest)
}

// purpose binds a touch to this session and to what was shown of it.
func purpose(session, plan string) string { return "undo " + session + " " + plan }

// Preview is the service's.
func (s *undos) Preview(ctx context.Context, m *bawnv1.UndoServicePreviewRequest) (*bawnv1.UndoServicePreviewResponse, error) {
	c, _ := callerOf(ctx)
	out := &bawnv1.UndoServicePreviewResponse{}
	err := s.prepare(m.GetSession(), func(one *undo.Session, p *undo.Plan, digest string) (err error) {
		do, keep := p.Steps()
		out.More = int32(max(0, len(do)-maxSteps) + max(0, len(keep)-maxSteps))
		out.Steps, out.Kept = stepsOf(one.Workspace, do), stepsOf(one.Workspace, keep)
		out.Killed, out.Plan = p.Killed && p.After == nil, digest
		if !p.Empty() {
			out.Ceremony, out.Options, err = s.o.Touches.BeginTouch(ctx, c.Device, purpose(one.Target.Session, digest))
		}
		return inside(err)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func stepsOf(workspace string, list []undo.Step) (out []*bawnv1.Step) {
	for _, x := range list[:min(len(list), maxSteps)] {
		name := line(x.Ref)
		if x.Path != "" {
			name = undo.Show(workspace, x.Path)
		}
		out = append(out, &bawnv1.Step{What: line(x.What), Name: name, Detail: line(x.Detail)})
	}
	return out
}

// Undo is the service's. The touch is checked first: without it nothing is looked at.
func (s *undos) Undo(ctx context.Context, m *bawnv1.UndoServiceUndoRequest) (*bawnv1.UndoServiceUndoResponse, error) {
	c, _ := callerOf(ctx)
	if s.o.Touches == nil {
		return nil, missing("passkeys")
	}
	if err := s.o.Touches.FinishTouch(ctx, c.Device, purpose(m.GetSession(), m.GetPlan()), m.GetCeremony(), m.GetCredential()); err != nil {
		return nil, inside(err)
	}
	out := &bawnv1.UndoServiceUndoResponse{}
	err := s.prepare(m.GetSession(), func(one *undo.Session, p *undo.Plan, digest string) error {
		if digest != m.GetPlan() {
			return connect.NewError(connect.CodeFailedPrecondition, errors.New("what would be taken back has changed meanwhile; look again"))
		}
		do, _ := p.Steps()
		why := fmt.Sprintf("a human takes %d changes back, with a touch of the passkey; checkpoint %s has what was there", len(do), p.Before.ID)
		if err := s.record(ctx, c, "undo", line(one.Target.Session), bawn.Allow, why); err != nil {
			return err
		}
		done, err := p.Apply()
		out.Done, out.Before = int32(p.Done(done, err)), p.Before.ID
		if err != nil {
			out.Failed = line(err.Error())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
