package dockerapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
)

const (
	toolKind = bawn.Tool
	toolCall = bawn.Call
)

func (b *Broker) startContainer(w http.ResponseWriter, r *http.Request, c *call) error {
	child, err := b.find(c.names[0])
	if err != nil {
		return err
	}
	if err := noBody(r); err != nil {
		return err
	}
	return b.startChild(w, r, child)
}

func (b *Broker) startChild(w http.ResponseWriter, r *http.Request, child *child) error {
	if err := b.check(r.Context(), toolKind, toolCall, "docker:start", b.toldOf(child.wanted.request.Image), child.wanted.name); err != nil {
		return err
	}
	run, err := b.start(r.Context(), child)
	if refused := (*Refusal)(nil); errors.As(err, &refused) && child.removesItself() && destroy(b.engine, child.id) == nil {
		b.forget(child) // as an engine does with what can't start: clients wait for that
	}
	if err != nil {
		return b.forgetIfGone(child, err)
	}
	b.watch(child, run)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// start has the engine start a container, if every mount goes where its name
// says: processes of an earlier run, or docker cp, may have put links there.
func (b *Broker) start(ctx context.Context, c *child) (started *run, err error) {
	done, err := b.atRest(ctx, c, c.mounts)
	if err != nil {
		return nil, err
	}
	known := true
	defer func() { done(known) }()
	// This request outlives the guest's connection: other containers wait until it has
	// started.
	ctx = context.WithoutCancel(ctx)
	s, err := b.state(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case s.Running: // an engine would say the same, and start one that ends just now
		return nil, &engineError{Status: http.StatusNotModified}
	}
	if _, err := b.bringAll(ctx, c); err != nil {
		known = !errors.As(err, new(lost))
		return nil, err
	}
	if err := b.engine.look(b.life, c.id, c.wanted.targets, c.wanted.dir); err != nil { // with what the guest has put there
		return nil, err
	}
	begun := c.begin() // before anything is taken that the end of the last run gives back
	defer func() {
		if err != nil {
			close(begun.over)
		}
	}()
	if err := b.grant(ctx, c); err != nil {
		return nil, err
	}
	if err := b.openPorts(c); err != nil {
		b.budget.end(c)
		return nil, err
	}
	err = b.engine.do(ctx, message{method: http.MethodPost, path: "/containers/" + c.id + "/start", limit: createTime}, nil)
	if err == nil {
		b.budget.started(c)
		return begun, nil
	}
	known = b.notStarted(ctx, c, err)
	return nil, err
}

// notStarted gives back what a container took that did not start, and reports
// whether that is known. An engine removes one that was to be removed at its end.
func (b *Broker) notStarted(ctx context.Context, c *child, err error) (known bool) {
	if !notMade(err) && destroy(b.engine, c.id) != nil { // it may start yet
		return false
	}
	if _, lost := b.state(ctx, c); gone(lost) {
		b.forget(c)
		return true
	}
	c.closePorts()
	b.budget.end(c)
	if c.mirrored() && c.removesItself() && destroy(b.engine, c.id) == nil {
		b.forget(c)
	}
	return true
}

func (b *Broker) running(c *child) bool {
	s, err := b.state(b.life, c)
	return err == nil && s.Running
}

// noBody refuses a body at the start, as old versions of the API take it: it
// would change what was created. Engines do so, too; elsewhere they ignore a
// body.
func noBody(r *http.Request) error {
	data, err := io.ReadAll(io.LimitReader(r.Body, 16))
	if err != nil || !oneOf(string(data), "", "{}", "{}\n", "null") {
		return refuse(RuleBody, "say it when the container is created", "this request has no body")
	}
	return nil
}

// watch gives back what a run of a container has when it ends, and forgets the
// container when it removes itself.
func (b *Broker) watch(c *child, r *run) {
	if !b.enter(&b.work) {
		close(r.over)
		return
	}
	go func() {
		defer b.work.Done()
		b.followed(c, r)
	}()
	if c.mirrored() && b.enter(&b.work) {
		go func() {
			defer b.work.Done()
			b.keepTogether(c, r.over)
		}()
	}
}

func (b *Broker) followed(c *child, r *run) {
	removes := c.removesItself()
	err := b.wait(b.life, c, "not-running")
	if err == nil {
		_, failed := b.together(b.life, c)
		b.complain(c, failed)
	}
	close(r.over)
	if removes = removes && c.isOver(r); err == nil && removes && c.mirrored() {
		err = destroy(b.engine, c.id)
	} else if err == nil && removes {
		err = b.removed(c)
	}
	c.mu.Lock()
	if c.runs == r.number {
		c.shutPorts()
		if err == nil {
			b.budget.end(c)
		}
	}
	c.mu.Unlock()
	if err == nil && removes || gone(err) {
		b.forget(c)
	}
}

// isOver reports whether a run that has ended is the container's last.
func (c *child) isOver(r *run) bool {
	if !c.mirrored() {
		return true // the engine removes it
	}
	starts := c.again.Load() > 0 // asked first: who starts it counts the run before he is done
	c.mu.Lock()
	defer c.mu.Unlock()
	return !starts && c.runs == r.number
}

// removed returns when a container that removes itself is gone. An engine that is just
// removing it may never answer, so it is asked again.
func (b *Broker) removed(c *child) error {
	for {
		ctx, cancel := context.WithTimeout(b.life, time.Second)
		err := b.wait(ctx, c, "removed")
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || b.life.Err() != nil {
			return err
		}
		if _, lost := b.state(b.life, c); gone(lost) {
			return lost
		}
	}
}

// wait returns when the engine says that a condition of c is met.
func (b *Broker) wait(ctx context.Context, c *child, condition string) error {
	resp, err := b.engine.stream(ctx, message{method: http.MethodPost, path: "/containers/" + c.id + "/wait", query: url.Values{"condition": {condition}}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// lifetime returns a handler of requests that stop, pause or resume a container.
func lifetime(verb string, longest time.Duration) func(*Broker, http.ResponseWriter, *http.Request, *call) error {
	return func(b *Broker, w http.ResponseWriter, r *http.Request, c *call) error {
		child, err := b.find(c.names[0])
		if err != nil {
			return err
		}
		query, err := c.pass(wordForm(), "t", "signal", "h", "w")
		if err != nil {
			return err
		}
		limit := longest
		if t, err := strconv.Atoi(c.query["t"]); err == nil && t > 0 {
			limit += time.Duration(min(t, 3600)) * time.Second
		}
		leave, err := b.gates.share(r.Context(), child.key()) // each of them may end a pause
		if err != nil {
			return err
		}
		leave = sync.OnceFunc(leave)
		defer leave()
		m := message{method: http.MethodPost, path: "/containers/" + child.id + "/" + verb, query: query, limit: limit}
		err = b.engine.do(r.Context(), m, nil)
		if leave(); verb == "stop" {
			child.settled(r.Context())
		}
		if err != nil {
			return b.forgetIfGone(child, err)
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

// restartContainer stops and starts: ports are taken anew.
func (b *Broker) restartContainer(w http.ResponseWriter, r *http.Request, c *call) error {
	child, err := b.find(c.names[0])
	if err != nil {
		return err
	}
	query, err := c.pass(wordForm(), "t", "signal")
	if err != nil {
		return err
	}
	child.again.Add(1)
	defer child.again.Add(-1)
	m := message{method: http.MethodPost, path: "/containers/" + child.id + "/stop", query: query, limit: time.Minute}
	leave, err := b.gates.share(r.Context(), child.key())
	if err != nil {
		return err
	}
	err = b.engine.do(r.Context(), m, nil)
	leave()
	if err != nil && !isStatus(err, http.StatusNotModified) {
		return b.forgetIfGone(child, err)
	}
	child.closePorts()
	return b.startChild(w, r, child)
}

func (b *Broker) removeContainer(w http.ResponseWriter, r *http.Request, c *call) error {
	child, err := b.find(c.names[0])
	if err != nil {
		return err
	}
	query := url.Values{"v": {"1"}}
	force := c.flag("force")
	if force {
		query.Set("force", "1")
	}
	b.endRun(r.Context(), child, force)
	leave, err := b.gates.share(r.Context(), child.key())
	if err != nil {
		return err
	}
	defer leave()
	if err := b.engine.do(r.Context(), message{method: http.MethodDelete, path: "/containers/" + child.id, query: query, limit: createTime}, nil); err != nil {
		return b.forgetIfGone(child, err)
	}
	b.forget(child)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (b *Broker) renameContainer(w http.ResponseWriter, r *http.Request, c *call) error {
	child, err := b.find(c.names[0])
	if err != nil {
		return err
	}
	name := c.query["name"]
	if !containerName().MatchString(name) {
		return bad("%.100q is no name of a container", name)
	}
	m := message{method: http.MethodPost, path: "/containers/" + child.id + "/rename", query: url.Values{"name": {b.prefix() + name}}}
	if err := b.engine.do(r.Context(), m, nil); err != nil {
		return b.forgetIfGone(child, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	child.wanted.name = name
	b.writeNamesLocked()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// follow returns a handler that hands on what the engine says, as it comes.
func follow(method, verb string, names ...string) func(*Broker, http.ResponseWriter, *http.Request, *call) error {
	return func(b *Broker, w http.ResponseWriter, r *http.Request, c *call) error {
		child, err := b.find(c.names[0])
		if err != nil {
			return err
		}
		query, err := c.pass(wordForm(), names...)
		if err != nil {
			return err
		}
		resp, err := b.engine.stream(r.Context(), message{method: method, path: "/containers/" + child.id + "/" + verb, query: query})
		if err != nil {
			return b.forgetIfGone(child, err)
		}
		defer resp.Body.Close()
		passOn(w, resp)
		return nil
	}
}

// passOn hands an answer on, with the headers that are known.
func passOn(w http.ResponseWriter, resp *http.Response) {
	for _, name := range []string{"Content-Type", "X-Docker-Container-Path-Stat"} {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(resp.StatusCode)
	if f, ok := w.(http.Flusher); ok {
		f.Flush() // clients wait for the headers before they go on
	}
	copyBody(w, resp.Body)
}

// pruneContainers removes those of this session that do not run.
func (b *Broker) pruneContainers(w http.ResponseWriter, r *http.Request, c *call) error {
	if err := c.knownFilters("label"); err != nil {
		return err
	}
	deleted := []string{}
	for _, child := range b.all() {
		if _, err := b.find(child.id); err != nil || !c.labelled(child.wanted.request.Labels) || b.running(child) {
			continue
		}
		child.settled(r.Context())
		// Without force: the engine keeps what runs, if it has been started since.
		m := message{method: http.MethodDelete, path: "/containers/" + child.id, query: url.Values{"v": {"1"}}, limit: createTime}
		if err := b.engine.do(r.Context(), m, nil); err == nil || gone(err) {
			b.forget(child)
			deleted = append(deleted, child.id)
		}
	}
	slices.Sort(deleted)
	writeJSON(w, http.StatusOK, map[string]any{"ContainersDeleted": deleted, "SpaceReclaimed": 0})
	return nil
}

// destroy removes a container, whatever it does.
func destroy(e *engine, id string) error {
	m := message{method: http.MethodDelete, path: "/containers/" + id, query: url.Values{"v": {"1"}, "force": {"1"}}, limit: createTime}
	err := e.do(context.Background(), m, nil)
	if err == nil || gone(err) {
		return nil
	}
	return fmt.Errorf("container %.12s: %w", id, err)
}
