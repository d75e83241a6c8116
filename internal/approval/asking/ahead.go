package asking

import (
	"cmp"
	"context"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
)

// Ahead returns who answers where a guest asks ahead of an action, in its own
// words. A yes "once" holds for the one action that comes then.
func (d *Prompter) Ahead(z Zone, why string) bawn.Approver { return ahead{approver{d, &z}, why} }

type ahead struct {
	approver
	why string
}

// Approve answers from earlier answers of the human, or asks. An error denies.
func (p ahead) Approve(ctx context.Context, a bawn.Action, dec bawn.Decision) (bawn.Answer, error) {
	d := p.prompter
	about := p.zone.digest(a, dec)
	if answer, ok := d.known(p.zone, a, dec, about); ok {
		return answer, nil
	}
	o := d.question(ctx, p.zone, a, dec)
	o.Justification = p.why
	answer, err := d.put(ctx, o)
	if err != nil {
		return bawn.Answer{}, err
	}
	answer = d.keep(o, about, answer)
	if answer.Verdict == bawn.Allow && answer.Scope == bawn.Once {
		d.said.Ahead(about, answer, time.Time{})
	}
	return answer, nil
}

// Below is where the questions of a session's children go: to the humans of
// the session, under the child's name. It is what link.Server wants.
func (d *Prompter) Below() *Below { return &Below{d} }

// A Below puts questions of children.
type Below struct{ prompter *Prompter }

// Ask puts a child's question. Without a frontend it goes to the relay, which is
// started for it.
func (b *Below) Ask(ctx context.Context, q approval.Question) (bawn.Answer, error) {
	o := &b.prompter.opts
	q.Owner = "" // to the relay it is this session's
	q.Top = cmp.Or(o.Parent, o.Session)
	return b.prompter.put(ctx, newOpen(q))
}

// Answer refuses: an asker here may not answer.
func (*Below) Answer(context.Context, string, bawn.Answer) (approval.Record, error) {
	return approval.Record{}, approval.ErrUnknown
}

// Retract does nothing: a question ends here with the connection of its asker.
func (*Below) Retract(approval.Question) {}

// Register does nothing: questions asked here belong to the tree of this
// session, whatever they claim.
func (*Below) Register(_, _, _ string) (forget func()) { return func() {} }

// Owns refuses: see Answer.
func (*Below) Owns(context.Context, string, string) bool { return false }
