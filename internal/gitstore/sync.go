package gitstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ownRefs are the host's that Bawn makes. No guest's ref is published there.
const ownRefs = "refs/bawn/"

// own is the name of a ref of the session's.
func (s *Store) own(name string) string { return ownRefs + s.Session + "/" + name }

// A side is what one of the two git directories has now.
type side struct {
	tree *refTree
	head string
	open string // git's open operation, or ""
}

// look reads one side.
func look(root *os.Root, rel string, size int) (*side, error) {
	var sd side
	var err error
	if sd.head, err = readHead(root, rel, size); err != nil { // first: a branch is made before HEAD is at it
		return nil, err
	}
	if sd.tree, err = readRefs(root, size); err != nil {
		return nil, err
	}
	for _, name := range []string{"rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "sequencer"} {
		if exists(root, path.Join(rel, name)) {
			sd.open = name
			break
		}
	}
	return &sd, nil
}

// value is the object that a HEAD leads to, or "".
func (sd *side) value(head string) string {
	if ref := branchOf(head); ref != "" {
		return sd.tree.refs[ref]
	}
	return head
}

// Sync carries what one side has changed into the other. Its error says what could
// not be done at all; it may be called again.
func (s *Store) Sync(ctx context.Context) (Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.sync(ctx, false)
	return s.report, err
}

// retries bound how long a sync waits for another git's lock.
const (
	retryAfter = 15 * time.Millisecond
	retries    = 40
)

func (s *Store) sync(ctx context.Context, final bool) error {
	s.report.Held = ""
	var errs []error
	for _, u := range s.Units {
		if final {
			s.tryAgain(u)
		}
		err := s.syncUnit(ctx, u, final)
		for try := 0; errors.Is(err, errBusy) && try < retries && ctx.Err() == nil; try++ {
			sleep(ctx, retryAfter)
			err = s.syncUnit(ctx, u, final)
		}
		if err == nil && !s.Copy && !u.removed() && !u.dropped() {
			s.follow(ctx, u, final)
			s.track(ctx, u)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", u.Host, err))
		}
	}
	return errors.Join(append(errs, s.save())...)
}

// tryAgain forgets what could not be published: the reason may have been a guest that
// was at work, or a busy machine.
func (s *Store) tryAgain(u *unit) {
	for told := range u.told {
		if bad, ok := strings.CutPrefix(told, "bad "); ok {
			delete(u.told, told)
			delete(u.Beside, bad[:len(bad)-u.Size])
		} else if strings.Contains(told, unpublishable) {
			delete(u.told, told)
			s.report.Problems = slices.DeleteFunc(s.report.Problems, func(p string) bool { return p == told })
		}
	}
}

// unpublishable follows the name of a ref that can't be published.
const unpublishable = " of the guest's can't be published: "

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// WhyCopy is why commits of a session on a copy are kept beside, if there is no other
// reason.
const WhyCopy = "the session worked on a copy"

// syncUnit compares both sides with their last common state.
func (s *Store) syncUnit(ctx context.Context, u *unit, final bool) error {
	if u.removed() {
		what := "its git directory"
		if u.Tree {
			what = "the worktree " + strconv.Quote(u.WorkTree)
		}
		s.tell(u, &s.report.Questions, "the guest has removed "+what+"; yours is as it was")
		return nil
	}
	if u.dropped() {
		return nil
	}
	if s.Copy && !final {
		return nil
	}
	private, err := u.lookPrivate()
	if err != nil {
		return fmt.Errorf("the guest's git directory: %w", err)
	}
	host, err := look(u.host, u.Rel, u.Size)
	if err != nil {
		return err
	}
	c := &changes{store: s, unit: u, host: host, private: private}
	if c.finish = private.open == "" && u.mayFinish(host.open); c.finish {
		host.open = ""
	}
	if open := cmp.Or(private.open, host.open); open != "" {
		s.report.Held = open + " is open"
		if !final {
			return nil
		}
		c.besideOnly = "a rebase, merge or bisect is open (" + open + ")"
	}
	if s.Copy && c.besideOnly == "" {
		c.besideOnly = WhyCopy
	}
	c.collect()
	if c.besideOnly == "" {
		if c.index, err = s.lists(ctx, u); err != nil {
			return fmt.Errorf("the index: %w", err)
		}
	}
	if c.none() { // also where the guest has removed MERGE_HEAD alone
		return nil
	}
	if err := s.pin(ctx); err != nil {
		return err
	}
	return c.carry(ctx)
}

// removed reports whether the guest has left nothing that could be published.
func (u *unit) removed() bool {
	if u.Tree {
		return !exists(u.private, u.at("HEAD"))
	}
	for _, name := range []string{u.at("HEAD"), "refs", "packed-refs"} {
		if exists(u.private, name) {
			return false
		}
	}
	return true
}

// dropped reports whether a unit is a worktree that the human has removed, or one of the
// session's whose name the human's git has taken.
func (u *unit) dropped() bool {
	return u.Tree && (!exists(u.host, u.at("HEAD")) || u.Added && !u.ownAdmin())
}

// A move is a ref that one side has changed.
type move struct {
	name, old, new string
	why            string // it is kept beside; "" where it is published
	ahead          bool   // it is published if it contains old
}

// changes are those of one unit.
type changes struct {
	store         *Store
	unit          *unit
	host, private *side
	out, in       []move
	coming        refs // of out, what is published
	ahead         lookahead
	gone          []move // made by the session alone and deleted by the guest
	stack         stack
	head          headMove
	index         *indexes
	besideOnly    string
	finish        bool     // the guest has finished the host's open operation
	passed        []string // commits that were inspected, with everything that they reach
}

