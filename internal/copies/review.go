package copies

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/undo"
)

// A Reviewer opens the copies of a user's sessions for a human, who looks at them, takes
// them over or discards them.
type Reviewer struct {
	State string
	Own   []string // Bawn's own directories, which no checkpoint has
	Path  string   // where git is looked for (PATH)
	// Runs reports whether a session lives.
	Runs func(session string) bool
	// Writing returns the sessions that run and write in one of these directories.
	Writing func(roots []string) ([]string, error)
	// Forget removes the refs that hold what a session has committed.
	Forget func(*Record) error
}

// A Seen is a copy in a list.
type Seen struct {
	Record
	Files int // that are new, different or gone; -1 where that can't be read
	Runs  bool
}

// ErrNoCopy says that a session has left no copy.
var ErrNoCopy = errors.New("no copy of such a session is kept")

// List returns at most so many copies, the newest first.
func (v *Reviewer) List(most int) (all []Seen, err error) {
	list, err := List(v.State, "")
	for _, r := range slices.Backward(list) {
		c, gone := Peek(v.State, r.ID)
		if gone != nil || len(all) == most {
			continue
		}
		n, _, failed := c.Changed()
		if failed != nil {
			n = -1
		}
		all = append(all, Seen{Record: c.Record, Files: n, Runs: v.Runs(r.ID)})
	}
	return all, err
}

// A Review is a copy that a human looks at. Close ends it.
type Review struct {
	*Copy
	// Left is what the last plan or listing has left in the copy.
	Left []checkpoint.Leaving

	of *Reviewer
}

// Look opens the copy of a session with exactly this ID to look at it, also while the
// session runs. It fails with ErrNoCopy.
func (v *Reviewer) Look(id string) (*Review, error) {
	if err := v.find(id); err != nil {
		return nil, err
	}
	c, err := Open(v.State, id)
	if errors.Is(err, ErrRunning) {
		c, err = Peek(v.State, id)
	}
	if err != nil {
		return nil, err
	}
	return &Review{Copy: c, of: v}, nil
}

// lingers is how long the processes of a killed bawn may hold a copy: they die after it.
const lingers = 5 * time.Second

// Open opens the copy of a session with exactly this ID to take it over or discard it. It
// fails with ErrNoCopy, and with ErrRunning while the session runs.
func (v *Reviewer) Open(id string) (*Review, error) {
	if err := v.find(id); err != nil {
		return nil, err
	}
	c, err := Open(v.State, id)
	for until := time.Now().Add(lingers); errors.Is(err, ErrRunning) && !v.Runs(id) && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
		c, err = Open(v.State, id)
	}
	if err != nil {
		return nil, err
	}
	return &Review{Copy: c, of: v}, nil
}

// find looks for a copy in the list of all: an ID never becomes a path by itself.
func (v *Reviewer) find(id string) error {
	list, err := List(v.State, "")
	if err == nil && !slices.ContainsFunc(list, func(r Record) bool { return r.ID == id }) {
		err = ErrNoCopy
	}
	return err
}

// Compare compares the copy with what it was made from. With paths, which are absolute,
// only these and everything below them count.
func (r *Review) Compare(paths []string) (*undo.Diff, error) {
	return r.compare(paths, func(s *checkpoint.Store, base *checkpoint.Checkpoint) (*checkpoint.Checkpoint, error) {
		return r.MergeAll(s, base)
	})
}

func (r *Review) compare(paths []string, merge func(*checkpoint.Store, *checkpoint.Checkpoint) (*checkpoint.Checkpoint, error)) (*undo.Diff, error) {
	base, err := r.BaseOf(r.of.State)
	if err != nil {
		return nil, err
	}
	return undo.CompareCopy(checkpoint.Place(r.of.State, r.Workspace), base, func(s *checkpoint.Store) (*checkpoint.Checkpoint, error) {
		return merge(s, base)
	}, paths)
}

// Idle fails with an undo.RunningError while a session writes in a workspace itself.
func (v *Reviewer) Idle(workspace string) error {
	running, err := v.Writing([]string{workspace})
	if err == nil && len(running) > 0 {
		err = &undo.RunningError{Session: running[0], Workspace: workspace}
	}
	return err
}

// Prepare plans to take over what the session has changed, of paths if there are some.
// What is held back stays, but for opened. Paths are absolute. It fails with an
// undo.RunningError while a session writes in the workspace itself.
func (r *Review) Prepare(paths, opened []string, prefer undo.Prefer) (*undo.Plan, error) {
	if err := r.of.Idle(r.Workspace); err != nil {
		return nil, err
	}
	base, err := r.BaseOf(r.of.State)
	if err != nil {
		return nil, err
	}
	return undo.Prepare(undo.Request{
		State: r.of.State, Workspace: r.Workspace, Target: undo.Target{After: base, Session: r.ID}, Own: r.of.Own, Paths: paths, Path: r.of.Path, Prefer: prefer, Copy: r.Called(),
		Make: func(s *checkpoint.Store) (c *checkpoint.Checkpoint, err error) {
			c, r.Left, err = r.Merge(s, base, opened)
			return c, err
		},
	})
}

// Stays lists what stays in the copy, of paths if there are some: what is held back first.
func (r *Review) Stays(paths []string) (list []checkpoint.Leaving) {
	for _, held := range []bool{true, false} {
		for _, l := range r.Left {
			abs := r.Workspace + "/" + l.Path
			if l.Held == held && (len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool { return p == abs || strings.HasPrefix(abs, p+"/") })) {
				list = append(list, l)
			}
		}
	}
	return list
}

// Remove removes the copy with what its session has changed and committed.
func (r *Review) Remove() error {
	if err := errors.Join(r.of.Forget(&r.Record), r.ForgetBase(r.of.State, 10*time.Second)); err != nil {
		return err
	}
	return r.Discard()
}

// applyWords are what an undo's steps are called where a copy is taken over.
var applyWords = map[string]string{"put back": "add", "restore": "change"}

// StepWord says what a step of a plan does.
func StepWord(s undo.Step) string {
	if word := applyWords[s.What]; word != "" {
		return word
	}
	return s.What
}

// ConflictWhy says why a step of a plan leaves the human's file, from the copy's point of
// view.
func ConflictWhy(s undo.Step) string {
	const since = "since the session"
	return strings.Replace(s.Detail, since, since+" began", 1) + "; the session's stays in the copy"
}
