package approval

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
)

// Grace is how long an asker whose connection is lost may stay away before it
// is looked whether its session lives at all.
const Grace = 30 * time.Second

// Options of a Queue.
type Options struct {
	Store    Store                     // nil is a Memory of the queue's own
	Recorder bawn.Recorder             // gets an event for each change before it is announced; may be nil
	Dead     func(session string) bool // whether a session that is away has ended; nil is always
	Log      *slog.Logger              // gets errors that no caller can receive; may be nil
	Now      func() time.Time          // nil is the machine's clock
}

// A Queue is a Prompter: it holds pending questions, gives each question's one
// answer to all its askers, and ends questions in time. Its Store has every change
// before it is announced.
type Queue struct {
	opts Options
	ctx  context.Context // of the queue, not of an asker: work that has begun is finished
	stop context.CancelFunc

	mu       sync.Mutex
	closed   bool
	next     uint64
	pending  map[string]*approval   // by lead
	askers   map[string]*asker      // of pending questions, by ID
	keys     map[[32]byte]*approval // that can be joined
	sessions map[registered]int     // askers that are pending
	trees    map[string]int         // the same, by tree
	owners   map[string]int         // the same, by owner
	bytes    int
	// written is in all, by tree: see MaxWritten. It only grows, since to forget a
	// tree would be to let it begin anew. One takes far less memory than its first
	// question has written.
	written  map[string]int64
	parents  map[registered]string // of sessions
	claims   map[registered]int    // how often each is registered
	watchers map[*watcher]struct{}
}

var _ Prompter = (*Queue)(nil)

// An approval is one question that is pending, of one asker or several.
type approval struct {
	rec     Record // guarded by Queue.mu until done
	settled bool   // somebody settles it
	lead    string
	key     [32]byte
	root    string
	order   uint64
	askers  map[string]*asker
	timer   *time.Timer
	told    bool          // frontends know of it
	gate    sync.RWMutex  // held to put an asker into the store; whole to share a yes out. Before Queue.mu
	ready   chan struct{} // closed when the first question is kept, or refused
	done    chan struct{} // closed when it is settled
	failure error         // why it has no answer, set before done is closed
}

// An asker is one session's question.
type asker struct {
	approval *approval // guarded by Queue.mu until done: it may become another
	question Question
	digest   [32]byte
	order    uint64
	stored   bool          // guarded by Queue.mu
	waiters  int           // calls of Ask; 0 while the connection is lost
	done     chan struct{} // closed when its approval is settled
	gone     chan struct{} // closed when it is withdrawn
	kept     chan struct{} // closed when it is in the store, or refused
	refused  error         // set before kept is closed
}

// NewQueue returns a queue with the store's pending questions. Overdue ones
// have expired, and missing events of the audit log are recorded now.
func NewQueue(ctx context.Context, o Options) (*Queue, error) {
	if o.Store == nil {
		o.Store = &Memory{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Dead == nil {
		o.Dead = func(string) bool { return true }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	q := &Queue{
		opts: o, pending: map[string]*approval{}, askers: map[string]*asker{}, keys: map[[32]byte]*approval{},
		sessions: map[registered]int{}, trees: map[string]int{}, owners: map[string]int{}, written: map[string]int64{},
		parents: map[registered]string{}, claims: map[registered]int{}, watchers: map[*watcher]struct{}{},
	}
	q.ctx, q.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := q.restore(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("read what is pending: %w", err), q.Close())
	}
	return q, nil
}

// Close ends the queue. Pending questions stay so in the store.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	for _, ap := range q.pending {
		ap.timer.Stop()
		ap.failure = ErrClosed
		ap.over()
	}
	clear(q.pending)
	clear(q.askers)
	clear(q.keys)
	for w := range q.watchers {
		w.end()
	}
	q.stop()
	return nil
}

// registered is an owner's statement about a session; it does not apply to
// another owner's questions.
type registered struct{ owner, session string }

// Register says that a session lives and who its parent is, "" for none, until
// forget is called: same questions are one in a session's whole tree. If an
// owner registers twice, after a reconnect, both registrations must be
// forgotten.
func (q *Queue) Register(owner, session, parent string) (forget func()) {
	r := registered{owner, session}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.parents[r] = parent
	q.claims[r]++
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.claims[r]--; q.claims[r] == 0 {
			delete(q.claims, r)
			delete(q.parents, r)
		}
	})
}

// Owns reports whether a question is of that owner, be it pending or settled.
func (q *Queue) Owns(ctx context.Context, owner, id string) bool {
	q.mu.Lock()
	a := q.askers[id]
	q.mu.Unlock()
	if a != nil {
		return a.question.Owner == owner
	}
	e, err := q.opts.Store.Get(ctx, id)
	return err == nil && e.Owner == owner
}

// maxDepth ends the search for a root where parents go round in circles.
const maxDepth = 64

// root returns the topmost session above. A registered parent counts more than
// one that a question names.
func (q *Queue) root(owner, session, parent string) string {
	for range maxDepth {
		if p, there := q.parents[registered{owner, session}]; there {
			parent = p
		}
		if parent == "" || parent == session {
			break
		}
		session, parent = parent, ""
	}
	return session
}

