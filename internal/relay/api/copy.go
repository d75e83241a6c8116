package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/copies"
	"github.com/bawn-dev/bawn/internal/undo"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// Copies are those of this user's sessions.
type Copies interface {
	List(most int) ([]copies.Seen, error)
	Look(id string) (*copies.Review, error)
	Open(id string) (*copies.Review, error)
}

var _ Copies = (*copies.Reviewer)(nil)

// maxCopies is how many copies are listed.
const maxCopies = 100

// reviews show the copies of sessions, take them over and discard them.
type reviews struct{ *API }

var _ bawnv1connect.CopyServiceHandler = (*reviews)(nil)

// List is the service's.
func (s *reviews) List(context.Context, *bawnv1.CopyServiceListRequest) (*bawnv1.CopyServiceListResponse, error) {
	if s.o.Copies == nil {
		return nil, missing("copies")
	}
	list, err := s.o.Copies.List(maxCopies)
	out := &bawnv1.CopyServiceListResponse{}
	for i := range list {
		c := &list[i]
		out.Copies = append(out.Copies, &bawnv1.Copy{
			Session: line(c.ID), Name: line(c.Called()), Agent: line(c.Agent), Dir: line(c.Workspace), Began: at(c.Started),
			Runs: c.Runs, Killed: !c.Runs && c.Ended.IsZero(), Files: int32(min(c.Files, 1<<30)),
		})
	}
	return out, inside(err)
}

// review calls f with the copy of a session, which open opens.
func (s *reviews) review(id string, open func(Copies, string) (*copies.Review, error), f func(*copies.Review, *copies.Listing) error) error {
	s.undoing.Lock()
	defer s.undoing.Unlock()
	if s.o.Copies == nil {
		return missing("copies")
	}
	r, err := open(s.o.Copies, id)
	if errors.Is(err, copies.ErrNoCopy) {
		return connect.NewError(connect.CodeNotFound, copies.ErrNoCopy)
	}
	if err != nil {
		return later(err)
	}
	defer r.Close()
	l, err := r.Listing()
	if err != nil {
		return later(err)
	}
	defer l.Close()
	return f(r, l)
}

