package approval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/bawn-dev/bawn"
)

// of is a question of an owner.
func of(owner, session, resource string) Question {
	q := ask(session, resource)
	q.Owner = owner
	return q
}

// TestOwners: an ID is of one owner, also when it is settled and after a
// restart, and only same questions of one owner are one.
func TestOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &brittle{}
		q := queue(t, Options{Store: store})
		question := of("a", "s", "ls")
		thief := question
		thief.Owner = "b"
		p := begin(q, question)
		synctest.Wait()
		owns := func(q *Queue) {
			t.Helper()
			begin(q, thief).gets(t, "", ErrMismatch)
			q.Retract(thief)
			if !q.Owns(t.Context(), "a", p.ID) || q.Owns(t.Context(), "b", p.ID) || q.Owns(t.Context(), "", p.ID) {
				t.Error("it is not its asker's alone")
			}
		}
		owns(q)
		same := of("b", "s", "ls")
		other := begin(q, same)
		synctest.Wait()
		if list, _ := q.List(t.Context()); len(list) != 2 || list[0].Waiting != 1 {
			t.Errorf("the same question of two owners is one: %+v", list)
		}
		q.Close()
		p.gets(t, "", ErrClosed)
		other.gets(t, "", ErrClosed)

		q = queue(t, Options{Store: store})
		owns(q)
		p = begin(q, question)
		synctest.Wait()
		if _, err := q.Answer(t.Context(), same.ID, yes); err != nil {
			t.Error(err)
		}
		if _, err := q.Answer(t.Context(), p.ID, no); err != nil {
			t.Error(err)
		}
		p.gets(t, "no", nil)
		owns(q)
		if q.Owns(t.Context(), "a", NewID()) {
			t.Error("a question that nobody has asked is owned")
		}
	})
}

// TestRegistrations: what an owner says of sessions is its own, and holds until
// the last who has said it is gone.
func TestRegistrations(t *testing.T) {
	q := queue(t, Options{})
	first, second := q.Register("a", "s", "top"), q.Register("a", "s", "top")
	theirs := q.Register("b", "s", "elsewhere")
	for owner, want := range map[string]string{"a": "top", "b": "elsewhere", "c": "s"} {
		if root := q.root(owner, "s", ""); root != want {
			t.Errorf("root for %q: %q; want %q", owner, root, want)
		}
	}
	theirs()
	first()
	first()
	if root := q.root("a", "s", ""); root != "top" {
		t.Errorf("root when another has gone, and one of two of its own: %q", root)
	}
	second()
	if len(q.parents)+len(q.claims) != 0 {
		t.Errorf("left: %v, %v", q.parents, q.claims)
	}
}

// TestTop: the session that a host has passed a question on for counts, and not
// what the question says besides; and what the host says of that session.
func TestTop(t *testing.T) {
	q := queue(t, Options{})
	question := of("a", "child", "ls")
	question.Parent, question.Top = "its own", "s"
	q.Register("a", "child", "its own")
	if root := q.tree(&question); root != "a s" {
		t.Errorf("root: %q", root)
	}
	q.Register("a", "s", "above")
	if root := q.tree(&question); root != "a above" {
		t.Errorf("root of one whose parent is known: %q", root)
	}
	question.Top = strings.Repeat("x", MaxText)
	if _, err := q.Ask(t.Context(), question); err == nil || !strings.Contains(err.Error(), "bytes of text") {
		t.Errorf("a long one: %v", err)
	}
}

// TestNamesOfAnothersSession has a host use up all places of the sessions that it
// names, which are another's: that one has its own.
func TestNamesOfAnothersSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &Memory{}
		q := queue(t, Options{Store: store})
		var puts []*waiter
		for n := range MaxPerTree { // all that its owner may
			question := of("a", fmt.Sprint("s", n/MaxPerSession), fmt.Sprint(n))
			question.Top = "s0"
			puts = append(puts, begin(q, question))
		}
		synctest.Wait()
		other := of("b", "s0", "x")
		puts = append(puts, begin(q, other))
		synctest.Wait()
		if list, _ := q.List(t.Context()); len(list) != MaxPerTree+1 {
			t.Errorf("%d are pending; want the other host's as well", len(list))
		}
		mine, _ := store.Get(t.Context(), puts[0].ID)
		theirs, err := store.Get(t.Context(), other.ID)
		if err != nil || mine.Root == theirs.Root {
			t.Errorf("what is kept of %q is counted with that of %q, %v", theirs.Root, mine.Root, err)
		}
		spent := of("a", "s0", "y")
		q.written[q.tree(&spent)] = MaxWritten
		again := of("b", "s0", "z")
		puts = append(puts, begin(q, again))
		synctest.Wait()
		if list, _ := q.List(t.Context()); len(list) != MaxPerTree+2 {
			t.Errorf("%d are pending when the one host's share is spent", len(list))
		}
		for _, p := range puts {
			p.cancel(nil)
		}
		synctest.Wait()
		if len(q.sessions)+len(q.trees) != 0 {
			t.Errorf("left: %v, %v", q.sessions, q.trees)
		}
	})
}

