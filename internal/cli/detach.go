package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/verb"
)

// wantsHost reports whether the session is to run in another process, which
// outlives this one.
func wantsHost(f *runFlags, e *Env) bool {
	switch {
	case f.plan:
		return false
	case f.detach:
		return true
	}
	return (f.attachable || f.split) && verb.IsTerminal(e.Stdin) && verb.IsTerminal(e.Stdout)
}

// startHost starts the session in the background, and is its first viewer: until
// the guest has been started, or for longer.
func startHost(f *runFlags, spec *session.Spec, e *Env) error {
	keys, err := detachKeys(f.detachKeys)
	if err != nil {
		return err
	}
	ours, err := launchHost(spec, e, f.detach)
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("start the session's host: %w", err)}
	}
	client, err := attach.NewClient(ours, false)
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	v := attach.View{Client: client, In: e.Stdin, Out: e.Stdout, Detach: keys, Notify: tell(e), Fresh: true, Start: f.detach}
	if f.detach {
		v.Out = e.Stderr
		if !verb.IsTerminal(e.Stderr) {
			v.In = nil
		}
	}
	out, err := v.Run(context.Background())
	if err == nil && f.detach && out.Detached {
		return detached(f, e, out)
	}
	return viewed(e, out, err)
}

// detached ends a start in the background.
func detached(f *runFlags, e *Env, out attach.Outcome) error {
	if !out.Status.Running {
		return &verb.Error{Code: verb.ExitInternal, Err: errors.New("left before the session had started; it goes on starting"), Hint: "see \"bawn ps\""}
	}
	_, err := fmt.Fprintln(e.Stdout, out.Status.Session)
	return err
}
