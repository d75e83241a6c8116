package dockerapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// apply writes what the container got into what the engine is told.
func (s share) apply(h *hostBody) {
	h.Memory, h.MemorySwap, h.PidsLimit, h.NanoCpus = s.memory, s.memory, s.pids, s.nano
	if h.ShmSize > s.memory {
		h.ShmSize = s.memory
	}
}

// admit counts a container that will exist. Containers that were removed without the
// broker no longer count.
func (b *Broker) admit(ctx context.Context, c *child) error {
	err := b.budget.admit(c)
	if err != nil && b.recount(ctx) {
		err = b.budget.admit(c)
	}
	return err
}

// grant gives c a share for a run, which budget.end takes back. Containers that
// run without a limit of their own give some of theirs when that is needed.
func (b *Broker) grant(ctx context.Context, c *child) error {
	b.budget.granting.Lock()
	defer b.budget.granting.Unlock()
	own, others, err := b.budget.plan(c)
	if err != nil && b.recount(ctx) {
		own, others, err = b.budget.plan(c)
	}
	if err != nil {
		return err
	}
	for other, s := range others {
		if err := b.shrink(ctx, other, s); err != nil {
			return err
		}
	}
	if own != b.budget.of(c) {
		if err := b.limit(ctx, c, own); err != nil {
			return err
		}
	}
	b.budget.begin(c)
	return nil
}

// limit has the engine change what a container may use.
func (b *Broker) limit(ctx context.Context, c *child, s share) error {
	body := struct{ Memory, MemorySwap, NanoCpus, PidsLimit int64 }{s.memory, s.memory, s.nano, s.pids}
	if err := b.engine.do(ctx, message{method: http.MethodPost, path: "/containers/" + c.id + "/update", body: body, limit: createTime}, nil); err != nil {
		return err
	}
	b.budget.set(c, s)
	return nil
}

// shrink is limit for a container that runs, unless it uses more than it would
// have: the kernel would kill its processes.
func (b *Broker) shrink(ctx context.Context, c *child, s share) error {
	used, err := b.memoryUsed(ctx, c)
	if err == nil && used <= s.memory {
		err = b.limit(ctx, c, s)
	}
	var said *engineError
	switch {
	case gone(err):
		b.forget(c)
		return nil
	case err == nil && used > s.memory, errors.As(err, &said):
		return refuse(RuleLimit, "stop some, ask for less memory for each (--memory), or raise the session's limit",
			"the container %.100q uses more than the %s MiB that it would have beside this one", b.nameOf(c), number(s.memory>>20))
	}
	return err
}

// memoryUsed is what a container has that the kernel can't take from it, in
// bytes.
func (b *Broker) memoryUsed(ctx context.Context, c *child) (int64, error) {
	var stats struct {
		Memory struct {
			Usage int64 `json:"usage"`
			Stats struct {
				Inactive      int64 `json:"inactive_file"`       // cgroup v2
				TotalInactive int64 `json:"total_inactive_file"` // cgroup v1
			} `json:"stats"`
		} `json:"memory_stats"`
	}
	m := message{method: http.MethodGet, path: "/containers/" + c.id + "/stats", query: url.Values{"stream": {"false"}, "one-shot": {"true"}}}
	err := b.engine.do(ctx, m, &stats)
	return stats.Memory.Usage - max(stats.Memory.Stats.Inactive, stats.Memory.Stats.TotalInactive), err
}

// recount looks for containers that have ended or are gone without the broker's
// doing, and reports whether there were any.
func (b *Broker) recount(ctx context.Context) (some bool) {
	for _, c := range b.all() {
		if _, err := b.state(ctx, c); gone(err) {
			b.forget(c)
			some = true
		}
	}
	for _, c := range b.budget.ran() {
		if s, err := b.state(ctx, c); err == nil && !s.Running {
			b.budget.end(c)
			some = true
		}
	}
	return some
}
