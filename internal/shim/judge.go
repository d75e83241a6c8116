//go:build linux || darwin

package shim

import (
	"context"
	"errors"

	"github.com/bawn-dev/bawn/internal/intent"
)

// Judge asks the door of the session what becomes of actions, and waits until
// it is decided or ctx ends. A door that refuses to judge has denied. On an
// error nothing has been allowed.
func Judge(ctx context.Context, j intent.Judge) (intent.Verdict, error) { return judge(ctx, j, Door) }

func judge(ctx context.Context, j intent.Judge, door string) (intent.Verdict, error) {
	r, err := once(ctx, intent.Hello{Judge: &j}, door)
	switch {
	case err != nil:
		return intent.Verdict{}, err
	case r.Denied != nil:
		return intent.Verdict{Verdict: "deny", Rule: r.Denied.Rule, Reason: r.Denied.Reason, Remedy: r.Denied.Remedy}, nil
	case r.Verdict == nil:
		return intent.Verdict{}, errors.New("the door has answered something else")
	}
	return *r.Verdict, nil
}
