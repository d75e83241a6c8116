//go:build linux || darwin

package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Containers are those that a guest may make: a filtered Docker API.
type Containers struct {
	Listener *net.UnixListener // which the guest reaches
	Place    string            // a directory of this session's own, removed by Close
	// Network is the containers' own relay; nil where they reach nobody by name.
	Network Network
	Zone    asking.Zone // of decisions about them
	// Serve begins to answer at Listener. The returned function ends that, and
	// removes everything that was made.
	Serve func(ContainerHost) (end func() error, err error)
}

// A ContainerHost is the session's part for its containers.
type ContainerHost struct {
	Listener *net.UnixListener
	Place    string
	Guest    any // in whose place they are: a sandbox.Guest, perhaps Loopback and Visible
	Guard    func(context.Context, bawn.Action) bawn.Decision
	Refused  func(sandbox.Denial)
	// Network takes the sockets of the containers' network; nil for none.
	Network func(*sandbox.GuestNetwork) error
}

// Close closes the socket and the relay, and removes their directory. It may be
// called for nil, and more than once.
func (c *Containers) Close() error {
	if c == nil || c.Place == "" {
		return nil
	}
	err := ignoreClosed(c.Listener.Close())
	if c.Network != nil {
		err = errors.Join(err, c.Network.Close())
	}
	err = errors.Join(err, os.RemoveAll(c.Place))
	c.Place = ""
	return err
}

// serveContainers opens the Docker API of guest, where the session has one.
// Refusals go to log.
func (w *watch) serveContainers(guest sandbox.Guest, log *denials) error {
	c := w.session.Containers
	if c == nil {
		return nil
	}
	prompter := w.prompter()
	g := guard.Guard{Decider: prompter.Decider(c.Zone), Approver: prompter.Approver(c.Zone), Recorder: w.session.Guard.Recorder, Now: w.session.Guard.Now}
	event := w.session.event(map[string]string{"containers": "through the session's Docker API"})
	host := ContainerHost{
		Listener: c.Listener, Place: c.Place, Guest: guest, Refused: log.add,
		Guard: func(ctx context.Context, a bawn.Action) bawn.Decision { return g.Check(ctx, a, event) },
	}
	w.containers = &containers{log: log}
	if c.Network != nil {
		asker := newAsker(prompter.Approver(w.session.Zone), nil, c.Network.Answer)
		w.containers.asker = asker
		host.Network = func(n *sandbox.GuestNetwork) error {
			return c.Network.Serve(n.Files(), remote.Handlers{Ask: asker.ask, Withdraw: asker.withdraw, Denied: log.told})
		}
	}
	end, err := c.Serve(host)
	if err != nil {
		return fmt.Errorf("give the guest a Docker API: %w", err)
	}
	w.containers.end = end
	return nil
}

// containers are those of a session that runs.
type containers struct {
	end   func() error // nil where nothing was begun
	asker *asker       // or nil
	log   *denials
}

// close removes every container of the session, and reports those that it could
// not remove. It may be called for nil.
func (c *containers) close(session string) {
	if c == nil {
		return
	}
	if c.end != nil {
		if err := c.end(); err != nil {
			c.log.add(sandbox.Denial{
				Kind: bawn.Tool, Operation: bawn.Delete, Resource: "docker", Rule: RuleContainersLeft, Reason: "containers of the session could not all be removed: " + err.Error(),
				Remedy: "docker rm --force --volumes $(docker ps --all --quiet --filter label=dev.bawn.session=" + session + ")",
			})
		}
	}
	if c.asker != nil {
		c.asker.close()
	}
}

// RuleContainersLeft is that of containers that an engine does not release.
const RuleContainersLeft = "builtin:docker-left"
