package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/verb"
)

// wantsHost reports whether the session is to run in another process, which
// outlives this one.
func wantsHost(f *launch.Flags, e *launch.Env) bool {
	switch {
	case f.Plan:
		return false
	case f.Detach:
		return true
	}
	return (f.Attachable || f.Splits) && verb.IsTerminal(e.Stdin) && verb.IsTerminal(e.Stdout)
}

// startHost starts the session in the background, and is its first viewer: until
// the guest has been started, or for longer.
func startHost(f *launch.Flags, spec *session.Spec, e *launch.Env) error {
	keys, err := detachKeys(f.DetachKeys)
	if err != nil {
		return err
	}
	ours, err := launch.LaunchHost(spec, e, f.Detach)
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("start the session's host: %w", err)}
	}
	client, err := attach.NewClient(ours, false)
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	v := attach.View{Client: client, In: e.Stdin, Out: e.Stdout, Detach: keys, Notify: tell(e), Fresh: true, Start: f.Detach}
	if !f.Detach {
		v.Label = launch.Label(&e.World, leavingMark(f.DetachKeys, keys), spec.Argv[0])
	} else {
		v.Out = e.Stderr
		if !verb.IsTerminal(e.Stderr) {
			v.In = nil
		}
	}
	out, err := v.Run(context.Background())
	if err == nil && f.Detach && out.Detached {
		if !spec.Quiet && !spec.JSON {
			launch.SuggestCopy(e, out.Status.Session)
		}
		return detached(f, e, out)
	}
	return viewed(e, out, err)
}

// detached ends a start in the background.
func detached(f *launch.Flags, e *launch.Env, out attach.Outcome) error {
	if !out.Status.Running {
		return &verb.Error{Code: verb.ExitInternal, Err: errors.New("left before the session had started; it goes on starting"), Hint: "see \"bawn ps\""}
	}
	_, err := fmt.Fprintln(e.Stdout, out.Status.Session)
	return err
}