// Files is the service's.
func (s *reviews) Files(_ context.Context, m *bawnv1.CopyServiceFilesRequest) (*bawnv1.CopyServiceFilesResponse, error) {
	out := &bawnv1.CopyServiceFilesResponse{}
	err := s.review(m.GetSession(), Copies.Look, func(r *copies.Review, l *copies.Listing) error {
		out.Listing, out.More = l.Digest, int32(max(0, len(l.Files)-maxChanged))
		count := counting(l.Diff)
		for _, f := range l.Files[:min(len(l.Files), maxChanged)] {
			one := count(r.Workspace, f.ID, f.Difference)
			one.Held, one.Stays = line(f.Held), line(f.Stays)
			if f.Old == nil && f.New == nil {
				one.Kind, one.Counted = bawnv1.ChangeKind_CHANGE_KIND_UNSPECIFIED, false
			}
			out.Files = append(out.Files, one)
		}
		for _, k := range r.Git[:min(len(r.Git), maxSteps)] {
			out.Commits = append(out.Commits, &bawnv1.Step{What: "commits", Name: line(k.Ref), Detail: "at " + line(k.Beside)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Lines is the service's.
func (s *reviews) Lines(_ context.Context, m *bawnv1.CopyServiceLinesRequest) (*bawnv1.CopyServiceLinesResponse, error) {
	out := &bawnv1.CopyServiceLinesResponse{}
	err := s.review(m.GetSession(), Copies.Look, func(_ *copies.Review, l *copies.Listing) error {
		i := slices.IndexFunc(l.Files, func(f copies.File) bool { return f.ID == m.GetFile() })
		if i < 0 {
			return connect.NewError(connect.CodeNotFound, errors.New("the session has not changed such a file, or has changed it again; compare again"))
		}
		c := l.Change(l.Files[i].Difference)
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

// errSeen is the answer where something else would happen than the human has seen.
var errSeen = connect.NewError(connect.CodeFailedPrecondition, errors.New("what the human has seen is not what is there now; look again"))

// chosen returns the paths of a selection; none for all.
func chosen(l *copies.Listing, m *bawnv1.Selection) (paths []string, err error) {
	if l.Digest != m.GetListing() {
		return nil, errSeen
	}
	for _, id := range m.GetFiles() {
		i := slices.IndexFunc(l.Files, func(f copies.File) bool { return f.ID == id && (f.Held != "") == m.GetHeld() && f.Stays == "" })
		if i < 0 {
			return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("such a file can't be taken over in this way"))
		}
		paths = append(paths, l.Files[i].Path)
	}
	if m.GetHeld() && len(paths) != 1 {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("what is held back is opened one by one"))
	}
	return paths, nil
}

// prepare calls f with a plan to take a selection over, and with its digest.
func (s *reviews) prepare(m *bawnv1.Selection, f func(r *copies.Review, p *undo.Plan, digest string) error) error {
	if s.o.Touches == nil {
		return missing("passkeys")
	}
	return s.review(m.GetSession(), Copies.Open, func(r *copies.Review, l *copies.Listing) error {
		paths, err := chosen(l, m)
		if err != nil {
			return err
		}
		l.Close() // the plan needs the store; a second Close does nothing
		var opened []string
		if m.GetHeld() {
			opened = paths
		}
		p, err := r.Prepare(paths, opened, undo.Keep)
		if err != nil {
			return later(err)
		}
		defer p.Close()
		do, keep := p.Steps()
		terminal := "; at a terminal: bawn apply " + line(r.Called())
		if len(do) > maxSteps || len(keep) > maxSteps {
			return connect.NewError(connect.CodeFailedPrecondition, errors.New("it is more than a page shows: choose some files"+terminal))
		}
		if m.GetHeld() && !within(do, paths[0]) {
			return connect.NewError(connect.CodeFailedPrecondition, errors.New("more than this one would be taken over"+terminal))
		}
		digest, err := p.Digest()
		if err != nil {
			return inside(err)
		}
		return f(r, p, digest)
	})
}

// within reports whether steps are about one path, and the directories that lead to it.
func within(do []undo.Step, path string) bool {
	return !slices.ContainsFunc(do, func(x undo.Step) bool { return x.Path != path && !strings.HasPrefix(path, x.Path+"/") })
}

// taking binds a touch to this session and to a plan, whose digest has all paths and
// contents.
func taking(session, plan string) string { return "apply " + session + " " + plan }

// Preview is the service's.
func (s *reviews) Preview(ctx context.Context, m *bawnv1.CopyServicePreviewRequest) (*bawnv1.CopyServicePreviewResponse, error) {
	c, _ := callerOf(ctx)
	out := &bawnv1.CopyServicePreviewResponse{}
	err := s.prepare(m.GetSelection(), func(r *copies.Review, p *undo.Plan, digest string) (err error) {
		do, keep := p.Steps()
		for i := range do {
			do[i].What = copies.StepWord(do[i])
		}
		for i := range keep {
			keep[i].What, keep[i].Detail = "conflict", copies.ConflictWhy(keep[i])
		}
		out.Steps, out.Conflicts, out.Plan = stepsOf(r.Workspace, do), stepsOf(r.Workspace, keep), digest
		if !p.Empty() {
			out.Ceremony, out.Options, err = s.o.Touches.BeginTouch(ctx, c.Device, taking(r.ID, digest))
		}
		return inside(err)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Apply is the service's. The touch is checked first: without it nothing is looked at.
func (s *reviews) Apply(ctx context.Context, m *bawnv1.CopyServiceApplyRequest) (*bawnv1.CopyServiceApplyResponse, error) {
	c, _ := callerOf(ctx)
	if s.o.Touches == nil {
		return nil, missing("passkeys")
	}
	if err := s.o.Touches.FinishTouch(ctx, c.Device, taking(m.GetSelection().GetSession(), m.GetPlan()), m.GetCeremony(), m.GetCredential()); err != nil {
		return nil, inside(err)
	}
	out := &bawnv1.CopyServiceApplyResponse{}
	err := s.prepare(m.GetSelection(), func(r *copies.Review, p *undo.Plan, digest string) error {
		if digest != m.GetPlan() {
			return errSeen
		}
		do, _ := p.Steps()
		why := fmt.Sprintf("a human takes %s over, with a touch of the passkey; checkpoint %s has what was there", undo.Count(len(do), "change"), p.Before.ID)
		if m.GetSelection().GetHeld() {
			why = fmt.Sprintf("a human opens %q, which was held back, with a touch of the passkey; checkpoint %s has what was there", undo.Show(r.Workspace, p.Files.Paths[0]), p.Before.ID)
		}
		if err := s.record(ctx, c, "apply", line(r.ID), bawn.Allow, why); err != nil {
			return err
		}
		done, err := p.Apply()
		out.Done, out.Before = int32(done), p.Before.ID
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

// doom calls f with a copy that a human wants to discard, as he has seen it.
func (s *reviews) doom(session, listing string, f func(*copies.Review) error) error {
	if s.o.Touches == nil {
		return missing("passkeys")
	}
	return s.review(session, Copies.Open, func(r *copies.Review, l *copies.Listing) error {
		if l.Digest != listing {
			return errSeen
		}
		l.Close()
		return f(r)
	})
}

// discarding binds a touch to this session and to what was shown of it.
func discarding(session, listing string) string { return "discard " + session + " " + listing }

// PreviewDiscard is the service's.
func (s *reviews) PreviewDiscard(ctx context.Context, m *bawnv1.CopyServicePreviewDiscardRequest) (*bawnv1.CopyServicePreviewDiscardResponse, error) {
	c, _ := callerOf(ctx)
	out := &bawnv1.CopyServicePreviewDiscardResponse{}
	err := s.doom(m.GetSession(), m.GetListing(), func(r *copies.Review) (err error) {
		out.Ceremony, out.Options, err = s.o.Touches.BeginTouch(ctx, c.Device, discarding(r.ID, m.GetListing()))
		return inside(err)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Discard is the service's. The touch is checked first.
func (s *reviews) Discard(ctx context.Context, m *bawnv1.CopyServiceDiscardRequest) (*bawnv1.CopyServiceDiscardResponse, error) {
	c, _ := callerOf(ctx)
	if s.o.Touches == nil {
		return nil, missing("passkeys")
	}
	if err := s.o.Touches.FinishTouch(ctx, c.Device, discarding(m.GetSession(), m.GetListing()), m.GetCeremony(), m.GetCredential()); err != nil {
		return nil, inside(err)
	}
	err := s.doom(m.GetSession(), m.GetListing(), func(r *copies.Review) error {
		if err := s.record(ctx, c, "discard", line(r.ID), bawn.Allow, "a human discards the copy of the session, with a touch of the passkey"); err != nil {
			return err
		}
		return later(r.Remove())
	})
	if err != nil {
		return nil, err
	}
	return &bawnv1.CopyServiceDiscardResponse{}, nil
}
