// Package asking puts the questions of one session to its human: at the
// session's terminal, and through the relay wherever else the human is. The
// first answer wins, once. Its meaning beyond the one action (for the session,
// always, never) is kept here too.
//
// A question is registered with the relay, if one runs, and the relay's record
// counts: the terminal is one more frontend, which submits to it. A session
// without a relay has a queue of its own in its place.
package asking

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/grants"
	"github.com/bawn-dev/bawn/internal/approval/learn"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/policy"
)

// Options of a Prompter.
type Options struct {
	Session, Parent, Agent string
	// Relay returns the relay of the user's approvals. It starts one where start is
	// true. Nil, or an error, means that the session has no relay.
	Relay func(ctx context.Context, start bool) (approval.Prompter, error)
	// Rules reads the rules in force except the built-in ones and those of Grants.
	// It is called for each decision, and returns the same slice as long as nothing has
	// changed. Nil means no rules.
	Rules  func() ([]bawn.Rule, error)
	Policy policy.Options
	Grants *grants.File // nil: nothing is kept beyond the session
	// Learn opens the learned answers, once, when they are first needed; nil:
	// none.
	Learn func() (*learn.Store, error)
	// Note tells the human's log of errors beside an answer; nil drops them.
	Note func(text string)
	// Waiting is told of a question that nobody is shown at a terminal of the
	// session; nil drops it.
	Waiting func(approval.Question)
	Now     func() time.Time // nil is the machine's clock
	// Reading is how long a question is shown at a terminal before it can be
	// answered: a guest knows when its human is about to press a key, and could
	// ask at that moment. 0 means 700 ms.
	Reading time.Duration
	// Room errs where an event could not be recorded any more. Nobody is asked
	// then, because questions are written down as well, here and at the relay: a
	// guest could fill the disk. Nil: there is always room.
	Room func(bawn.Event) error
	// DenyAway denies a question at once that neither a terminal of the session nor a relay
	// that runs could answer; otherwise a relay is started, and it waits.
	DenyAway bool
	// Kept keeps answers "for this session" where the session outlives the prompter;
	// nil: they end with it.
	Kept Kept
	// Opens names the connections that a yes to a command opens, so that the question
	// shows them; nil: none.
	Opens func(bawn.Action) []bawn.Action
	// Programs says which programs a line names, each with its words and directory; nil:
	// none. A yes to the line answers what they would ask (Named).
	Programs func(bawn.Action) []bawn.Action
	// Hooks may object besides the policy; nil: none. Close of the prompter
	// closes it.
	Hooks Hooks
}

// Hooks tighten the policy's decision: a *pluginhook.Set.
type Hooks interface {
	// Tighten returns d, or what permits less than it. Its rule is then
	// pluginhook.RulePrefix with the plugin's name.
	Tighten(ctx context.Context, a bawn.Action, d bawn.Decision) bawn.Decision
	Close()
}

// A Prompter is where the questions of a session go. Its methods may be called
// from any goroutine.
type Prompter struct {
	opts    Options
	learned func() *learn.Store
	written func() ([]bawn.Rule, error)

	mu        sync.Mutex
	closed    bool
	relay     approval.Prompter // nil: not connected
	why       error             // no relay could be reached when it was last tried, or nil
	local     *approval.Queue   // nil: not needed so far
	frontends map[*frontend]struct{}
	open      map[string]*open // by ID
	rules     []bawn.Rule      // of grants, as they were read last
	of        []bawn.Rule      // those written, as they were read last
	ruled     *policy.Policy   // made of all rules

	said  approval.Answers
	named named
	// through records that the human has let a host through that is not inspected.
	through atomic.Bool
}

