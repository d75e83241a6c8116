package asking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/learn"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/policy/suggest"
	"github.com/bawn-dev/bawn/internal/redact"
)

// digest is the scope of an answer "for this session": exactly this action with
// its directory and environment, or on the network the host and port.
func (z *Zone) digest(a bawn.Action, d bawn.Decision) approval.Digest {
	if byHook(d.Rule) { // the policy's question is not answered by a plugin
		return approval.DigestOf(z.Name, &a, d.Canonical, d.Env, []string{d.Rule})
	}
	return approval.DigestOf(z.Name, &a, d.Canonical, d.Env)
}

// known is an earlier answer of the human: for this session, or by a rule made
// of an answer since the session began.
func (d *Prompter) known(z *Zone, a bawn.Action, asked bawn.Decision, about approval.Digest) (bawn.Answer, bool) {
	p, err := d.policy()
	if err != nil {
		return bawn.Answer{}, false // then the human is asked again
	}
	q := d.about(z, a)
	dec := z.decide(p, &q)
	ruled := strings.HasPrefix(dec.Rule, policy.Approved)
	if dec.Verdict == bawn.Deny && ruled {
		return bawn.Answer{Verdict: bawn.Deny, Scope: bawn.ForSession, By: "rule " + dec.Rule, At: d.opts.Now(), Why: clean(dec.Reason)}, true
	}
	said, ok := d.saidOf(z, asked, about)
	if !ok && dec.Verdict == bawn.Allow && ruled && !asked.Single && !byHook(asked.Rule) {
		return bawn.Answer{Verdict: bawn.Allow, Scope: bawn.ForSession, By: "rule " + dec.Rule, At: d.opts.Now()}, true
	}
	return said, ok
}

// saidOf is an answer for this session to the question itself, or a yes to all
// questions of the same kind. A yes to a question that is asked each time is
// not among them.
func (d *Prompter) saidOf(z *Zone, asked bawn.Decision, about approval.Digest) (bawn.Answer, bool) {
	said, ok := d.said.Said(about)
	if !ok && asked.Holds != "" {
		said, ok = d.said.Said(approval.DigestOfKind(z.Name, asked.Holds))
	}
	if asked.Single && said.Verdict == bawn.Allow {
		return bawn.Answer{}, false
	}
	return said, ok
}

// policy has all rules, with the answers since. Where the file of grants can't
// be read it errs: nothing is decided by half of it.
func (d *Prompter) policy() (*policy.Policy, error) {
	var granted []bawn.Rule
	if d.opts.Grants != nil {
		var err error
		if granted, err = d.opts.Grants.Rules(); err != nil {
			return nil, err
		}
	}
	written, err := d.written()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ruled != nil && sameSlice(written, d.of) && slices.EqualFunc(granted, d.rules, equal) {
		return d.ruled, nil
	}
	p, err := policy.New(slices.Concat(written, granted), d.opts.Policy)
	if err != nil {
		return nil, err
	}
	d.rules, d.of, d.ruled = granted, written, p
	return p, nil
}

// sameSlice reports whether two slices are one.
func sameSlice(a, b []bawn.Rule) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// equal reports whether two rules of the file are the same: a rule's identity
// is made of its subject.
func equal(a, b bawn.Rule) bool {
	return a.ID == b.ID && a.Verdict == b.Verdict && a.Priority == b.Priority && a.Pattern == b.Pattern
}

// question is what a human is asked about an action.
func (d *Prompter) question(ctx context.Context, z *Zone, a bawn.Action, dec bawn.Decision) *open {
	q := approval.Question{
		Action: a, Reason: dec.Reason, Rule: dec.Rule, Contains: z.Contains, Agent: a.Agent, Program: programOf(ctx),
		Holds: dec.Holds, Single: dec.Single,
	}
	if dec.Canonical != a.Resource {
		q.Canonical = dec.Canonical
	}
	d.fill(ctx, &q)
	in := d.input(z, a)
	advice := suggest.Allow(*in)
	q.Always, q.Covers, q.NoAlways = advice.Rules, advice.Covers, advice.None
	q.Never = suggest.Deny(*in).Rules
	if d.opts.Grants == nil {
		q.Always, q.Never, q.Covers, q.NoAlways = nil, nil, nil, "this session has nowhere to keep a rule"
	}
	if byHook(dec.Rule) {
		q.Always, q.Covers, q.NoAlways = nil, nil, "a plugin asks about it, whatever the rules say"
	}
	if q.Single {
		q.Always, q.Covers, q.NoAlways = nil, nil, "a yes to it counts once"
	}
	if len(q.Always) == 0 && q.NoAlways == "" {
		q.NoAlways = "no rule asks about it"
	}
	o := newOpen(q)
	o.input, o.zone = in, z.Name
	d.recall(o)
	return o
}

func (d *Prompter) input(z *Zone, a bawn.Action) *suggest.Input {
	return &suggest.Input{Question: d.about(z, a), Rules: d.rulesNow(), Options: d.opts.Policy, Decide: z.decide}
}

