package undo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/gitstore"
)

// Times of a session's checkpoints.
const (
	every    = 5 * time.Minute  // while something changes
	share    = 100              // a scan takes at most this part of the time between scans
	patience = 10 * time.Second // until another session has released the store
	brief    = 8 * time.Second  // that a guest waits before it destroys
)

// lasting is how old a session is that will be there for longer.
const lasting = 100 * time.Millisecond

// room is how large a store may be for checkpoints within a session. The rest
// is left for the beginnings and ends of sessions.
const room = 1 << 30

// Options say what the checkpoints of a session cover.
type Options struct {
	State          string // Bawn's state directory
	Workspace      string
	Roots          []string // directories that the session writes, links resolved
	Files          []string // single files that it writes, likewise
	Own            []string // Bawn's own directories, which no checkpoint has
	Session, Agent string
	// Others reports whether another session's guest writes in one of the roots.
	Others func() bool
	// Progress is told how many bytes of how many are kept. It may be nil.
	Progress func(done, all int64)
}

// A Taker takes the checkpoints of one session. Its methods may be called from
// any goroutine; those for nil do nothing.
type Taker struct {
	o      Options
	dir    string
	git    string // the workspace's git directory, or ""
	covers atomic.Bool
	runs   atomic.Bool // the guest

	scanned, kept  chan struct{} // closed when the first checkpoint is so far
	failed         error         // of the first checkpoint
	noGit, atFirst error         // why the state of git is not in the last checkpoint and the first
	first          *checkpoint.Checkpoint
	keeping        bool // Keep was called
	settled        bool // it is on the disk

	mu     sync.Mutex // held while a checkpoint is taken
	store  *checkpoint.Store
	taking *checkpoint.Taking
	last   *checkpoint.Checkpoint
	ended  bool

	prompts chan struct{}
	atEnd   chan error // of the scan at the end; nil before
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// Begin begins to scan for the checkpoint of a session's start.
func Begin(o Options) *Taker {
	t := &Taker{o: o, dir: checkpoint.Place(o.State, o.Workspace), scanned: make(chan struct{}), kept: make(chan struct{}), prompts: make(chan struct{}, 1)}
	t.mu.Lock()
	go func() {
		defer close(t.scanned)
		t.failed = t.scan(checkpoint.AtStart, patience)
	}()
	return t
}

// scan opens the store and looks at every file. The caller holds the lock.
func (t *Taker) scan(why checkpoint.Why, wait time.Duration) (err error) {
	if slices.Contains(t.o.Roots, t.o.Workspace) {
		t.git = gitDirOf(t.o.Workspace)
	}
	if t.store, err = checkpoint.Open(t.dir, wait); err != nil {
		return err
	}
	running := why != checkpoint.AtStart || t.o.Others != nil && t.o.Others()
	o := checkpoint.Options{Session: t.o.Session, Agent: t.o.Agent, Workspace: t.o.Workspace, Why: why, Roots: t.o.Roots, Files: t.o.Files, Without: t.o.Own, Running: running}
	if t.git != "" {
		o.Tracked = gitstore.Tracked(t.git, t.o.Workspace)
	}
	if why == checkpoint.AtStart {
		o.Progress = t.o.Progress
	}
	if t.taking, err = t.store.Scan(o); err != nil {
		t.release()
	}
	return err
}

// gitDirOf returns the git directory of a workspace, or "".
func gitDirOf(workspace string) string {
	r, err := gitstore.Find(workspace)
	if err != nil || r == nil { // none that a session writes
		return ""
	}
	return cmp.Or(r.Admin, r.Common)
}

// release lets others have the store. The caller holds the lock.
func (t *Taker) release() {
	t.taking.Close()
	if t.store != nil {
		_ = t.store.Close()
	}
	t.store, t.taking = nil, nil
}

// Uncovered waits for the first scan and returns what no checkpoint can hold.
func (t *Taker) Uncovered() []checkpoint.Uncovering {
	if t == nil {
		return nil
	}
	<-t.scanned
	if t.failed != nil {
		return nil
	}
	return t.taking.Uncovered()
}

// Keep begins to keep the result of the first scan. It is called once.
func (t *Taker) Keep() {
	if t == nil {
		return
	}
	t.keeping = true
	go func() {
		defer close(t.kept)
		<-t.scanned
		if t.failed == nil {
			t.first, t.failed = t.keep()
		}
		t.last, t.atFirst = t.first, t.noGit
		t.covers.Store(t.failed == nil && t.noGit == nil)
	}()
}

// keep keeps what was scanned. The caller holds the lock.
func (t *Taker) keep() (*checkpoint.Checkpoint, error) {
	git, err := snapshot(t.git)
	t.noGit = nil
	if err != nil {
		t.noGit = &NoGitError{err}
	}
	return t.taking.Keep(git)
}

// A NoGitError says why a checkpoint is without the state of the repository. It has
// the files.
type NoGitError struct{ err error }

func (e *NoGitError) Error() string { return e.err.Error() }
func (e *NoGitError) Unwrap() error { return e.err }

// snapshot is the state of a repository; nil without one.
func snapshot(git string) (json.RawMessage, error) {
	if git == "" {
		return nil, nil
	}
	return gitstore.Snapshot(git)
}

// Ready waits until the first checkpoint is kept. An error says that the session
// goes without.
func (t *Taker) Ready() error {
	if t == nil {
		return nil
	}
	<-t.kept
	return cmp.Or(t.failed, t.noGit)
}

// Covered reports whether the last checkpoint could be taken.
func (t *Taker) Covered() bool { return t != nil && t.covers.Load() }

// Run begins to take checkpoints while the guest runs. It is called once, after Ready.
func (t *Taker) Run() {
	if t == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	t.stop = stop
	t.runs.Store(true)
	t.done.Go(func() {
		t.settle(ctx)
		t.watch(ctx)
	})
}

// settle has the first checkpoint on the disk. A known state waits: a session that
// ends at once and changes nothing leaves no checkpoint.
func (t *Taker) settle(ctx context.Context) {
	defer t.mu.Unlock()
	defer t.release()
	if t.taking == nil || t.failed != nil {
		return
	}
	if !t.taking.Changed() {
		timer := time.NewTimer(lasting)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
	t.settled = t.taking.Finish() == nil // the checkpoint is there either way; the next scan takes longer
}

// watch takes a checkpoint now and then, and at each prompt.
func (t *Taker) watch(ctx context.Context) {
	for wait := every; ; {
		timer := time.NewTimer(wait)
		why := checkpoint.AtTime
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-t.prompts:
			timer.Stop()
			why = checkpoint.AtPrompt
		case <-timer.C:
		}
		began := time.Now()
		_ = t.take(ctx, why, 0) // it is told where it counts: before something is destroyed
		wait = max(every, share*time.Since(began))
	}
}

// Prompt says that the human has given the agent a task. It doesn't wait.
func (t *Taker) Prompt() {
	if t == nil {
		return
	}
	select {
	case t.prompts <- struct{}{}:
	default: // one is on its way
	}
}

// Before keeps the files that a command is about to destroy. If that fails,
// files destroyed from now on are not covered.
func (t *Taker) Before(ctx context.Context) error {
	if t == nil {
		return errors.New("this session has no checkpoints")
	}
	if !t.runs.Load() {
		return nil // the first checkpoint is on its way
	}
	ctx, cancel := context.WithTimeout(ctx, brief)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- t.take(ctx, checkpoint.Destruction, brief) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.covers.Store(err == nil)
	return err
}

// errFull says that a session's own checkpoints have had their share.
var errFull = fmt.Errorf("its checkpoints have more than %d MiB", room>>20)

// take takes a checkpoint, unless nothing has changed.
func (t *Taker) take(ctx context.Context, why checkpoint.Why, wait time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || ctx.Err() != nil {
		return context.Canceled
	}
	if t.failed != nil {
		return t.failed
	}
	if size, err := checkpoint.Size(t.dir); err != nil || size > room {
		return errors.Join(err, errFull)
	}
	if err := t.scan(why, wait); err != nil {
		return err
	}
	defer t.release()
	if !t.taking.Changed() {
		return nil
	}
	c, err := t.keep()
	if err != nil {
		return err
	}
	t.last = c
	return errors.Join(t.taking.Finish(), t.noGit)
}

// An Ending describes a session's end.
type Ending struct {
	Changed int // names that are new, different or gone
	Lost    int // those that existed before
}

func (e *Ending) String() string { return Files(e.Changed) + " changed" }

// Ended begins to look at the result of the guest, which has ended.
func (t *Taker) Ended() {
	if t == nil || t.stop == nil || t.atEnd != nil {
		return
	}
	t.stop()
	t.done.Wait()
	t.atEnd = make(chan error, 1)
	t.mu.Lock()
	go func() {
		if t.failed != nil {
			t.atEnd <- t.failed
			return
		}
		t.atEnd <- t.scan(checkpoint.AtEnd, patience)
	}()
}

// End keeps the guest's result, and removes checkpoints that are too old The guest's
// commits are published. It may be called more than once; nil says that there is
// nothing to tell.
func (t *Taker) End() (*Ending, error) {
	if t == nil || t.ended {
		return nil, nil
	}
	<-t.scanned
	t.Ended()
	if t.stop == nil { // no guest has run
		t.quit()
		return nil, nil
	}
	err := <-t.atEnd
	defer t.mu.Unlock()
	defer t.release()
	t.ended = true
	if t.first == nil {
		return nil, nil // it was told of
	}
	if err == nil {
		err = t.keepEnd()
	}
	if err != nil {
		return nil, fmt.Errorf("keep what the session has left: %w", err)
	}
	if t.last == t.first {
		return nil, nil
	}
	return t.ending()
}

// keepEnd keeps the end of a session. A session that has changed nothing leaves
// no checkpoint.
func (t *Taker) keepEnd() error {
	if t.last == t.first && !t.taking.Changed() {
		git, err := snapshot(t.git)
		if t.told(err) || err == nil && string(git) == string(t.first.Git) {
			return t.store.Forget(t.first.ID)
		}
	}
	c, err := t.keep()
	if err != nil {
		return err
	}
	t.last = c
	if !t.settled {
		err = t.store.Sync(t.first.ID)
	}
	if t.told(t.noGit) {
		t.noGit = nil
	}
	return errors.Join(err, t.taking.Finish(), t.noGit)
}

// told reports whether the human knows from the start why the state of git is not kept.
func (t *Taker) told(noGit error) bool {
	return noGit != nil && t.atFirst != nil && noGit.Error() == t.atFirst.Error()
}

// ending compares how the session began and ended, and removes what is too old.
func (t *Taker) ending() (*Ending, error) {
	list, err := t.store.Compare(t.first, t.last, nil)
	if err != nil {
		return nil, err
	}
	e := &Ending{Changed: len(list)}
	for _, d := range list {
		if d.Old != nil {
			e.Lost++
		}
	}
	t.taking.Close()
	return e, Prune(t.store, t.o.State, t.dir, time.Now())
}

// quit ends a session that has not begun.
func (t *Taker) quit() {
	if t.keeping {
		<-t.kept
	}
	if t.first != nil {
		_ = t.store.Forget(t.first.ID) // or it is one more
	}
	t.release()
	t.ended = true
	t.mu.Unlock()
}

// changed reports whether two checkpoints differ.
func changed(a, b *checkpoint.Checkpoint) bool {
	return string(a.Git) != string(b.Git) || !slices.EqualFunc(a.Roots, b.Roots, func(x, y checkpoint.Root) bool {
		return x.Top() == y.Top() && x.Mode == y.Mode && x.Tree == y.Tree
	})
}
