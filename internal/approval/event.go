package approval

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	"github.com/bawn-dev/bawn"
)

// scopes are the names of bawn.Scope.
var scopes = []string{"once", "session", "always"}

// ScopeName returns "once", "session" or "always", and "invalid" for anything
// else.
func ScopeName(s bawn.Scope) string {
	if int(s) >= len(scopes) {
		return "invalid"
	}
	return scopes[s]
}

// record writes an event; its failure denies.
func (q *Queue) record(e bawn.Event) error {
	if q.opts.Recorder == nil {
		return nil
	}
	if err := q.opts.Recorder.Record(q.ctx, e); err != nil {
		return fmt.Errorf("the %s can't be recorded, so it counts for nothing: %w", e.Operation, err)
	}
	return nil
}

// recorded notes in the store that the log has an approval's state.
func (q *Queue) recorded(lead string, s State) {
	if err := q.opts.Store.Recorded(q.ctx, lead, s); err != nil {
		q.opts.Log.Warn("note that a question is recorded", "question", lead, "error", err)
	}
}

// asked is the event of a question that is put.
func asked(e Entry) bawn.Event {
	event := base(e, "question")
	event.Time, event.Resolved = e.Asked, bawn.Ask
	return event
}

// settled is the event of a question's end.
func settled(e Entry, o Outcome) bawn.Event {
	event := base(e, map[State]string{Answered: "answer", Expired: "expiry", Withdrawn: "withdrawal"}[o.State])
	event.Time = o.At
	event.DurationMS = o.At.Sub(e.Asked).Milliseconds()
	if o.State == Answered {
		a := o.Answer
		event.Resolved, event.Source = bawn.Strictest(a.Verdict), "user"
		event.Details["by"], event.Details["scope"], event.Details["why"] = a.By, ScopeName(a.Scope), a.Why
	}
	if o.For != "" && o.Once() {
		event.Details["for"], event.Details["more"] = o.For, strconv.Itoa(e.More)
	}
	return event
}

// base is what both kinds of events say. Its ID follows from the question and
// the change, so an event that is recorded twice after a crash is recognised as
// one.
func base(e Entry, change string) bawn.Event {
	resource := e.Canonical
	if resource == "" {
		resource = e.Action.Resource
	}
	return bawn.Event{
		ID: eventID(e.ID, change), Session: e.Session, Parent: e.Parent, Agent: e.Agent,
		Kind: "approval", Operation: change, Resource: resource, Args: e.Action.Args, Dir: e.Action.Dir,
		Requested: bawn.Ask, Source: "auto", Rule: e.Rule, Reason: e.Reason,
		Details: map[string]string{
			"question": e.ID, "lead": e.Lead, "kind": e.Action.Kind.String(), "operation": e.Action.Operation.String(),
			"waiting": strconv.Itoa(e.Waiting),
		},
	}
}

// eventID is a UUID of version 8 (RFC 9562 section 5.8).
func eventID(question, change string) string {
	d := sha256.Sum256([]byte("bawn approval\x00" + question + "\x00" + change))
	d[6], d[8] = d[6]&0x0f|0x80, d[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", d[:4], d[4:6], d[6:8], d[8:10], d[10:16])
}
