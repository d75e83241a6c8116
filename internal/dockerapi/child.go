package dockerapi

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

var sessionForm = form(`^[A-Za-z0-9_-]{1,64}$`)

// A child is a container of the session.
type child struct {
	id       string
	wanted   *wanted
	share    share // guarded by budget.mu, as is admitted
	admitted bool
	networks map[string][]string // IDs of networks, and aliases there; guarded by Broker.mu
	mounts   []shownMount
	place    string // the directory of its copies, or ""
	copied   load   // what these take
	mirrors  []*mirror
	again    atomic.Int32 // so many requests are about to start it again
	used     atomic.Bool  // a command was started in it since its mirrors were brought together

	mu    sync.Mutex
	ports []*port
	runs  int  // counts starts, so that a watcher knows its own
	last  *run // or nil
	// complaint is why its mirrors could not be brought together the last time; "" where
	// they could.
	complaint string
}

// A shownMount is how inspect shows a mount.
type shownMount struct {
	Type, Name, Source, Destination, Driver, Mode string
	RW                                            bool
	Propagation                                   string
}

// find returns the session's container of that name or ID, or beginning of it. The
// steps of a build are left out: the build copies files into them and out of them,
// and nothing may start, change or remove them meanwhile.
func (b *Broker) find(ref string) (*child, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lookup(ref)
}

func (b *Broker) lookup(ref string) (*child, error) {
	ref = strings.TrimPrefix(ref, "/")
	if c := b.children[ref]; c != nil && !c.wanted.step {
		return c, nil
	}
	var found *child
	for id, c := range b.children {
		if c.wanted.step {
			continue
		}
		if c.wanted.name == ref {
			return c, nil
		}
		if strings.HasPrefix(id, ref) {
			if found != nil {
				return nil, refuse(RuleOwn, "give more of it", "%.100q is the beginning of several IDs", ref).status(http.StatusBadRequest)
			}
			found = c
		}
	}
	if found == nil || len(ref) < 2 {
		return nil, missing("container", ref)
	}
	return found, nil
}

// has reports whether a container is the session's still.
func (b *Broker) has(c *child) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.children[c.id] == c
}

// all lists the session's containers, in the order of their IDs.
func (b *Broker) all() []*child {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []*child
	for _, id := range slices.Sorted(maps.Keys(b.children)) {
		list = append(list, b.children[id])
	}
	return list
}

// forget gives back what a container held that is no more.
func (b *Broker) forget(c *child) {
	b.mu.Lock()
	if b.children[c.id] != c {
		b.mu.Unlock()
		return
	}
	delete(b.children, c.id)
	maps.DeleteFunc(b.execs, func(_ string, e *execution) bool { return e.container == c.id })
	b.mu.Unlock()
	c.closePorts()
	b.drop(c)
	b.budget.dismiss(c)
	b.writeNames()
}

// forgetIfGone looks at what the engine said.
func (b *Broker) forgetIfGone(c *child, err error) error {
	var e *engineError
	if !errors.As(err, &e) || e.Status != http.StatusNotFound || !strings.Contains(strings.ToLower(e.Message), "no such container") {
		return err
	}
	// The message may hold words of the guest's, such as a path that it asked for.
	if !gone(b.engine.do(b.life, message{method: http.MethodGet, path: "/containers/" + c.id + "/json"}, nil)) {
		return err
	}
	b.forget(c)
	return missing("container", c.wanted.name)
}
