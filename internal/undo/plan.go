package undo

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/gitstore"
)

// A Plan is the list of an undo's steps. Close ends it.
type Plan struct {
	Target
	Files checkpoint.Undo
	Git   []gitstore.RefChange // with what stays because the human has changed it
	// Before is the checkpoint of the present. It goes with Close unless the plan is
	// applied.
	Before *checkpoint.Checkpoint

	workspace string
	git       string
	restore   *gitstore.Restore
	store     *checkpoint.Store
	taking    *checkpoint.Taking
	scan      checkpoint.Options
	applied   bool
}

// A Request says what to undo.
type Request struct {
	State, Workspace string
	Target           Target
	// Make makes Target.To, if it is not nil: the changes of a session on a copy.
	Make Source
	// Prefer says what becomes of what both sides have changed, where Make is not nil.
	Prefer Prefer
	// Copy is the name of what is taken over.
	Copy  string
	Own   []string // Bawn's own directories, which no checkpoint has
	Paths []string // absolute; none for all, with the state of git
	Path  string   // where git is looked for (PATH)
	// Override also takes back later changes of the human.
	Override bool
}

// Prepare compares the present with where an undo leads. The workspace is not
// written.
func Prepare(r Request) (_ *Plan, err error) {
	p := &Plan{Target: r.Target, workspace: r.Workspace, Files: checkpoint.Undo{To: r.Target.To, After: r.Target.After, Paths: r.Paths}}
	if r.Override {
		p.Files.After = nil
	}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if p.store, err = checkpoint.Open(checkpoint.Place(r.State, r.Workspace), patience); err != nil {
		return nil, err
	}
	if r.Make != nil {
		if p.To, err = r.Make(p.store); err != nil {
			return nil, err
		}
		p.Files.To, p.Files.Theirs = p.To, r.Prefer == Theirs
		p.Files.Merge = func(old, theirs, mine []byte) ([]byte, string) { return Merge(old, theirs, mine, r.Prefer) }
	}
	dirs, files := roots(p.To)
	p.scan = checkpoint.Options{Workspace: r.Workspace, Why: checkpoint.BeforeUndo, Roots: dirs, Files: files, Without: r.Own, Running: true}
	if r.Make != nil { // files alone; it can be taken back like a session
		p.scan.Why, p.scan.Session, p.scan.Copy = checkpoint.BeforeApply, strings.ToLower(rand.Text()), r.Copy
	}
	if p.taking, err = p.store.Scan(p.scan); err != nil {
		return nil, err
	}
	var git []byte
	if p.git = gitDirOf(r.Workspace); r.Make == nil {
		git, err = snapshot(p.git)
	}
	if err != nil && p.To.Git != nil { // or the files alone come back
		return nil, err
	}
	if p.Before, err = p.taking.Keep(git); err != nil {
		return nil, fmt.Errorf("keep the present, without which nothing is undone: %w", err)
	}
	if err = p.taking.Plan(&p.Files); err != nil {
		return nil, err
	}
	if p.To.Git == nil || len(r.Paths) > 0 {
		return p, nil
	}
	return p, p.planGit(r)
}

func (p *Plan) planGit(r Request) (err error) {
	if p.git == "" {
		return errors.New("the repository's git directory is gone; nothing is undone. \"git clone\" or \"git init\" makes one anew, or name the files to put back")
	}
	var after []byte
	if p.Files.After != nil {
		after = p.Files.After.Git
	}
	if p.restore, err = gitstore.PlanRestore(p.git, r.Path, p.To.Git, after); err != nil {
		return err
	}
	p.Git = p.restore.Changes()
	gone := p.restore.GoneTrees()
	p.Files.Kept = slices.DeleteFunc(p.Files.Kept, func(c checkpoint.Change) bool { return c.Why == checkpoint.WhyInside && slices.Contains(gone, c.Path) })
	return nil
}

// roots are the directories of a checkpoint that are there, and the single files whose
// directory is.
func roots(c *checkpoint.Checkpoint) (dirs, files []string) {
	for _, r := range c.Roots {
		switch fi, err := os.Lstat(r.Path); {
		case err != nil || !fi.IsDir():
		case r.File != "":
			files = append(files, r.Top())
		default:
			dirs = append(dirs, r.Path)
		}
	}
	return dirs, files
}

// Empty reports whether there is nothing to do.
func (p *Plan) Empty() bool {
	return len(p.Files.Changes) == 0 && !slices.ContainsFunc(p.Git, func(c gitstore.RefChange) bool { return !c.Conflict })
}

// Apply undoes. It goes on after an error and returns how much it did of the files.
func (p *Plan) Apply() (done int, err error) {
	if err := p.taking.Finish(); err != nil {
		return 0, err
	}
	p.applied = true
	done, err = p.Files.Apply()
	if p.restore != nil {
		err = errors.Join(err, p.restore.Apply())
	}
	if p.scan.Session != "" {
		err = errors.Join(err, p.keepEnd())
	}
	return done, err
}

// keepEnd keeps what an apply has led to: an undo tells it from later changes.
func (p *Plan) keepEnd() error {
	o := p.scan
	o.Why = checkpoint.AtEnd
	t, err := p.store.Scan(o)
	if err != nil {
		return err
	}
	defer t.Close()
	if _, err = t.Keep(nil); err != nil {
		return err
	}
	return t.Finish()
}

// Close ends the plan.
func (p *Plan) Close() {
	p.taking.Close()
	if p.Before != nil && !p.applied {
		_ = p.store.Forget(p.Before.ID) // or it is one more
	}
	if p.store != nil {
		_ = p.store.Close()
	}
}