// headMove says which side has moved HEAD.
type headMove int

const (
	headStays headMove = iota
	headOut
	headIn
	headParted
)

// collect finds what has changed.
func (c *changes) collect() {
	u := c.unit
	names := maps.Clone(u.Base)
	for _, t := range []*refTree{c.host.tree, c.private.tree} {
		for name := range t.refs {
			names[name] = ""
		}
	}
	taken, owned := c.unit.taken(), c.owned()
	c.coming = refs{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if name != stashRef && !strings.HasPrefix(name, ownRefs) && owned(name) {
			c.ref(name, taken)
		}
	}
	c.stack = stack{now: u.Stash}
	if !u.Tree {
		c.stack = u.stack(c.host, c.private)
	}
	if c.besideOnly != "" {
		c.in, c.gone = nil, nil
		return
	}
	switch mine, theirs := c.private.head != u.Head, c.host.head != u.Head; {
	case c.private.head == c.host.head:
		u.Head = c.host.head
	case mine && theirs:
		c.head = headParted
		c.store.tell(u, &c.store.report.Questions, "HEAD was moved on both sides: the session keeps a HEAD of its own")
	case mine:
		c.head = headOut
	default:
		c.head = headIn
	}
	for _, name := range c.private.tree.broken {
		if published(name) && !u.Tree {
			c.store.tell(u, &c.store.report.Problems, fmt.Sprintf("%q is no ref that can be published", name))
		}
	}
}

// ref compares one.
func (c *changes) ref(name string, taken map[string]bool) {
	u := c.unit
	base, host, private := u.Base[name], c.host.tree.refs[name], c.private.tree.refs[name]
	switch {
	case c.private.tree.links[name] || c.host.tree.links[name]:
	case host == private:
		u.set(name, host)
		if u.Made[name] != host {
			delete(u.Made, name)
		}
	case private == base:
		if pulled(name) {
			c.in = append(c.in, move{name: name, old: base, new: host})
		}
	case !published(name):
	case private == "":
		c.deleted(name, base, host, taken)
	default:
		m := move{name: name, old: host, new: private, ahead: host != base, why: c.besideOnly}
		if m.why == "" {
			m.why = c.refuse(m, base, taken)
		}
		if m.why == "" {
			c.coming[name] = private
		}
		if u.Beside[name] != private || m.why == "" && !u.told["parted "+name+host+private] {
			c.out = append(c.out, m)
		}
	}
}

// set remembers what both sides have.
func (u *unit) set(name, id string) {
	if id == "" {
		delete(u.Base, name)
		return
	}
	u.Base[name] = id
}

// refuse says why a change can't become the ref's, or "".
func (c *changes) refuse(m move, base string, taken map[string]bool) string {
	if err := nameOK(m.name); err != nil {
		return "its name is refused: " + err.Error()
	}
	if m.old == "" && base == "" {
		for _, others := range []refs{c.host.tree.refs, c.coming} {
			if other, hidden := hides(m.name, others, c.unit.Fold); hidden {
				return fmt.Sprintf("it would be taken for %q", other)
			}
		}
	}
	switch {
	case strings.HasPrefix(m.name, "refs/tags/") && m.old != "":
		return "tags are made and never moved"
	case taken[m.name]:
		return "it is checked out in another worktree"
	case m.old == "" && base != "":
		return "it was deleted on the host"
	case c.unit.told["bad "+m.name+m.new]:
		return "it could not be published"
	}
	return ""
}

// deleted handles a ref that the guest has deleted: the session's own goes, one
// that the human has made or moved stays.
func (c *changes) deleted(name, base, host string, taken map[string]bool) {
	u := c.unit
	if host != "" && host == base && u.Made[name] == host && !taken[name] {
		c.gone = append(c.gone, move{name: name, old: host})
		return
	}
	c.store.lost(u, name)
}

// lost asks about a ref that the guest has deleted.
func (s *Store) lost(u *unit, name string) {
	const few = 5
	if u.told["deleted "+name] {
		return
	}
	u.told["deleted "+name] = true
	if u.deleted++; u.deleted <= few {
		s.report.Questions = append(s.report.Questions, fmt.Sprintf("%q was deleted by the guest and is still there", name))
	} else if u.deleted == few+1 {
		s.report.Questions = append(s.report.Questions, "the guest has deleted more refs, which are still there")
	}
}

// tell reports something once.
func (s *Store) tell(u *unit, list *[]string, text string) {
	if !u.told[text] && len(*list) < 50 {
		*list = append(*list, text)
	}
	u.told[text] = true
}

// taken are the branches that other worktrees of the host have checked out.
func (u *unit) taken() map[string]bool {
	list := map[string]bool{}
	add := func(rel string) {
		if head, err := readHead(u.host, rel, u.Size); err == nil && rel != u.Rel {
			list[branchOf(head)] = true
		}
	}
	add(".")
	trees, _ := readDir(u.host, "worktrees") // there may be none
	for _, e := range trees {
		add(path.Join("worktrees", e.Name()))
	}
	delete(list, "")
	return list
}

// none reports whether nothing has changed.
func (c *changes) none() bool {
	return len(c.out)+len(c.in)+len(c.gone) == 0 && c.head != headOut && c.head != headIn && c.index == nil &&
		!c.stack.pulled && slices.Equal(stackIDs(c.stack.now), stackIDs(c.unit.Stash))
}