// New returns a prompter. Close ends it.
func New(o Options) *Prompter {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Reading = cmp.Or(o.Reading, reading)
	if o.Room == nil {
		o.Room = func(bawn.Event) error { return nil }
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	d := &Prompter{opts: o, frontends: map[*frontend]struct{}{}, open: map[string]*open{}}
	if o.Rules == nil {
		o.Rules = func() ([]bawn.Rule, error) { return nil, nil }
	}
	d.learned, d.written = sync.OnceValue(d.openLearned), o.Rules
	return d
}

// Close withdraws what is pending and ends all frontends.
func (d *Prompter) Close() {
	d.mu.Lock()
	d.closed = true
	for _, o := range d.open {
		o.settle(bawn.Answer{}, approval.ErrWithdrawn)
	}
	frontends := d.frontends
	d.frontends = map[*frontend]struct{}{}
	local, relay := d.local, d.relay
	d.relay = nil
	d.mu.Unlock()
	for f := range frontends {
		f.close()
	}
	if relay != nil {
		hangUp(relay)
	}
	if local != nil {
		_ = local.Close() // it is in memory
	}
	if d.opts.Hooks != nil {
		d.opts.Hooks.Close()
	}
}

// A Zone is one part of a session, and what its questions share.
type Zone struct {
	Name     string          // "" where a session has one only
	Question policy.Question // its Action and Covered are not used
	Covered  func() bool     // a checkpoint restores what is destroyed; nil for no
	Contains string          // what the sandbox would contain, one sentence
	// Decide is how the zone puts a question to a policy; nil is Policy.Decide.
	Decide func(*policy.Policy, *policy.Question) bawn.Decision
	// Later says that what would be asked about comes here once more, in another
	// zone: a hook's question is put there, its denial holds here too.
	Later bool
}

// question is a zone's question about an action.
func (z *Zone) question(a bawn.Action) policy.Question {
	q := z.Question
	q.Action, q.Covered = a, z.Covered != nil && z.Covered()
	return q
}

// about is a zone's question about an action, now.
func (d *Prompter) about(z *Zone, a bawn.Action) policy.Question {
	q := z.question(a)
	q.ConnectionAsks = q.ConnectionAsks && !d.letThrough()
	return q
}

func (z *Zone) decide(p *policy.Policy, q *policy.Question) bawn.Decision {
	if z.Decide == nil {
		return p.Decide(q)
	}
	return z.Decide(p, q)
}

// Approver returns who answers the questions of a zone.
func (d *Prompter) Approver(z Zone) bawn.Approver { return approver{d, &z} }

// Decider returns the decider of a zone: the policy with the answers "always"
// and "never", also those given during the session, and then the hooks, which
// only tighten.
func (d *Prompter) Decider(z Zone) bawn.Decider { return decider{d, &z} }

type approver struct {
	prompter *Prompter
	zone     *Zone
}

type decider approver

// Decide never returns an error that does not deny.
func (d decider) Decide(ctx context.Context, a bawn.Action) (bawn.Decision, error) {
	p, err := d.prompter.policy()
	if err != nil {
		return bawn.Decision{}, err
	}
	q := d.prompter.about(d.zone, a)
	return d.prompter.tighten(ctx, d.zone, a, d.zone.decide(p, &q)), nil
}

// Approve answers from earlier answers of the human, or asks. An error denies.
func (p approver) Approve(ctx context.Context, a bawn.Action, dec bawn.Decision) (bawn.Answer, error) {
	answer, err := p.answer(ctx, a, dec)
	if err == nil {
		p.prompter.names(a, answer)
	}
	return answer, err
}

func (p approver) answer(ctx context.Context, a bawn.Action, dec bawn.Decision) (bawn.Answer, error) {
	d := p.prompter
	about := p.zone.digest(a, dec)
	if answer, ok := d.known(p.zone, a, dec, about); ok {
		return answer, nil
	}
	if answer, ok := d.spend(about); ok {
		return answer, nil
	}
	if answer, ok := d.recalled(about, dec); ok {
		return answer, nil
	}
	o := d.question(ctx, p.zone, a, dec)
	answer, err := d.put(ctx, o)
	if err != nil {
		return bawn.Answer{}, err
	}
	answer = d.keep(o, about, answer)
	d.remember(about, dec, answer)
	return answer, nil
}

// Request asks about something that is not an action of the policy: a child session, or a
// guest's request for more. ID, Session, Parent, Agent, Asked and Expires are filled in.
// The caller decides what an answer means beyond once.
func (d *Prompter) Request(ctx context.Context, q approval.Question) (bawn.Answer, error) {
	d.fill(ctx, &q)
	answer, err := d.put(ctx, newOpen(q))
	answer.Why = clean(answer.Why)
	return answer, err
}

// patience is how long a question stands where its asker knows no end.
const patience = 10 * time.Minute

func (d *Prompter) fill(ctx context.Context, q *approval.Question) {
	q.ID, q.Session, q.Parent, q.Asked = approval.NewID(), d.opts.Session, d.opts.Parent, d.opts.Now()
	q.Action.Session = q.Session
	if q.Agent == "" {
		q.Agent = d.opts.Agent
	}
	if q.Expires = q.Asked.Add(patience); ctx != nil {
		if until, ok := ctx.Deadline(); ok {
			q.Expires = until
		}
	}
}

// ErrNobody says that there is no one to ask.
var ErrNobody = errors.New("nobody is there to be asked: the session has no terminal, and no relay could be reached")

// nobody returns ErrNobody, and tells the user where no relay starts because of
// them.
func (d *Prompter) nobody() error {
	if d.stopped() && d.opts.Note != nil {
		d.opts.Note("nobody is asked: " + link.ErrStopped.Error())
	}
	return ErrNobody
}

// stopped reports whether the user wants no relay.
func (d *Prompter) stopped() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Is(d.why, link.ErrStopped)
}