// tree names the tree that a question is counted in: of its owner, so that a
// host which says another's session uses up none of its places.
func (q *Queue) tree(question *Question) string {
	session, parent := question.Session, question.Parent
	if question.Top != "" {
		session, parent = question.Top, ""
	}
	root := q.root(question.Owner, session, parent)
	if question.Owner != "" {
		root = question.Owner + " " + root
	}
	return root
}

// by is whose questions of a session are counted as one.
func (q *Question) by() registered { return registered{q.Owner, q.Session} }

// Ask is Prompter's. Where ctx ends with the cause ErrDetached the question stays,
// for Grace at least, and the same ID may be asked again.
func (q *Queue) Ask(ctx context.Context, question Question) (bawn.Answer, error) {
	question, err := Tidy(question, q.opts.Now())
	if err != nil {
		return bawn.Answer{}, err
	}
	if err := ctx.Err(); err != nil {
		return bawn.Answer{}, err
	}
	a, err := q.enter(question)
	switch {
	case err == nil:
		return q.wait(ctx, a)
	case errors.Is(err, errKnown):
		return q.recall(question)
	}
	return bawn.Answer{}, err
}

// errKnown says that the store has the ID already.
var errKnown = errors.New("the ID is in the store")

// enter finds or makes the asker and its approval.
func (q *Queue) enter(question Question) (*asker, error) {
	d := digest(&question)
	if a, err := q.present(question.ID, d); a != nil || err != nil {
		return a, err
	}
	switch _, err := q.opts.Store.Get(q.ctx, question.ID); {
	case err == nil: // settled, unless it was asked a moment ago
		if a, err := q.present(question.ID, d); a != nil || err != nil {
			return a, err
		}
		return nil, errKnown
	case !errors.Is(err, ErrUnknown):
		return nil, fmt.Errorf("look whether the question has been asked: %w", err)
	}
	a, fresh, err := q.admit(question, d)
	if err != nil {
		return nil, err
	}
	if !fresh { // somebody asked with the same ID meanwhile
		<-a.kept
		return a, a.refused
	}
	a.refused = q.keep(a)
	close(a.kept)
	return a, a.refused
}

// present returns the asker with that ID, if it is pending, with one waiter
// more.
func (q *Queue) present(id string, d [32]byte) (*asker, error) {
	q.mu.Lock()
	a := q.askers[id]
	if a != nil && a.digest == d {
		a.waiters++
	}
	q.mu.Unlock()
	switch {
	case a == nil:
		return nil, nil
	case a.digest != d:
		return nil, ErrMismatch
	}
	<-a.kept
	return a, a.refused
}

// admit makes an asker, and an approval unless there is one to join. It
// reports whether the asker is new.
func (q *Queue) admit(question Question, d [32]byte) (*asker, bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, false, ErrClosed
	}
	if a := q.askers[question.ID]; a != nil {
		if a.digest != d {
			return nil, false, ErrMismatch
		}
		a.waiters++
		return a, false, nil
	}
	root := q.tree(&question)
	if err := q.room(&question, root); err != nil {
		return nil, false, err
	}
	q.written[root] += question.cost()
	k := key(root, &question)
	ap := q.keys[k]
	if ap == nil {
		ap = q.begin(question, k, root)
	}
	return q.join(ap, question, d, 1), true, nil
}

// room refuses what would be too much.
func (q *Queue) room(question *Question, root string) error {
	switch {
	case q.sessions[question.by()] >= MaxPerSession:
		return &FullError{"of this session", MaxPerSession}
	case q.trees[root] >= MaxPerTree:
		return &FullError{"of this session and its children", MaxPerTree}
	case question.Owner != "" && q.owners[question.Owner] >= MaxPerOwner:
		return &FullError{"of this host", MaxPerOwner}
	case len(q.askers) >= MaxPending:
		return &FullError{"in all", MaxPending}
	case q.bytes+question.size() > MaxPendingBytes:
		return &FullError{"bytes of text in all", MaxPendingBytes}
	case q.written[root]+question.cost() > MaxWritten:
		return ErrSpent
	}
	return nil
}

// begin makes an approval. Nobody is told yet.
func (q *Queue) begin(question Question, k [32]byte, root string) *approval {
	q.next++
	ap := &approval{
		rec: Record{Question: question, State: Pending}, lead: question.ID, key: k, root: root, order: q.next,
		askers: map[string]*asker{}, ready: make(chan struct{}), done: make(chan struct{}),
	}
	ap.timer = time.AfterFunc(question.Expires.Sub(q.opts.Now()), func() { q.expire(ap) })
	q.pending[ap.lead], q.keys[k] = ap, ap
	return ap
}