// TestOwnersAreBounded has a host that names a session of its own for each
// question.
func TestOwnersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue(t, Options{})
		var puts []*waiter
		for n := range MaxPerOwner {
			puts = append(puts, begin(q, of("a", fmt.Sprint("s", n), "x")))
		}
		synctest.Wait()
		_, err := q.Ask(t.Context(), of("a", "another", "x"))
		var full *FullError
		if !errors.As(err, &full) || full.Limit != MaxPerOwner || !strings.Contains(err.Error(), "of this host") {
			t.Errorf("one more: %v", err)
		}
		other := begin(q, of("b", "another", "x"))
		puts[0].cancel(nil)
		synctest.Wait()
		again := begin(q, of("a", "another", "x"))
		synctest.Wait()
		if list, _ := q.List(t.Context()); len(list) != MaxPerOwner+1 {
			t.Errorf("%d are pending; want the other host's, and one more where one has left", len(list))
		}
		for _, p := range append(puts, other, again) {
			p.cancel(nil)
		}
		synctest.Wait()
		if len(q.owners) != 0 {
			t.Errorf("left: %v", q.owners)
		}
	})
}

// A gauge counts what is written, in the store and in the log, and keeps
// nothing.
type gauge struct {
	Memory
	writes int
	bytes  int64
}

func (g *gauge) Put(_ context.Context, e Entry) error {
	g.writes++
	g.bytes += int64(e.size())
	return nil
}

func (*gauge) Get(context.Context, string) (Entry, error) { return Entry{}, ErrUnknown }

func (g *gauge) Settle(context.Context, string, Outcome) (bool, error) {
	g.writes++
	return true, nil
}

func (g *gauge) Record(_ context.Context, e bawn.Event) error {
	g.writes++
	g.bytes += int64(len(e.Resource) + len(e.Dir) + len(e.Reason))
	return nil
}

// TestFloodOfQuestions has a guest ask and withdraw without end. Once the share
// of its session's tree is used up, nothing more is written, and every session
// of the tree is denied. Other sessions are not harmed.
func TestFloodOfQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gauge{}
		q := queue(t, Options{Store: g, Recorder: g})
		q.Register("a", "child", "s")
		long := strings.Repeat("x", MaxText/2)
		flood := func(session string) (err error) {
			question := of("a", session, "ls")
			question.Reason = long
			p := begin(q, question)
			synctest.Wait()
			p.cancel(nil)
			<-p.done
			return p.err
		}
		enough := 2 * MaxWritten / (MaxText / 2)
		asked := 0
		for ; asked < enough && errors.Is(flood([]string{"s", "child"}[asked%2]), context.Canceled); asked++ {
		}
		if asked == enough || asked < MaxWritten/MaxText/3 {
			t.Fatalf("%d questions were asked", asked)
		}
		if g.bytes > MaxWritten || g.bytes < MaxWritten/2 {
			t.Errorf("%d bytes are written; want up to %d", g.bytes, MaxWritten)
		}
		before := g.writes
		for _, session := range []string{"s", "child"} {
			if err := flood(session); !errors.Is(err, ErrSpent) || !strings.Contains(err.Error(), "start another session") {
				t.Errorf("%q after a flood: %v", session, err)
			}
		}
		if g.writes != before {
			t.Errorf("%d writes after the flood", g.writes-before)
		}
		if err := flood("another"); !errors.Is(err, context.Canceled) {
			t.Errorf("another session: %v", err)
		}
	})
}
