package launch

import (
	"context"
	"os"
	"path/filepath"

	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/settings"
)

// relayOf returns how a session reaches the relay of the user's approvals.
func relayOf(e *Env, state, session, parent string) func(ctx context.Context, start bool) (approval.Prompter, error) {
	return RelayAs(e, state, link.Options{Session: session, Parent: parent})
}

// RelayAs is relayOf for who says more of itself.
func RelayAs(e *Env, state string, o link.Options) func(ctx context.Context, start bool) (approval.Prompter, error) {
	o.Path = filepath.Join(settings.RuntimeDir(&e.World, state), places.HostsSocket)
	return func(ctx context.Context, start bool) (approval.Prompter, error) {
		o := o
		if start {
			o.Start = func(ctx context.Context) error { return startRelay(ctx, e, state, o.Path) }
		}
		return link.Dial(ctx, o)
	}
}

// relayRuns reports whether a relay listens: then somebody may be there to be
// asked, also where the session has no terminal.
func relayRuns(e *Env, state string) bool {
	return link.Listens(filepath.Join(settings.RuntimeDir(&e.World, state), places.HostsSocket))
}

// RelayRuns reports whether a relay runs, so that connections of a session without a
// terminal can be asked about.
func RelayRuns(e *Env) bool {
	state, err := settings.StateDir(&e.World)
	return err == nil && relayRuns(e, state)
}

// startRelay starts the relay on demand: it ends by itself when nothing needs
// it any more.
func startRelay(ctx context.Context, e *Env, state, socket string) error {
	path, err := remote.Find()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return err
	}
	p := link.Program{Path: path, Args: []string{"serve", "--on-demand"}, Environ: e.Environ, Socket: socket, Log: filepath.Join(state, "relay.log"), Stopped: filepath.Join(state, places.RelayStopped)}
	return p.Ensure(ctx)
}
