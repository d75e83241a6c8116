package asking

import (
	"context"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
	"github.com/bawn-dev/bawn/internal/policy"
)

// Network returns how the relay of a session's network puts a question to a
// policy (Zone.Decide): below the session's entries, as policy.Egress does.
func Network(entries bawn.Egress) (func(*policy.Policy, *policy.Question) bawn.Decision, error) {
	rules, err := netrule.Compile(entries)
	if err != nil {
		return nil, err
	}
	return func(p *policy.Policy, q *policy.Question) bawn.Decision {
		d, err := policy.Egress{Policy: p, Session: *q, Rules: rules}.Decide(context.Background(), q.Action)
		if err != nil {
			return bawn.Denied(err.Error(), policy.RuleTarget)
		}
		return d
	}, nil
}

// programKey is under which a context says which program's connection it is about.
type programKey struct{}

// WithProgram returns a context in which questions name the program behind a
// connection. The text is the guest's: it is shown as that, and escaped.
func WithProgram(ctx context.Context, program string) context.Context {
	return context.WithValue(ctx, programKey{}, program)
}

func programOf(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	text, _ := ctx.Value(programKey{}).(string)
	return text
}
