package dockerapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

// mirrorBind makes a mount a mirror: the container gets a volume of its own.
func (b *Broker) mirrorBind(c *child, m *mountRequest, body *mountBody) error {
	if b.o.Write == nil {
		return refuse(RuleMount, "mount it read-only (it is a copy then), or use a volume", "%.200q can't be written by a container of this session: nothing would keep it from writing files there that the host executes later", m.Source)
	}
	dir, err := b.o.View.openDir(path.Clean(m.Source))
	if err != nil {
		return err
	}
	dir.Close()
	c.mirrors = append(c.mirrors, &mirror{source: path.Clean(m.Source), target: m.Target, base: tree{}, held: tree{}})
	body.Type, body.BindOptions = typeVolume, nil
	body.VolumeOptions = &volumeBody{NoCopy: true, Labels: b.labels(nil, RoleChild)}
	return nil
}

// A lost is an error after which it is not known what the engine does.
type lost struct{ error }

func (l lost) Unwrap() error { return l.error }

// mirrored reports whether the container may write directories of the guest's.
func (c *child) mirrored() bool { return len(c.mirrors) > 0 }

// nest leaves out of the mirrors what is mounted within them.
func (c *child) nest() {
	for _, m := range c.mirrors {
		for _, t := range c.wanted.targets {
			if t != m.target && within(t, m.target) {
				m.except = append(m.except, strings.TrimPrefix(t, m.target+"/"))
			}
		}
	}
}

// removesItself reports whether the container goes at its end. A mirrored one the broker
// removes, when it has what the container wrote.
func (c *child) removesItself() bool { return c.wanted.request.HostConfig.AutoRemove }

// together brings the mirrors of a container together, which is paused meanwhile.
func (b *Broker) together(ctx context.Context, c *child) (some bool, err error) {
	if !c.mirrored() {
		return false, nil
	}
	done, err := b.atRest(ctx, c, c.mounts)
	if err != nil {
		return false, err
	}
	some, err = b.bringAll(ctx, c)
	done(!errors.As(err, new(lost)))
	return some, err
}

// bringAll is together for a container that is at rest already.
func (b *Broker) bringAll(ctx context.Context, c *child) (some bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, mirrorTime)
	defer cancel()
	defer context.AfterFunc(b.life, cancel)() // a guest that stops the writer does not hold up the session's end
	for _, m := range c.mirrors {
		changed, failed := b.bring(ctx, c, m)
		some = some || changed
		err = errors.Join(err, failed)
	}
	return some, err
}

// mirrorTime bounds how long all mirrors of a container take.
const mirrorTime = 3 * time.Minute

// complain tells the human that mirrors could not be brought together, where no request is
// refused for it. It says the same only once in a row.
func (b *Broker) complain(c *child, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	c.mu.Lock()
	again := c.complaint == text
	c.complaint = text
	c.mu.Unlock()
	var r *Refusal
	switch {
	case err == nil || again || gone(err) || b.life.Err() != nil:
	case errors.As(err, &r):
		b.refuseLater(r, "mounts of "+b.nameOf(c))
	default:
		b.log("bring the mounts of container %.12s and the workspace together: %v", c.id, nameless(err))
	}
}

// How long mirrors are left alone while a container runs: at least and at most, and how
// many times what the last look took.
const (
	mirrorLeast  = 2 * time.Second
	mirrorMost   = 10 * time.Second
	mirrorFactor = 10
)

// keepTogether brings mirrors together now and then until the run has ended.
func (b *Broker) keepTogether(c *child, ended <-chan struct{}) {
	for wait := mirrorLeast; ; {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ended:
			timer.Stop()
			return
		}
		began := time.Now()
		some, err := b.together(b.life, c)
		b.complain(c, err)
		wait = min(wait*2, mirrorMost)
		if some {
			wait = mirrorLeast
		}
		wait = max(wait, mirrorFactor*time.Since(began))
	}
}

// A run is one of a container's.
type run struct {
	number int
	over   chan struct{} // closed when it has ended and what it wrote is in the workspace
}

// begin makes a new run.
func (c *child) begin() *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs++
	c.last = &run{c.runs, make(chan struct{})}
	return c.last
}

// settled waits until the container's last run is over, for those who look at its files.
func (c *child) settled(ctx context.Context) {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	if last == nil || !c.mirrored() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mirrorTime)
	defer cancel()
	select {
	case <-last.over:
	case <-ctx.Done():
	}
}

// waitContainer answers when the container has ended and what it wrote is in the
// workspace.
func (b *Broker) waitContainer(w http.ResponseWriter, r *http.Request, c *call) error {
	child, err := b.find(c.names[0])
	if err != nil {
		return err
	}
	query, err := c.pass(wordForm(), "condition")
	if err != nil {
		return err
	}
	resp, err := b.engine.stream(r.Context(), message{method: http.MethodPost, path: "/containers/" + child.id + "/wait", query: query})
	if err != nil {
		return b.forgetIfGone(child, err)
	}
	defer resp.Body.Close()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{&settling{from: resp.Body, settled: func() { child.settled(r.Context()) }}, resp.Body}
	passOn(w, resp)
	return nil
}

// A settling is an answer that waits before its first byte is passed on.
type settling struct {
	from    io.Reader
	settled func()
}

// Read reads what there is, once it may.
func (s *settling) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if n > 0 && s.settled != nil {
		s.settled()
		s.settled = nil
	}
	return n, err
}

// endRun waits for what a container wrote before it is removed. With force it kills what
// runs of it; without force the engine keeps one that runs.
func (b *Broker) endRun(ctx context.Context, c *child, force bool) {
	if !c.mirrored() {
		return
	}
	if b.running(c) {
		m := message{method: http.MethodPost, path: "/containers/" + c.id + "/kill", query: url.Values{"signal": {"KILL"}}}
		if !force || b.engine.do(ctx, m, nil) != nil {
			return
		}
	}
	c.settled(ctx)
}

// Bounds of what is said of one mirror at a time, and of what is remembered.
const (
	maxTold = 20
	maxHeld = 10_000
)

// heldBack tells the human what of a container's stays in it.
func (b *Broker) heldBack(c *child, m *mirror, name, why, remedy string) {
	if m.told++; m.told > maxTold {
		return
	}
	b.refuseLater(refuse(RuleMount, remedy+"copy it out (docker cp)", "what the container %.100q has at %.200q is not in the workspace: %s", b.nameOf(c), path.Join(m.target, name), why), path.Join(m.source, name))
}

// heldMore tells of what heldBack has left out.
func (b *Broker) heldMore(c *child, m *mirror) {
	if more := m.told - maxTold; more > 0 {
		b.refuseLater(refuse(RuleMount, "copy it out (docker cp)", "%d more files of the container %.100q are not in the workspace", more, b.nameOf(c)), m.source)
	}
}

// refuseLater passes on a refusal that answers no request.
func (b *Broker) refuseLater(r *Refusal, what string) {
	if r.What = what; b.o.Refused != nil {
		b.o.Refused(*r)
	}
}
