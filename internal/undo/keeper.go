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
	patience = 10 * time.Second // until another session has let go of the store
	brief    = 8 * time.Second  // that a guest waits before it destroys
)

// lasting is how old a session is that will be there for longer.
const lasting = 100 * time.Millisecond

// room is how large a store may be for what is taken within a session. What is
// beyond is left for how sessions begin and end.
const room = 1 << 30

// Options say what the checkpoints of a session are of.
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

// A Keeper takes the checkpoints of one session. Its methods may be called from
// any goroutine; those for nil do nothing.
type Keeper struct {
	o      Options
	dir    string
	git    string // the workspace's git directory, or ""
	covers atomic.Bool
	runs   atomic.Bool // the guest

	scanned, kept chan struct{} // closed when the first checkpoint is so far
	failed        error         // of the first checkpoint
	noGit         error         // why the state of git is not in it
	first         *checkpoint.Checkpoint
	keeping       bool // Keep was called
	settled       bool // it is on the disk

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
func Begin(o Options) *Keeper {
	k := &Keeper{o: o, dir: checkpoint.Place(o.State, o.Workspace), scanned: make(chan struct{}), kept: make(chan struct{}), prompts: make(chan struct{}, 1)}
	k.mu.Lock()
	go func() {
		defer close(k.scanned)
		k.failed = k.scan(checkpoint.AtStart, patience)
	}()
	return k
}

// scan opens the store and looks at every file. The caller holds the lock.
func (k *Keeper) scan(why checkpoint.Why, wait time.Duration) (err error) {
	if slices.Contains(k.o.Roots, k.o.Workspace) {
		k.git = gitDirOf(k.o.Workspace)
	}
	if k.store, err = checkpoint.Open(k.dir, wait); err != nil {
		return err
	}
	running := why != checkpoint.AtStart || k.o.Others != nil && k.o.Others()
	o := checkpoint.Options{Session: k.o.Session, Agent: k.o.Agent, Workspace: k.o.Workspace, Why: why, Roots: k.o.Roots, Files: k.o.Files, Without: k.o.Own, Running: running}
	if k.git != "" {
		o.Tracked = gitstore.Tracked(k.git, k.o.Workspace)
	}
	if why == checkpoint.AtStart {
		o.Progress = k.o.Progress
	}
	if k.taking, err = k.store.Scan(o); err != nil {
		k.release()
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
func (k *Keeper) release() {
	k.taking.Close()
	if k.store != nil {
		_ = k.store.Close()
	}
	k.store, k.taking = nil, nil
}

// Uncovered waits for the first scan and returns what no checkpoint can hold.
func (k *Keeper) Uncovered() []checkpoint.Uncovering {
	if k == nil {
		return nil
	}
	<-k.scanned
	if k.failed != nil {
		return nil
	}
	return k.taking.Uncovered()
}

// Keep begins to keep what the first scan has found. It is called once.
func (k *Keeper) Keep() {
	if k == nil {
		return
	}
	k.keeping = true
	go func() {
		defer close(k.kept)
		<-k.scanned
		if k.failed == nil {
			k.first, k.failed = k.keep()
		}
		k.last = k.first
		k.covers.Store(k.failed == nil && k.noGit == nil)
	}()
}

// keep keeps what was scanned. The caller holds the lock.
func (k *Keeper) keep() (*checkpoint.Checkpoint, error) {
	git, err := snapshot(k.git)
	k.noGit = err
	return k.taking.Keep(git)
}

// snapshot is the state of a repository; nil without one.
func snapshot(git string) (json.RawMessage, error) {
	if git == "" {
		return nil, nil
	}
	return gitstore.Snapshot(git)
}

// Ready waits until the first checkpoint is kept. An error says that the session
// goes without.
func (k *Keeper) Ready() error {
	if k == nil {
		return nil
	}
	<-k.kept
	return cmp.Or(k.failed, k.noGit)
}

// Covered reports whether the last checkpoint could be taken.
func (k *Keeper) Covered() bool { return k != nil && k.covers.Load() }

// Run begins to take checkpoints while the guest runs. It is called once, after Ready.
func (k *Keeper) Run() {
	if k == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	k.stop = stop
	k.runs.Store(true)
	k.done.Go(func() {
		k.settle(ctx)
		k.watch(ctx)
	})
}

// settle has the first checkpoint on the disk. What is known already waits: a session
// that ends at once and changes nothing leaves no checkpoint.
func (k *Keeper) settle(ctx context.Context) {
	defer k.mu.Unlock()
	defer k.release()
	if k.taking == nil || k.failed != nil {
		return
	}
	if !k.taking.Changed() {
		timer := time.NewTimer(lasting)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
	k.settled = k.taking.Finish() == nil // the checkpoint is there either way; the next scan takes longer
}

// watch takes a checkpoint now and then, and at each prompt.
func (k *Keeper) watch(ctx context.Context) {
	for wait := every; ; {
		timer := time.NewTimer(wait)
		why := checkpoint.AtTime
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-k.prompts:
			timer.Stop()
			why = checkpoint.AtPrompt
		case <-timer.C:
		}
		began := time.Now()
		_ = k.take(ctx, why, 0) // it is told where it counts: before something is destroyed
		wait = max(every, share*time.Since(began))
	}
}

// Prompt says that the human has given the agent a task. It doesn't wait.
func (k *Keeper) Prompt() {
	if k == nil {
		return
	}
	select {
	case k.prompts <- struct{}{}:
	default: // one is on its way
	}
}

// Before keeps what a command is about to destroy. If that can't be, what is
// destroyed from now on is not covered.
func (k *Keeper) Before(ctx context.Context) error {
	if k == nil {
		return errors.New("this session has no checkpoints")
	}
	if !k.runs.Load() {
		return nil // the first checkpoint is on its way
	}
	ctx, cancel := context.WithTimeout(ctx, brief)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- k.take(ctx, checkpoint.Destruction, brief) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	k.covers.Store(err == nil)
	return err
}

// errFull says that a session's own checkpoints have had their share.
var errFull = fmt.Errorf("its checkpoints have more than %d MiB", room>>20)

// take takes a checkpoint, unless nothing has changed.
func (k *Keeper) take(ctx context.Context, why checkpoint.Why, wait time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended || ctx.Err() != nil {
		return context.Canceled
	}
	if k.failed != nil {
		return k.failed
	}
	if size, err := checkpoint.Size(k.dir); err != nil || size > room {
		return errors.Join(err, errFull)
	}
	if err := k.scan(why, wait); err != nil {
		return err
	}
	defer k.release()
	if !k.taking.Changed() {
		return nil
	}
	c, err := k.keep()
	if err != nil {
		return err
	}
	k.last = c
	return errors.Join(k.taking.Finish(), k.noGit)
}

// An Ending says what a session has left.
type Ending struct {
	Changed int // names that are new, different or gone
	Lost    int // those of them that were there before
}

func (e *Ending) String() string { return Files(e.Changed) + " changed" }

// Ended begins to look at what the guest has left, which has ended.
func (k *Keeper) Ended() {
	if k == nil || k.stop == nil || k.atEnd != nil {
		return
	}
	k.stop()
	k.done.Wait()
	k.atEnd = make(chan error, 1)
	k.mu.Lock()
	go func() {
		if k.failed != nil {
			k.atEnd <- k.failed
			return
		}
		k.atEnd <- k.scan(checkpoint.AtEnd, patience)
	}()
}

// End keeps what the guest has left, and removes what is too old. The guest's commits
// are published. It may be called more than once; nil says that there is nothing to
// tell.
func (k *Keeper) End() (*Ending, error) {
	if k == nil || k.ended {
		return nil, nil
	}
	<-k.scanned
	k.Ended()
	if k.stop == nil { // no guest has run
		k.quit()
		return nil, nil
	}
	err := <-k.atEnd
	defer k.mu.Unlock()
	defer k.release()
	k.ended = true
	if k.first == nil {
		return nil, nil // it was told of
	}
	if err == nil {
		err = k.keepEnd()
	}
	if err != nil {
		return nil, fmt.Errorf("keep what the session has left: %w", err)
	}
	if k.last == k.first {
		return nil, nil
	}
	return k.ending()
}

// keepEnd keeps the end of a session. One that has changed nothing leaves no
// checkpoint.
func (k *Keeper) keepEnd() error {
	if k.last == k.first && !k.taking.Changed() {
		if git, err := snapshot(k.git); err == nil && string(git) == string(k.first.Git) {
			return k.store.Forget(k.first.ID)
		}
	}
	c, err := k.keep()
	if err != nil {
		return err
	}
	k.last = c
	if !k.settled {
		err = k.store.Sync(k.first.ID)
	}
	return errors.Join(err, k.taking.Finish(), k.noGit)
}

// ending compares how the session began and ended, and removes what is too old.
func (k *Keeper) ending() (*Ending, error) {
	list, err := k.store.Compare(k.first, k.last, nil)
	if err != nil {
		return nil, err
	}
	e := &Ending{Changed: len(list)}
	for _, d := range list {
		if d.Old != nil {
			e.Lost++
		}
	}
	k.taking.Close()
	return e, Prune(k.store, k.o.State, k.dir, time.Now())
}

// quit ends a session that has not begun.
func (k *Keeper) quit() {
	if k.keeping {
		<-k.kept
	}
	if k.first != nil {
		_ = k.store.Forget(k.first.ID) // or it is one more
	}
	k.release()
	k.ended = true
	k.mu.Unlock()
}

// changed reports whether two checkpoints differ.
func changed(a, b *checkpoint.Checkpoint) bool {
	return string(a.Git) != string(b.Git) || !slices.EqualFunc(a.Roots, b.Roots, func(x, y checkpoint.Root) bool {
		return x.Top() == y.Top() && x.Mode == y.Mode && x.Tree == y.Tree
	})
}
