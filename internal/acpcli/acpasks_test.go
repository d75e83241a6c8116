package acpcli

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/asking"
)

// TestEditorsYesHoldsOnce: what the human at the editor has said yes to is not
// asked again where it is executed, once, in those words and that directory.
func TestEditorsYesHoldsOnce(t *testing.T) {
	run := func(text, dir string, args ...string) bawn.Action {
		return bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: text, Dir: dir, Args: args}
	}
	q := &acpAsks{}
	for range 3 { // an agent that asks three times gets one yes
		q.permitted(run("make   deploy > log", "/w"))
	}
	for _, other := range []bawn.Action{
		run("make deploy", "/w"), run("make deploy >log", "/w/sub"), run("make deploy >log", "/w", "make"), run("make deploy >log; ls", "/w"),
		{Kind: bawn.Tool, Operation: bawn.Call, Resource: "make deploy >log", Dir: "/w2"},
	} {
		if _, ok := q.spend(&other); ok {
			t.Errorf("the yes holds for %+v", other)
		}
	}
	same := run("make deploy >log", "/w")
	answer, first := q.spend(&same)
	if _, second := q.spend(&same); !first || second || answer.Verdict != bawn.Allow || answer.Scope != bawn.Once || answer.By != "editor" {
		t.Errorf("it holds %t, then %t, as %+v; want once", first, second, answer)
	}
	q.yes.Ahead(command("make deploy >log", "/w"), answer, time.Now().Add(-time.Second))
	if _, ok := q.spend(&same); ok {
		t.Error("it holds for ever")
	}
	for _, a := range []bawn.Action{run("if", "/w"), {Kind: bawn.Filesystem, Operation: bawn.Write, Resource: "true", Dir: "/w"}} {
		q.permitted(a)
		a.Kind, a.Operation = bawn.Command, bawn.Exec
		if _, ok := q.spend(&a); ok {
			t.Errorf("a yes to %+v is one to a command", a)
		}
	}
}

// tired is an editor, or a relay, that says the same of everything, after a while.
type tired struct {
	answer bawn.Answer
	err    error
	after  time.Duration
}

func (s tired) Ask(ctx context.Context, _ bawn.Action, _ string) (bawn.Answer, error) {
	select {
	case <-time.After(s.after):
		return s.answer, s.err
	case <-ctx.Done():
		return bawn.Answer{}, ctx.Err()
	}
}

type tiredRelay struct {
	approval.Prompter
	tired
}

func (s tiredRelay) Ask(ctx context.Context, q approval.Question) (bawn.Answer, error) {
	return s.tired.Ask(ctx, q.Action, q.Reason)
}

// TestEditorCantOverrule has an editor say yes to what the session refuses to
// ask, and to what nobody else can be asked about.
func TestEditorCantOverrule(t *testing.T) {
	const soon, never = time.Millisecond, time.Hour
	yes, no := bawn.Answer{Verdict: bawn.Allow, By: "editor"}, bawn.Answer{Verdict: bawn.Deny, By: "phone"}
	spoilt, away := errors.New("the share is used up"), errors.New("no conversation")
	late := time.Second
	for name, c := range map[string]struct {
		relay  tired
		room   error
		none   bool // there is no relay
		editor tired
		want   error
		by     string
	}{
		"spent":      {relay: tired{err: approval.ErrSpent}, editor: tired{answer: yes, after: late}, want: approval.ErrSpent},
		"full":       {relay: tired{err: &approval.FullError{What: "in all", Limit: 1}}, editor: tired{answer: yes, after: late}, want: &approval.FullError{}},
		"mismatch":   {relay: tired{err: approval.ErrMismatch}, editor: tired{answer: yes, after: late}, want: approval.ErrMismatch},
		"no room":    {room: spoilt, editor: tired{answer: yes, after: late}, want: spoilt},
		"both fail":  {relay: tired{err: approval.ErrSpent, after: late}, editor: tired{err: away}, want: approval.ErrSpent},
		"nobody":     {none: true, editor: tired{answer: yes, after: 3 * late}, by: "editor"},
		"editor":     {relay: tired{answer: no, after: never}, editor: tired{answer: yes, after: soon}, by: "editor"},
		"elsewhere":  {relay: tired{answer: no, after: soon}, editor: tired{answer: yes, after: never}, by: "phone"},
		"no editor":  {relay: tired{answer: no, after: late}, editor: tired{err: away}, by: "phone"},
		"none of it": {none: true, editor: tired{err: away}, want: away},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prompter := asking.New(asking.Options{Session: "s", Room: func(bawn.Event) error { return c.room }, Relay: func(context.Context, bool) (approval.Prompter, error) {
				if c.none {
					return nil, away
				}
				return tiredRelay{tired: c.relay}, nil
			}})
			t.Cleanup(prompter.Close)
			q := &acpAsks{Below: prompter.Below(), editor: c.editor}
			a := bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "make deploy", Dir: "/w", Session: "child"}
			question := approval.Question{ID: approval.NewID(), Session: "child", Action: a, Expires: time.Now().Add(time.Minute)}
			answer, err := q.Ask(t.Context(), question)
			var full *approval.FullError
			if isFull := errors.As(err, &full); !errors.Is(err, c.want) && !isFull || isFull != (name == "full") || answer.By != c.by {
				t.Errorf("%+v, %v; want %v, by %q", answer, err, c.want, c.by)
			}
		})
	}
}
