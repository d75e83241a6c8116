//go:build linux || darwin

package shim

import (
	"context"
	"errors"

	"github.com/bawn-dev/bawn/internal/intent"
)

// Judge asks the session socket what becomes of actions, and waits until
// it is decided or ctx ends. A session socket that refuses to judge has denied. On an
// error nothing has been allowed.
func Judge(ctx context.Context, j intent.Judge) (intent.Verdict, error) { return judge(ctx, j, Socket) }

func judge(ctx context.Context, j intent.Judge, socket string) (intent.Verdict, error) {
	r, err := once(ctx, intent.Hello{Judge: &j}, socket)
	switch {
	case err != nil:
		return intent.Verdict{}, err
	case r.Denied != nil:
		return intent.Verdict{Verdict: "deny", Rule: r.Denied.Rule, Reason: r.Denied.Reason, Remedy: r.Denied.Remedy}, nil
	case r.Verdict == nil:
		return intent.Verdict{}, errors.New("the session socket has answered something else")
	}
	return *r.Verdict, nil
}
