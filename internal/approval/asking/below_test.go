package asking

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// childs is a question of a session below s.
func childs(line string) approval.Question {
	a := command(line)
	a.Session = "child"
	return approval.Question{ID: approval.NewID(), Owner: "the child's host", Session: "child", Parent: "s", Action: a, Expires: time.Now().Add(time.Minute)}
}

// TestChildSaysAnothersID: a child's question under the ID of an open one is
// refused, and the open one gets its answer. A question that child and parent
// both ask is still one.
func TestChildSaysAnothersID(t *testing.T) {
	r := startRelay(t)
	d := New(Options{Session: "s", Relay: r.dial})
	t.Cleanup(d.Close)
	type result struct {
		answer bawn.Answer
		err    error
	}
	got, below := make(chan result, 1), make(chan result, 1)
	go func() {
		a, err := d.Request(t.Context(), approval.Question{Action: command("make release")})
		got <- result{a, err}
	}()
	rec := r.pending()
	thief := childs("rm -rf ~")
	thief.ID = rec.ID
	for _, q := range []approval.Question{thief, rec.Question} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if _, err := d.Below().Ask(ctx, q); !errors.Is(err, approval.ErrMismatch) {
			t.Errorf("a child asks %q under another's ID: %v", q.Action.Resource, err)
		}
		cancel()
	}
	if d.Below().Owns(t.Context(), "", rec.ID) {
		t.Error("a child owns a question of its parent's")
	}
	go func() {
		a, err := d.Below().Ask(t.Context(), childs("make release"))
		below <- result{a, err}
	}()
	testenv.Until(t, "one question of a session and its child", func() bool { return r.pending().Waiting == 2 })
	r.answer(says1(bawn.Allow, bawn.ForSession))
	for name, c := range map[string]chan result{"session": got, "child": below} {
		if a := testenv.Receive(t, name, c); a.err != nil || a.answer.Verdict != bawn.Allow {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// spent is a relay at which a session has asked too much.
type spent struct {
	approval.Prompter
	asked atomic.Int32
}

func (s *spent) Ask(context.Context, approval.Question) (bawn.Answer, error) {
	s.asked.Add(1)
	return bawn.Answer{}, approval.ErrSpent
}

// TestSpent: what the relay refuses for good is denied at once, and asked
// nowhere else.
func TestSpent(t *testing.T) {
	relay := &spent{}
	d := New(Options{Session: "s", Relay: func(context.Context, bool) (approval.Prompter, error) { return relay, nil }})
	t.Cleanup(d.Close)
	_, err := d.Request(t.Context(), approval.Question{Action: command("ls")})
	if !errors.Is(err, approval.ErrSpent) || relay.asked.Load() != 1 {
		t.Errorf("%v, asked %d times", err, relay.asked.Load())
	}
}

// TestNobodyIsAskedInVain: where the answer could not be recorded nobody is
// asked, neither for a session nor for one below it.
func TestNobodyIsAskedInVain(t *testing.T) {
	full, relay := errors.New("the share is used up"), &spent{}
	var room error
	d := New(Options{Session: "s", Relay: func(context.Context, bool) (approval.Prompter, error) { return relay, nil }, Room: func(e bawn.Event) error {
		if e.Resource != "ls" || e.Kind != "command" {
			t.Errorf("room for %+v", e)
		}
		return room
	}})
	t.Cleanup(d.Close)
	asks := []func() error{
		func() error { _, err := d.Request(t.Context(), approval.Question{Action: command("ls")}); return err },
		func() error { _, err := d.Below().Ask(t.Context(), childs("ls")); return err },
		func() error {
			_, err := d.Approver(Zone{}).Approve(t.Context(), command("ls"), decision(t, "ls"))
			return err
		},
		func() error {
			_, err := d.Ahead(Zone{}, "please").Approve(t.Context(), command("ls"), decision(t, "ls"))
			return err
		},
	}
	for n, ask := range asks {
		room = full
		if err := ask(); !errors.Is(err, full) || int(relay.asked.Load()) != n {
			t.Errorf("way %d without room: %v, asked %d times", n, err, relay.asked.Load())
		}
		room = nil
		if err := ask(); !errors.Is(err, approval.ErrSpent) || int(relay.asked.Load()) != n+1 { // the control
			t.Errorf("way %d with room: %v, asked %d times", n, err, relay.asked.Load())
		}
	}
}

// TestOneTree: the questions of a session and of all sessions below it belong
// to one tree. Same questions are one, and what they may write is counted
// together, also where one of the sessions claims otherwise.
func TestOneTree(t *testing.T) {
	for name, parent := range map[string]string{"top": "", "a session of another host's": "above"} {
		r := startRelay(t)
		top := New(Options{Session: "s", Parent: parent, Relay: r.dial})
		t.Cleanup(top.Close)
		prompters := []*Prompter{top}
		for _, session := range []string{"child", "grandchild", "great"} {
			up := prompters[len(prompters)-1]
			d := New(Options{Session: session, Parent: up.opts.Session, Relay: func(context.Context, bool) (approval.Prompter, error) { return kept{up.Below()}, nil }})
			t.Cleanup(d.Close)
			prompters = append(prompters, d)
		}
		for _, d := range prompters {
			go func() { _, _ = d.Request(t.Context(), approval.Question{Action: command("make release")}) }()
		}
		liar := childs("make release")
		liar.Session, liar.Action.Session, liar.Parent, liar.Top = "stranger", "stranger", "", "a tree of its own"
		go func() { _, _ = prompters[2].Below().Ask(t.Context(), liar) }()
		roots := map[string]int{}
		testenv.Until(t, "all questions", func() bool {
			entries, err := r.store.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			clear(roots)
			for _, e := range entries {
				roots[e.Root]++
			}
			return len(entries) > len(prompters)
		})
		if want := cmp.Or(parent, "s"); len(roots) != 1 || roots[want] != len(prompters)+1 {
			t.Errorf("%s: questions by root: %v; want %d of %q", name, roots, len(prompters)+1, want)
		}
		if list, err := r.queue.List(t.Context()); err != nil || len(list) != 1 || list[0].Waiting != len(prompters)+1 {
			t.Errorf("%s: %d questions are pending, %v; want one, of all", name, len(list), err)
		}
	}
}