// join adds an asker.
func (q *Queue) join(ap *approval, question Question, d [32]byte, waiters int) *asker {
	q.next++
	a := &asker{
		question: question, digest: d, order: q.next, waiters: waiters,
		gone: make(chan struct{}), kept: make(chan struct{}), done: make(chan struct{}),
	}
	q.askers[question.ID] = a
	q.belong(ap, a)
	q.count(ap, a, 1)
	return a
}

// belong makes an asker one of an approval, which lasts as long as the last of
// them may wait.
func (q *Queue) belong(ap *approval, a *asker) {
	a.approval = ap
	ap.askers[a.question.ID] = a
	ap.rec.Waiting++
	if until := a.question.Expires; until.After(ap.rec.Expires) {
		ap.rec.Expires = until
		ap.timer.Reset(until.Sub(q.opts.Now()))
	}
}

// over tells all waiting askers that the approval is settled.
func (ap *approval) over() {
	for _, a := range ap.askers {
		close(a.done)
	}
	close(ap.done)
}

// count adds an asker's share of the limits, or gives it back (-1).
func (q *Queue) count(ap *approval, a *asker, n int) {
	add(q.sessions, a.question.by(), n)
	add(q.trees, ap.root, n)
	add(q.owners, a.question.Owner, n)
	q.bytes += n * a.question.size()
}

func add[K comparable](m map[K]int, k K, n int) {
	if m[k] += n; m[k] <= 0 {
		delete(m, k)
	}
}

// keep puts an asker into the store and the log; then the frontends are told.
func (q *Queue) keep(a *asker) error {
	ap := q.hold(a)
	defer ap.gate.RUnlock()
	first := a.question.ID == ap.lead
	if first {
		defer close(ap.ready)
	}
	e := Entry{
		Record: Record{Question: a.question, State: Pending}, Lead: ap.lead,
		Digest: hex.EncodeToString(a.digest[:]), Key: hex.EncodeToString(ap.key[:]), Root: ap.root,
	}
	if err := q.opts.Store.Put(q.ctx, e); err != nil {
		q.remove(a)
		if errors.Is(err, ErrMismatch) {
			return errKnown // asked and settled since we looked
		}
		return fmt.Errorf("the question can't be kept, so it can't be asked: %w", err)
	}
	q.mu.Lock()
	a.stored = true
	q.mu.Unlock()
	if err := q.record(asked(e)); err != nil {
		q.leave(a)
		return err
	}
	if first {
		q.recorded(ap.lead, Pending)
	}
	q.tell(ap)
	return nil
}

// hold returns the approval of an asker that is not kept yet, with its gate
// held: until that is let go the asker stays there.
func (q *Queue) hold(a *asker) *approval {
	for {
		ap := q.home(a)
		if a.question.ID != ap.lead {
			<-ap.ready
		}
		ap.gate.RLock()
		if q.home(a) == ap {
			return ap
		}
		ap.gate.RUnlock()
	}
}

func (q *Queue) home(a *asker) *approval {
	q.mu.Lock()
	defer q.mu.Unlock()
	return a.approval
}

// wait returns what becomes of the approval, unless ctx ends before.
func (q *Queue) wait(ctx context.Context, a *asker) (bawn.Answer, error) {
	select {
	case <-a.done:
		return a.outcome()
	case <-a.gone:
		return bawn.Answer{}, ErrWithdrawn
	case <-ctx.Done():
	}
	if errors.Is(context.Cause(ctx), ErrDetached) {
		q.detach(a)
		return bawn.Answer{}, ErrDetached
	}
	q.leave(a)
	return bawn.Answer{}, ctx.Err()
}

// outcome is the asker's result; the approval is done. It may have outlived the
// time of this asker for the sake of another.
func (a *asker) outcome() (bawn.Answer, error) {
	ap := a.approval
	switch {
	case ap.failure != nil:
		return bawn.Answer{}, ap.failure
	case !ap.rec.Answer.At.Before(a.question.Expires):
		return bawn.Answer{}, ErrExpired
	}
	return ap.rec.Answer, nil
}

// recall returns the outcome of a question that was asked before, for an asker that
// has reconnected. A yes is not returned after the question has expired.
func (q *Queue) recall(question Question) (bawn.Answer, error) {
	e, err := q.opts.Store.Get(q.ctx, question.ID)
	if err != nil {
		return bawn.Answer{}, err
	}
	d := digest(&question)
	switch {
	case e.Digest != hex.EncodeToString(d[:]):
		return bawn.Answer{}, ErrMismatch
	case e.Gone:
		return bawn.Answer{}, ErrWithdrawn
	case e.State != Answered:
		return bawn.Answer{}, stateError(e.State)
	case !q.opts.Now().Before(e.Expires):
		return bawn.Answer{}, ErrExpired
	case e.Recorded != Answered:
		if err := q.record(settled(e, Outcome{State: e.State, Answer: e.Answer, At: e.Settled, For: e.ID})); err != nil {
			return bawn.Answer{}, err
		}
		q.recorded(e.Lead, Answered)
	}
	return e.Answer, nil
}

// stateError says why a question in that state has no answer.
func stateError(s State) error {
	if s == Expired {
		return ErrExpired
	}
	return ErrWithdrawn
}
