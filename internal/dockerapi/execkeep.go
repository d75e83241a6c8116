package dockerapi

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"
)

// Bounds of execs that are kept. An engine keeps each that was never started
// until its container ends, with up to maxText bytes of words, and has no request
// to remove one.
const (
	maxContainerExecs = 64
	maxSessionExecs   = 256
)

// An execution is an exec of one of the session's containers. Its fields are
// guarded by Broker.mu.
type execution struct {
	container      string // the engine's ID
	number         uint64 // in the order in which they were made
	slot           bool   // the engine is asked for it, or has not said whether it made it
	started        bool
	uncertainSince time.Time // since when the engine should have said it; zero while it is asked
}

// reserveExec makes room for one more exec of c and returns the slot, under which
// it is kept until the engine has made it. Where there is no room, those that have
// ended are forgotten, the oldest first: who made the last ones may still ask how
// they ended. If there is room, the request does not wait for those that look for
// ended execs: the engine may be slow.
func (b *Broker) reserveExec(ctx context.Context, c *child) (string, error) {
	if slot, _ := b.slotForExec(c); slot != "" {
		return slot, nil
	}
	b.reaping.Lock()
	defer b.reaping.Unlock()
	slot, full := b.slotForExec(c)
	if slot == "" {
		b.reap(ctx, full)
		slot, full = b.slotForExec(c)
	}
	if slot == "" {
		return "", full.refusal()
	}
	return slot, nil
}

// A fullness says which bound is reached: that of a container, or of all.
type fullness struct {
	container string // "" for the session's
	most      int
}

func (f fullness) refusal() *Refusal {
	if f.container == "" {
		return refuse(RuleLimit, "let some end, or remove their containers", "%d commands (exec) of this session's containers have not ended, or were never started", f.most)
	}
	return refuse(RuleLimit, "let some end, or remove the container", "%d commands (exec) of the container have not ended, or were never started", f.most)
}

func (b *Broker) slotForExec(c *child) (slot string, full fullness) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := 0
	for _, e := range b.execs {
		if e.container == c.id {
			own++
		}
	}
	switch {
	case own >= maxContainerExecs:
		return "", fullness{c.id, maxContainerExecs}
	case len(b.execs) >= maxSessionExecs:
		return "", fullness{"", maxSessionExecs}
	}
	b.lastExec++
	slot = newID() // which nobody can name
	b.execs[slot] = &execution{container: c.id, number: b.lastExec, slot: true}
	return slot, fullness{}
}

// reap checks the container's uncertain slots. Then it forgets ended execs among
// those that fill f, a quarter of the bound at most.
func (b *Broker) reap(ctx context.Context, f fullness) {
	ctx, cancel := context.WithTimeout(ctx, shortTime)
	defer cancel()
	b.checkUncertain(ctx, f.container)
	dropped := 0
	for _, id := range b.execsOf(f.container) {
		if dropped >= f.most/4 || ctx.Err() != nil {
			return
		}
		if b.execEnded(ctx, id) {
			b.releaseExec(id)
			dropped++
		}
	}
}

// execsOf lists the execs of a container, or all for "", the oldest first.
func (b *Broker) execsOf(container string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []string
	for id, e := range b.execs {
		if !e.slot && (container == "" || e.container == container) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(x, y string) int { return cmp.Compare(b.execs[x].number, b.execs[y].number) })
	return ids
}

// execEnded asks the engine. Some engines say 0 of what was never started.
func (b *Broker) execEnded(ctx context.Context, id string) bool {
	var state struct {
		Running  bool
		ExitCode *int
	}
	err := b.engine.do(ctx, message{method: http.MethodGet, path: "/exec/" + id + "/json"}, &state)
	if err != nil {
		return gone(err)
	}
	b.mu.Lock()
	e := b.execs[id]
	started := e != nil && e.started
	b.mu.Unlock()
	return !state.Running && state.ExitCode != nil && (started || *state.ExitCode != 0)
}

func (b *Broker) releaseExec(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.execs, id)
}

// keepExec gives what was made in place of a slot the engine's ID, unless the
// container is gone with all of its execs.
func (b *Broker) keepExec(slot, id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.execs[slot]
	if e == nil {
		return false
	}
	delete(b.execs, slot)
	e.slot = false
	b.execs[id] = e
	return true
}

// startAnswered keeps what came of asking the engine to start an exec. It has
// started unless the engine surely did not do it. Not before the answer: until
// then what says 0 may be about to run.
func (b *Broker) startAnswered(id string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.execs[id]; e != nil && !notMade(err) {
		e.started = true
	}
}

// markUncertain says that the engine has not said whether it made what a slot is for.
func (b *Broker) markUncertain(slot string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.execs[slot]; e != nil {
		e.uncertainSince = b.o.Now()
	}
}

// checkUncertain releases uncertain slots, of a container or of all for "", where the
// engine made nothing for them.
func (b *Broker) checkUncertain(ctx context.Context, container string) {
	for _, id := range b.uncertainContainers(container) {
		var state struct{ ExecIDs []string }
		if err := b.engine.do(ctx, message{method: http.MethodGet, path: "/containers/" + id + "/json"}, &state); err == nil {
			b.giveBack(id, state.ExecIDs)
		}
	}
}

// uncertainContainers lists the containers with slots that are to be checked, or the one.
func (b *Broker) uncertainContainers(container string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := map[string]bool{}
	for _, e := range b.execs {
		if (container == "" || e.container == container) && b.overdue(e) {
			found[e.container] = true
		}
	}
	return slices.Collect(maps.Keys(found))
}

// overdue reports whether e has been uncertain for so long that the engine is no
// longer about to make it.
func (b *Broker) overdue(e *execution) bool {
	return !e.uncertainSince.IsZero() && b.o.Now().Sub(e.uncertainSince) >= createTime
}

// giveBack releases uncertain slots of a container with the execs that the engine
// lists. Each unknown exec may have been made for one of them.
func (b *Broker) giveBack(container string, listed []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	unknown := 0
	for _, id := range listed {
		if b.execs[id] == nil {
			unknown++
		}
	}
	for slot, e := range b.execs {
		switch {
		case e.container != container || !b.overdue(e):
		case unknown > 0:
			unknown--
		default:
			delete(b.execs, slot)
		}
	}
}

// exec returns the ID of a command of one of the session's containers.
func (b *Broker) exec(ref string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.execs[ref]; e == nil || e.slot || b.children[e.container] == nil {
		return "", missing("exec instance", ref)
	}
	return ref, nil
}

// notMade reports whether an error says that the engine did not do it. After any
// other it may have done, as after an answer that was not understood.
func notMade(err error) bool {
	var said *engineError
	var op *net.OpError
	return errors.As(err, &said) && said.Status >= http.StatusBadRequest || errors.As(err, &op) && op.Op == "dial"
}
