package egressd

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/policy"
)

// ruleNoRules denies where the rules in force can't be had.
const ruleNoRules = "builtin:no-policy"

// rulesPatience is how long a decision waits for rules that have changed.
const rulesPatience = 5 * time.Second

// A currentPolicy is that of the rules in force: before each decision it looks whether a
// file of rules has changed, and then asks bawn for the rules. Without an answer nothing
// is allowed.
type currentPolicy struct {
	send func(egress.Message) error
	came chan egress.Rules // answers

	mu     sync.Mutex
	files  []egress.Watched
	policy *policy.Policy
	failed error // why it is nil
}

// newCurrentPolicy begins with the rules of a session's start.
func newCurrentPolicy(c *egress.Config, send func(egress.Message) error) (*currentPolicy, error) {
	p, err := policy.New(c.Rules, policy.Options{})
	return &currentPolicy{send: send, came: make(chan egress.Rules, 1), files: c.Watch, policy: p}, err
}

// get returns the policy in force.
func (c *currentPolicy) get(ctx context.Context) (*policy.Policy, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed() || c.failed != nil {
		c.policy, c.failed = c.renew(ctx)
	}
	return c.policy, c.failed
}

// changed reports whether a file is another than it was, and remembers it as it is.
func (c *currentPolicy) changed() (changed bool) {
	for i := range c.files {
		f := &c.files[i]
		if now := atomicfile.StampOf(f.Path); now != f.Stamp {
			f.Stamp, changed = now, true
		}
	}
	return changed
}

// renew asks for the rules, and makes a policy of them.
func (c *currentPolicy) renew(ctx context.Context) (*policy.Policy, error) {
	select {
	case <-c.came: // too late for the one who asked
	default:
	}
	if err := c.send(egress.Message{Stale: true}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, rulesPatience)
	defer cancel()
	select {
	case r := <-c.came:
		if r.Failed != "" {
			return nil, errors.New(r.Failed)
		}
		if r.Settling {
			c.files[0].Stamp = atomicfile.Stamp{Size: -1} // the next decision asks again
		}
		return policy.New(r.Rules, policy.Options{})
	case <-ctx.Done():
		return nil, errors.New("the rules have changed, and bawn does not say what they are")
	}
}

// take gets bawn's answer.
func (c *currentPolicy) take(r egress.Rules) {
	select {
	case c.came <- r:
	default: // nobody has asked
	}
}

// decider puts what asks for a policy to the one in force.
func (c *currentPolicy) decider(e policy.Egress) bawn.Decider {
	return deciderFunc(func(ctx context.Context, a bawn.Action) (bawn.Decision, error) {
		p, err := c.get(ctx)
		if err != nil {
			return bawn.Denied(err.Error(), ruleNoRules), nil
		}
		now := e
		now.Policy = p
		return now.Decide(ctx, a)
	})
}
