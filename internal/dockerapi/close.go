package dockerapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bawn-dev/bawn/internal/sandbox/maker"
)

// closeTime bounds what the removal of all containers may take.
const closeTime = 40 * time.Second

func filterText(filters map[string][]string) string {
	text, err := json.Marshal(filters)
	if err != nil {
		panic("BUG(bawn): lists of strings are JSON")
	}
	return string(text)
}

func isStatus(err error, status int) bool {
	var e *engineError
	return errors.As(err, &e) && e.Status == status
}

// Close ends every request and stream, and removes what the broker has made for the
// session. It does not remove a Holder, which its owner closes. The error names what
// could not be removed. Close may be called more than once.
func (b *Broker) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	b.mu.Unlock()
	b.end()
	err := b.server.Close()
	b.requests.Wait() // so that what they still make is known
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	for _, c := range b.all() {
		c.closePorts()
	}
	left := removeAll(ctx, b.engine, []string{maker.LabelSession + "=" + b.o.Session.ID, maker.LabelRole + "=" + RoleChild}, func(map[string]string) bool { return true })
	b.relieve(left == nil)
	err = errors.Join(err, left)
	for _, c := range b.all() {
		b.forget(c)
	}
	b.work.Wait()
	b.engine.client.CloseIdleConnections()
	return errors.Join(err, b.names.close())
}

// Sweep removes the containers and volumes that killed brokers have left behind.
func Sweep(ctx context.Context, socket string) error {
	self, err := maker.Self()
	if err != nil {
		return err
	}
	e := newEngine(socket)
	defer e.client.CloseIdleConnections()
	return removeAll(ctx, e, []string{maker.LabelSession, maker.LabelMaker, maker.LabelSpace + "=" + self.Space}, func(labels map[string]string) bool {
		m, err := maker.Parse(labels[maker.LabelMaker])
		return err == nil && oneOf(labels[maker.LabelRole], RoleChild, RoleHolder) && m.Gone()
	})
}

// labelled is what the engine's lists have in common.
type labelled struct {
	ID     string   `json:"Id"`
	Name   string   // of a volume
	Names  []string // of a container
	Labels map[string]string
}

// ours reports whether it has a name of Bawn's: a container's labels come from
// its image, too, and that may be anybody's.
func (l labelled) ours() bool {
	begins := func(n string) bool { return strings.HasPrefix(strings.TrimPrefix(n, "/"), "bawn-") }
	return begins(l.Name) || slices.ContainsFunc(l.Names, begins)
}

// removeAll removes the containers, and then volumes and images, with all of these
// labels that dead agrees to.
func removeAll(ctx context.Context, e *engine, labels []string, dead func(map[string]string) bool) error {
	query := url.Values{"all": {"1"}, "filters": {filterText(map[string][]string{"label": labels})}}
	var containers []labelled
	if err := e.do(ctx, message{method: http.MethodGet, path: "/containers/json", query: query}, &containers); err != nil {
		return err
	}
	err := each(containers, dead, func(c labelled) error {
		whole := url.Values{"v": {"1"}, "force": {"1"}}
		return e.do(ctx, message{method: http.MethodDelete, path: "/containers/" + url.PathEscape(c.ID), query: whole, limit: createTime}, nil)
	})
	var volumes struct{ Volumes []labelled }
	query.Del("all")
	if lost := e.do(ctx, message{method: http.MethodGet, path: "/volumes", query: query}, &volumes); lost != nil {
		return errors.Join(err, lost)
	}
	err = errors.Join(err, each(volumes.Volumes, dead, func(v labelled) error {
		return e.do(ctx, message{method: http.MethodDelete, path: "/volumes/" + url.PathEscape(v.Name), query: url.Values{"force": {"1"}}}, nil)
	}))
	return errors.Join(err, removeImages(ctx, e, query, dead))
}

// each removes several at a time: an engine takes its time for each.
func each(list []labelled, dead func(map[string]string) bool, remove func(labelled) error) error {
	var mu sync.Mutex
	var errs []error
	var all sync.WaitGroup
	slots := make(chan struct{}, 4)
	for _, item := range list {
		if !item.ours() || !dead(item.Labels) {
			continue
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			err := remove(item)
			if err == nil || gone(err) || isStatus(err, http.StatusConflict) && strings.Contains(err.Error(), "in progress") {
				return // it is going by itself
			}
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
