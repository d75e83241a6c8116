package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/dockerapi"
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/docker"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/maker"
	"github.com/bawn-dev/bawn/internal/verb"
)

// sweepTime is how long the end of a session waits for the removal of what
// others left.
const sweepTime = 5 * time.Second

// engineTime is how long an engine has to answer before a session starts, once
// in a boot with the trial of it.
const engineTime = 50 * time.Second

// dockerAPI finds the engine behind a session's Docker API.
func dockerAPI(s launch.ContainerSetting) (func(runner.ContainerHost) (func() error, error), error) {
	getenv := (&launch.Env{World: verb.World{Environ: s.Environ}}).Getenv
	socket, err := dockerapi.Find(s.Config.Docker().Host, getenv)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), engineTime)
	defer cancel()
	if err := dockerapi.Reach(ctx, socket); err != nil {
		return nil, fmt.Errorf("container engine at %q: %w", socket, err)
	}
	found := dockerapi.Trial(ctx, socket, s.Cache)
	if !found.Safe() {
		if !s.Config.Docker().AcceptEscapes {
			return nil, &launch.UnsafeEngineError{Why: found.String(), Remedy: dockerapi.Remedy}
		}
		s.Warn(found.String() + ", and accept_escapes permits it")
	}
	m, err := maker.Self()
	if err != nil {
		return nil, err
	}
	o := dockerapi.Options{Engine: socket, Session: s.Session, Maker: m}
	return func(h runner.ContainerHost) (func() error, error) {
		if err := accepted(h, s, found); err != nil {
			return nil, err
		}
		return serveDocker(o, s, h)
	}, nil
}

// accepted has the use of an unsafe engine decided and recorded.
func accepted(h runner.ContainerHost, s launch.ContainerSetting, found dockerapi.Finding) error {
	if found.Safe() {
		return nil
	}
	d := h.Guard(context.Background(), bawn.Action{
		Kind: bawn.Tool, Operation: bawn.Call, Resource: "docker:engine", Args: []string{"accept_escapes", found.String()},
		Session: s.Session.ID, Agent: s.Session.Agent, Dir: workspaceInside(s), At: time.Now(),
	})
	if d.Verdict != bawn.Allow {
		return fmt.Errorf("%v: %s (rule %s)", found, d.Reason, d.Rule)
	}
	return nil
}

// checkEngine is what doctor says of the engine behind guests' Docker APIs.
func checkEngine(s launch.ContainerSetting) *doctor.Check {
	configured := ""
	if s.Config != nil {
		configured = s.Config.Docker().Host
	}
	socket, err := dockerapi.Find(configured, (&launch.Env{World: verb.World{Environ: s.Environ}}).Getenv)
	if err != nil {
		return nil // a machine without one lacks nothing
	}
	found := dockerapi.Trial(context.Background(), socket, s.Cache)
	c := &doctor.Check{Name: "containers of guests", OK: found.Safe(), Detail: found.String()}
	if !c.OK {
		c.Refused, c.Remedy = true, dockerapi.Remedy
	}
	if !c.OK && s.Config != nil && s.Config.Docker().AcceptEscapes {
		c.Refused, c.Detail = false, c.Detail+"; accept_escapes permits it"
	}
	return c
}

// serveDocker answers a guest, and removes meanwhile what dead sessions left.
func serveDocker(o dockerapi.Options, s launch.ContainerSetting, h runner.ContainerHost) (func() error, error) {
	o.Dir, o.Guard, o.Log = h.Place, h.Guard, troubles(h.Refused)
	o.Refused = func(r dockerapi.Refusal) {
		h.Refused(sandbox.Denial{Kind: bawn.Tool, Operation: bawn.Call, Resource: r.What, Rule: r.Rule, Reason: r.Reason, Remedy: r.Remedy})
	}
	if v, ok := h.Guest.(sandbox.Visible); ok {
		o.View = dockerapi.View{Open: v.View, Below: []string{workspaceInside(s)}}
		if s.Session.Provider != launch.NoProvider { // a sandbox has a /tmp of its own
			o.View.Below = append(o.View.Below, "/tmp")
		}
	}
	if g, ok := h.Guest.(dockerapi.Starter); ok {
		o.Write = dockerapi.WriteBy(g, launch.ProgramInside)
	}
	network, holder, err := containerNetwork(o, s, h)
	if err != nil {
		return nil, err
	}
	o.Network = network
	if o.Program, err = os.Executable(); err != nil {
		return nil, err
	}
	b, err := dockerapi.New(o)
	if err != nil {
		return nil, err
	}
	served := make(chan error, 2)
	go func() { served <- b.Serve(h.Listener) }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	go func() { served <- dockerapi.Sweep(ctx, o.Engine) }()
	return func() error {
		late := time.AfterFunc(sweepTime, cancel) // a short session sweeps, too
		defer late.Stop()
		defer cancel()
		err := b.Close()
		if holder != nil {
			err = errors.Join(err, holder.Close())
		}
		<-served
		<-served
		return err
	}, nil
}

// workspaceInside is where the guest sees its workspace.
func workspaceInside(s launch.ContainerSetting) string {
	if s.Session.Provider == docker.Name {
		return s.Config.Docker().Workspace
	}
	return s.Session.Isolation.Workspace
}

// troubles tells a session's human what an engine did not do.
type troubles func(sandbox.Denial)

func (t troubles) Write(text []byte) (int, error) {
	t(sandbox.Denial{
		Kind: bawn.Tool, Operation: bawn.Call, Resource: "docker", Rule: dockerapi.RuleEngine, Reason: strings.TrimSpace(string(text)), Remedy: "look at the engine's own log",
	})
	return len(text), nil
}

// container is a guest that is one of the same engine.
type container interface {
	sandbox.Guest
	sandbox.Loopback
	ContainerID() string
}

// containerNetwork is the network of a guest's containers: the guest's own if
// it is a container, otherwise that of a holder container, which reaches what
// the session reaches. A guest without a loopback of its own gets none.
func containerNetwork(o dockerapi.Options, s launch.ContainerSetting, h runner.ContainerHost) (dockerapi.Network, *dockerapi.Holder, error) {
	guest, ok := h.Guest.(sandbox.Loopback)
	if !ok || s.Session.Isolation.Network == bawn.NetworkFull {
		return nil, nil, nil
	}
	if c, ok := h.Guest.(container); ok {
		return dockerapi.Shared{Container: c.ContainerID(), Guest: c}, nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	holder := &dockerapi.Holder{
		Engine: o.Engine, Session: s.Session.ID, Maker: o.Maker, Dir: h.Place, Guest: guest, Program: filepath.Join(filepath.Dir(self), "bawn"),
	}
	if h.Network != nil {
		holder.Network = layout.NewNetwork(false)
		holder.Network.HostPorts = s.HostPorts
		holder.Serve = h.Network
	}
	return holder, holder, nil
}
