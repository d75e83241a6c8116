package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// listWait is how long a client waits for the lists of servers that start;
// later ones are announced as changes.
const listWait = 8 * time.Second

// again is how long a server's changed lists are left alone before they are
// read: a server may announce changes without end.
const again = time.Second

// An offer is what a server has.
type offer struct {
	tools     []*mcp.Tool
	raw       []json.RawMessage // as they came
	prompts   []*mcp.Prompt
	resources []*mcp.Resource
	templates []*mcp.ResourceTemplate
}

// read asks a server for everything it has.
func (b *backend) read(ctx context.Context, r *running) (o offer, err error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	s := r.session
	has := s.InitializeResult().Capabilities
	if has == nil {
		return o, nil
	}
	var errs [4]error
	if has.Tools != nil {
		o.tools, errs[0] = pages(b.Limits, "tools", func(cursor string) ([]*mcp.Tool, string, error) {
			r, err := s.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.Tools, r.NextCursor, nil
		})
		o.raw = r.wire.take()
	}
	if has.Prompts != nil {
		o.prompts, errs[1] = pages(b.Limits, "prompts", func(cursor string) ([]*mcp.Prompt, string, error) {
			r, err := s.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.Prompts, r.NextCursor, nil
		})
	}
	if has.Resources != nil {
		o.resources, errs[2] = pages(b.Limits, "resources", func(cursor string) ([]*mcp.Resource, string, error) {
			r, err := s.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.Resources, r.NextCursor, nil
		})
		o.templates, errs[3] = pages(b.Limits, "resource templates", func(cursor string) ([]*mcp.ResourceTemplate, string, error) {
			r, err := s.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
			if err != nil {
				return nil, "", absent(err)
			}
			return r.ResourceTemplates, r.NextCursor, nil
		})
	}
	return o, errors.Join(errs[:]...)
}

// pages reads a list to its end, which it must have.
func pages[T any](l Limits, what string, next func(cursor string) ([]T, string, error)) ([]T, error) {
	var all []T
	cursor := ""
	for range l.Pages {
		list, more, err := next(cursor)
		if errors.Is(err, errAbsent) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list its %s: %w", what, err)
		}
		if all = append(all, list...); len(all) > l.Tools {
			return nil, fmt.Errorf("it lists more than %d %s", l.Tools, what)
		}
		if more == "" {
			return all, nil
		}
		cursor = more
	}
	return nil, fmt.Errorf("its list of %s has more than %d pages", what, l.Pages)
}

// learn starts the servers of which nothing is known, and waits for them a
// while.
func (g *Gateway) learn(ctx context.Context, front *mcp.ServerSession, list []*backend) {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	var all sync.WaitGroup
	for _, b := range list {
		all.Go(func() { _, _ = b.get(ctx, front) }) // has been reported
	}
	all.Wait()
}

// wanted are the servers that a request for a list is about: tools that a human
// has agreed to are known without the server.
func (g *Gateway) wanted(method string) []*backend {
	var list []*backend
	for _, b := range g.backends {
		if method != "tools/list" || b.Known == nil {
			list = append(list, b)
		}
	}
	return list
}

// learnOf starts the server that a tool's name says, unless the tool is known.
func (g *Gateway) learnOf(ctx context.Context, front *mcp.ServerSession, tool string) {
	server, _, _ := strings.Cut(tool, between)
	b := g.backend(server)
	if b == nil || b.offers(tool) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, b.Limits.Start)
	defer cancel()
	_, _ = b.get(ctx, front) // has been reported
}

// changed has a server's lists read again, at most once in a while.
func (b *backend) changed() {
	b.mu.Lock()
	r, busy := b.run, b.stale
	b.stale = b.stale || r != nil
	b.mu.Unlock()
	if r == nil || busy {
		return
	}
	b.g.work.Go(func() {
		select {
		case <-time.After(again):
		case <-b.g.ctx.Done():
		}
		b.mu.Lock()
		b.stale = false
		b.mu.Unlock()
		b.reread(r)
	})
}

// reread reads the lists of a server that says they have changed.
func (b *backend) reread(r *running) {
	ctx, cancel := context.WithTimeout(b.g.ctx, b.Limits.Start)
	defer cancel()
	o, err := b.read(ctx, r)
	if err == nil {
		b.present(o)
		return
	}
	b.endFor(r, "its lists changed and can't be read: "+err.Error())
}

// unread ends a server that does not read. The caller does not wait for the
// server's end. A server that is still starting is ended by the goroutine that
// starts it.
func (b *backend) unread(w *wire) {
	b.mu.Lock()
	r := b.run
	b.mu.Unlock()
	if r != nil && r.wire == w {
		go b.endFor(r, errUnread.Error())
	}
}

// endFor ends a server for what it did.
func (b *backend) endFor(r *running, why string) {
	b.mu.Lock()
	if r.cause == "" {
		r.cause = why
	}
	b.mu.Unlock()
	_ = r.process.Close() // watch tells of it
}
