package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/bawn-dev/bawn"
)

// Bounds of one question and of all that are pending. More than that is
// refused, which denies.
const (
	MaxText         = 64 << 10 // bytes of all texts of a question
	MaxParts        = 4096     // arguments, rules and examples of a question
	MaxWhy          = 4 << 10  // bytes of the why of an answer
	MaxPerSession   = 64
	MaxPerTree      = 1024 // of a session and all its descendants
	MaxPerOwner     = 1024 // of a host, whatever sessions it names
	MaxPending      = 10_000
	MaxPendingBytes = 256 << 20
	MaxWait         = 7 * 24 * time.Hour // from now to Expires
	// MaxWritten is how many bytes the questions of a session and all its
	// descendants may have written in all. A guest that asks and takes back
	// without end would fill the disk.
	MaxWritten = 1 << 30
)

// perWrite is about how many bytes are written of a question besides its texts.
const perWrite = 600

// cost is about how many bytes a question has written: it is kept once, and it
// is in the log twice, when it is asked and when it ends.
func (q *Question) cost() int64 { return 3 * int64(perWrite+q.size()) }

// Tidy returns q with the derived fields filled in, or why it can't be asked. A
// question must survive being written as JSON to the last byte.
func Tidy(q Question, now time.Time) (Question, error) {
	if q.Asked.IsZero() {
		q.Asked = now
	}
	if q.Action.Session == "" {
		q.Action.Session = q.Session
	}
	q.Asked, q.Expires, q.Action.At = wall(q.Asked), wall(q.Expires), wall(q.Action.At)
	return q, errors.Join(checkID(q.ID), q.checkMeaning(now), q.checkText(), q.checkRules())
}

// wall takes the monotonic reading away: it stands still while the machine
// sleeps, and a question must not outlive its time meanwhile.
func wall(t time.Time) time.Time { return t.Round(0).UTC() }

// written reports whether RFC 3339 can write a time.
func written(t time.Time) bool { return t.Year() >= 0 && t.Year() <= 9999 }

func (q *Question) checkMeaning(now time.Time) error {
	switch {
	case q.Session == "" || q.Action.Session != q.Session:
		return fmt.Errorf("question of session %q is about an action of session %q; want the same", q.Session, q.Action.Session)
	case !q.Action.Valid():
		return errors.New("the question is about no action")
	case q.Suggested > bawn.Allow:
		return fmt.Errorf("suggestion %d is no verdict", q.Suggested)
	case !written(q.Asked) || !written(q.Action.At):
		return errors.New("a time of the question has no year of four digits")
	case q.Expires.Sub(now) > MaxWait:
		return fmt.Errorf("the question would wait until %s; want at most %v", q.Expires.Format(time.RFC3339), MaxWait)
	case !now.Before(q.Expires):
		return ErrExpired
	}
	return nil
}

func (q *Question) checkText() error {
	size, parts := 0, 0
	for s := range q.texts() {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%q is not UTF-8: it can't be passed on exactly, so it can't be asked", clip(s))
		}
		size += len(s)
		parts++
	}
	if size > MaxText || parts > MaxParts {
		return fmt.Errorf("the question has %d bytes of text in %d parts; want at most %d and %d, which somebody could still read", size, parts, MaxText, MaxParts)
	}
	return nil
}

// size is the question's share of MaxPendingBytes.
func (q *Question) size() (n int) {
	for s := range q.texts() {
		n += len(s)
	}
	return n
}

// texts yields every text of the question.
func (q *Question) texts() func(yield func(string) bool) {
	all := []string{
		q.Session, q.Parent, q.Top, q.Agent, q.Action.Resource, q.Action.Session, q.Action.Agent, q.Action.Dir,
		q.Canonical, q.Reason, q.Rule, q.Contains, q.SuggestedWhy, q.NoAlways, q.Holds, q.Justification, q.Program,
	}
	all = append(append(all, q.Action.Args...), q.Covers...)
	for _, r := range slices.Concat(q.Always, q.Never) {
		all = append(append(append(all, r.ID, r.Pattern, r.Reason), r.Match...), r.NotMatch...)
	}
	return func(yield func(string) bool) {
		for _, s := range all {
			if !yield(s) {
				return
			}
		}
	}
}

// checkRules wants rules that can be written down and read back.
func (q *Question) checkRules() error {
	for _, r := range slices.Concat(q.Always, q.Never) {
		bad := r.Kind.String() == "invalid" || r.Source.String() == "invalid" || r.Verdict > bawn.Allow || r.Pattern == ""
		for _, op := range r.Operations {
			bad = bad || op.String() == "invalid"
		}
		if bad {
			return fmt.Errorf("rule %q of \"always\" or \"never\" is invalid: want a kind, operations, a pattern, a verdict and a source", clip(r.ID))
		}
	}
	return nil
}

// checkAnswer wants an answer that means something for q.
func checkAnswer(q *Question, a bawn.Answer) error {
	switch {
	case a.Verdict != bawn.Allow && a.Verdict != bawn.Deny:
		return fmt.Errorf("%v is no answer; want allow or deny", a.Verdict)
	case a.Scope > bawn.Always:
		return fmt.Errorf("scope %d is invalid; want once, for the session or always", a.Scope)
	case q.Single && a.Verdict == bawn.Allow && a.Scope != bawn.Once:
		return errors.New("a yes to this counts once; answer it once")
	case a.Scope == bawn.Always && a.Verdict == bawn.Allow && len(q.Always) == 0:
		return fmt.Errorf("there is no rule for it that would hold always (%s); answer it once or for the session", q.NoAlways)
	case a.By == "" || len(a.By)+len(a.Why) > MaxWhy || !utf8.ValidString(a.By+a.Why):
		return fmt.Errorf("an answer needs to say by whom it is, and why in at most %d bytes of UTF-8", MaxWhy)
	}
	return nil
}

// clip shortens the text of an error.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// key tells whether two questions are the same to a human: of the same host and
// session tree, about the same action, and with the same consequences if answered. The
// last is more than the action: where the sandbox contains less, or "always"
// would make another rule, a human may answer otherwise.
func key(root string, q *Question) [32]byte { return sum(root, q) }

// Same reports whether two questions of one session tree are the same to a
// human.
func Same(a, b *Question) bool { return key("", a) == key("", b) }

// digest tells whether two questions with one ID are the same.
func digest(q *Question) [32]byte { return sum(q.Session, q) }

func sum(of string, q *Question) (d [32]byte) {
	h := sha256.New()
	if q.Owner != "" { // records from before owners existed have no owner
		put(h, "owner", q.Owner)
	}
	about := DigestOf("", &q.Action, q.Canonical)
	put(h, of, string(about[:]), q.Action.Dir, q.Contains, q.Holds, strconv.FormatBool(q.Single))
	putRules(h, q.Always)
	putRules(h, q.Never)
	h.Sum(d[:0])
	return d
}

func putRules(h hash.Hash, rules []bawn.Rule) {
	number(h, len(rules))
	for _, r := range rules {
		number(h, len(r.Operations))
		for _, op := range r.Operations {
			put(h, op.String())
		}
		put(h, r.Kind.String(), r.Pattern, r.Verdict.String())
	}
}

// put writes a list so that no other list is written alike.
func put(h hash.Hash, list ...string) {
	number(h, len(list))
	for _, s := range list {
		number(h, len(s))
		h.Write([]byte(s))
	}
}

func number(h hash.Hash, n int) { h.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) }
