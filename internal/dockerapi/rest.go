package dockerapi

import (
	"context"
	"net/http"
	"slices"
	"time"
)

// Engines and runtimes resolve the places of mounts by name, as root. A process
// that can change these names meanwhile can redirect the mount. Such processes are
// those of the container itself, and those of containers that can write one of its
// volumes. So a container is made, started and looked into only while all of these
// have ended or are paused.

// atRest holds the volumes of a container, and pauses what runs of those that can write
// them; and c itself, unless it is being made and nil. done undoes that. If the engine's
// answer is missing, paused containers stay paused.
func (b *Broker) atRest(ctx context.Context, c *child, mounts []shownMount) (done func(known bool), err error) {
	volumes := volumesOf(mounts)
	var keys []string
	for _, v := range volumes {
		keys = append(keys, "volume "+v)
	}
	leaveVolumes, err := b.gates.allAlone(ctx, keys)
	if err != nil {
		return nil, err
	}
	// While the volumes are held no container that mounts them is made.
	group := b.writersOf(volumes, c)
	if c != nil {
		group = append(group, c)
	}
	keys = nil
	for _, one := range group {
		keys = append(keys, one.key())
	}
	leave, err := b.gates.allAlone(ctx, keys)
	if err != nil {
		leaveVolumes()
		return nil, err
	}
	var thaws []func()
	done = func(known bool) {
		for _, thaw := range thaws {
			if known {
				thaw()
			}
		}
		leave()
		leaveVolumes()
	}
	for _, one := range group {
		thaw, err := b.pause(ctx, one)
		if err != nil {
			done(true)
			return nil, err
		}
		thaws = append(thaws, thaw)
	}
	return done, nil
}

func (c *child) key() string { return "container " + c.id }

// volumesOf are the named volumes among mounts. Others belong to one container
// alone: no guest can name them.
func volumesOf(mounts []shownMount) (names []string) {
	for _, m := range mounts {
		if m.Type == typeVolume && m.Name != "" {
			names = append(names, m.Name)
		}
	}
	return names
}

// writersOf are the containers beside c that can write one of the volumes.
func (b *Broker) writersOf(volumes []string, c *child) (list []*child) {
	for _, other := range b.all() {
		writes := func(m shownMount) bool { return m.RW && m.Type == typeVolume && slices.Contains(volumes, m.Name) }
		if other != c && slices.ContainsFunc(other.mounts, writes) {
			list = append(list, other)
		}
	}
	return list
}

// state is what the engine says of a container that matters here.
type state struct {
	Running, Paused, Restarting, Dead bool
	Status                            string
}

func (b *Broker) state(ctx context.Context, c *child) (state, error) {
	var full struct{ State state }
	err := b.engine.do(ctx, message{method: http.MethodGet, path: "/containers/" + c.id + "/json"}, &full)
	return full.State, err
}

// How long the engine's mark of a pause may be wrong, and how often that is tried.
const (
	markTime = 5 * time.Second
	markStep = 20 * time.Millisecond
)

// pause stops every process of a container that runs, whose gate the caller
// has entered alone. thaw lets them go on, unless the guest had paused them.
//
// The engine's mark of a pause proves nothing: events of an earlier pause that
// reach it late set the mark of a container that runs, or take it from one that
// is paused (seen with Docker 28). So a container that is marked is paused again,
// and only a request to pause that succeeds counts.
func (b *Broker) pause(ctx context.Context, c *child) (thaw func(), err error) {
	// This request outlives the guest's connection: paused containers must be resumed.
	ctx = context.WithoutCancel(ctx)
	nothing := func() {}
	thaw = func() { b.thaw(ctx, c) }
	for began := time.Now(); ; time.Sleep(markStep) {
		s, err := b.state(ctx, c)
		if gone(err) || err == nil && !s.Running {
			return nothing, nil
		}
		if err != nil {
			return nil, err
		}
		if s.Paused && b.order(ctx, c, "unpause") == nil {
			thaw = nothing // it was its guest's pause
		}
		if err = b.order(ctx, c, "pause"); err == nil {
			return thaw, nil
		}
		if time.Since(began) > markTime {
			b.log("pause container %.12s: %v", c.id, err)
			return nil, refuse(RuleMount, "stop it first", "the container %.100q runs and the engine can't pause it: what changes its files, or those of a volume that is shared with it, has to be at rest", b.nameOf(c))
		}
	}
}

// thaw lets a container go on that pause has stopped.
func (b *Broker) thaw(ctx context.Context, c *child) {
	for began := time.Now(); ; time.Sleep(markStep) {
		err := b.order(ctx, c, "unpause")
		if err == nil {
			return
		}
		if s, again := b.state(ctx, c); gone(again) || again == nil && !s.Running {
			return // it has ended
		}
		if time.Since(began) > markTime {
			b.log("container %.12s may stay paused: %v", c.id, err)
			return
		}
	}
}

// order has the engine do to a container what one word says.
func (b *Broker) order(ctx context.Context, c *child, verb string) error {
	return b.engine.do(ctx, message{method: http.MethodPost, path: "/containers/" + c.id + "/" + verb}, nil)
}