func (d *Prompter) openLearned() *learn.Store {
	if d.opts.Learn == nil {
		return nil
	}
	s, err := d.opts.Learn()
	if err != nil {
		d.opts.Note("nothing is learned: " + err.Error())
		return nil
	}
	return s
}

// recall suggests earlier answers.
func (d *Prompter) recall(o *open) {
	o.Suggested = bawn.Ask
	learned := d.learned()
	if learned == nil {
		return
	}
	for i, shape := range d.shapes(o) {
		v, sure, ok := learned.Recall(shape)
		if !ok || sure < policy.Suggest || i > 0 && v != o.Suggested {
			o.Suggested, o.SuggestedWhy = bawn.Ask, ""
			return
		}
		o.Suggested, o.SuggestedWhy = v, fmt.Sprintf("you have answered so before (%d %% sure)", int(sure*100+0.5))
	}
}

// shapes are those under which an answer is learned; none where it is asked
// about each time, and where a plugin wants it asked about.
func (d *Prompter) shapes(o *open) []string {
	p, err := d.policy()
	if err != nil || o.input == nil || byHook(o.Rule) {
		return nil
	}
	q := o.input.Question
	return p.Shapes(&q)
}

// keep applies an answer beyond the one action, and returns the guard's answer:
// a wider answer that can't be kept becomes a narrower one.
func (d *Prompter) keep(o *open, about approval.Digest, a bawn.Answer) bawn.Answer {
	a.Why = clean(a.Why)
	if a.Verdict != bawn.Allow {
		a.Verdict = bawn.Deny
	}
	d.learn(o, a)
	if a.Scope == bawn.Always {
		if err := d.rule(o, a); err != nil {
			d.opts.Note(fmt.Sprintf("no rule is made of the answer, which holds %s: %v", narrower(a.Verdict), err))
			a.Scope = scopeWithoutRule(a.Verdict)
		}
	}
	if o.Single && a.Verdict == bawn.Allow {
		a.Scope = bawn.Once
	}
	switch {
	case a.Scope == bawn.Once:
	case a.Verdict == bawn.Allow && o.Holds != "":
		d.said.Say(approval.DigestOfKind(o.zone, o.Holds), a)
		d.release(o, a)
	default:
		d.said.Say(about, a)
	}
	d.opens(o, a)
	if o.zone == NetworkZone && len(o.Action.Args) == 0 && a.Verdict == bawn.Allow {
		d.letsThrough(a)
	}
	return a
}

// release answers the open questions for which the yes to o holds too.
func (d *Prompter) release(o *open, a bawn.Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, other := range d.open {
		if other != o && other.zone == o.zone && other.Holds == o.Holds && other.Session == o.Session {
			other.settle(a, nil)
		}
	}
}

// learn records the answer. An answer "always" counts as one of many there: a
// shape is wider than the rule that the human has seen.
func (d *Prompter) learn(o *open, a bawn.Answer) {
	learned := d.learned()
	if learned == nil || o.Single {
		return
	}
	if a.Scope == bawn.Always {
		a.Scope = bawn.Once
	}
	if err := learned.Answer(d.shapes(o), a); err != nil {
		d.opts.Note("the answer is not learned: " + err.Error())
	}
}

// scopeWithoutRule: a yes that can't be kept is one, a no holds on.
func scopeWithoutRule(v bawn.Verdict) bawn.Scope {
	if v == bawn.Allow {
		return bawn.Once
	}
	return bawn.ForSession
}

func narrower(v bawn.Verdict) string {
	if v == bawn.Allow {
		return "once"
	}
	return "for this session"
}

// rule makes rules of an answer "always" or "never". The rule that a frontend has
// shown is kept, after it was decided again with the rules in force now.
func (d *Prompter) rule(o *open, a bawn.Answer) error {
	if d.opts.Grants == nil || o.input == nil {
		return errors.New(cmp.Or(o.NoAlways, "it is nothing that a rule could name"))
	}
	now := *o.input
	now.Rules = d.rulesNow()
	find, shown := suggest.Allow, o.Always
	if a.Verdict == bawn.Deny {
		find, shown = suggest.Deny, o.Never
	}
	advice := find(now)
	switch {
	case len(advice.Rules) == 0:
		return errors.New(cmp.Or(advice.None, "the rules decide it already"))
	case !slices.EqualFunc(shown, advice.Rules, equal):
		return errors.New("other rules are in force than when it was asked")
	}
	_, err := d.opts.Grants.Add(advice.Rules, a.By, d.opts.Now())
	return err
}

// rulesNow are all rules besides the built-in ones; those of the file of
// grants as they were read last.
func (d *Prompter) rulesNow() []bawn.Rule {
	_, _ = d.policy() // reads them; where it can't, Add refuses as well
	written, _ := d.written()
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Concat(written, d.rules)
}

// maxWhy is how much a guest is told of what its human has said, in characters.
const maxWhy = 300

// clean is text of a human as one line that is safe to print.
func clean(s string) string {
	r := []rune(redact.Visible(strings.TrimSpace(s)))
	return string(r[:min(len(r), maxWhy)])
}
