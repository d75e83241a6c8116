package webui

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/bawn-dev/bawn"
)

// A Change says that a question waits for a human, or waits no longer.
type Change struct {
	ID      string // of the question
	Session string
	Agent   string // as it calls itself: untrusted
	Kind    bawn.Kind
	Pending bool
}

// A Notice is one way to tell humans that somebody waits.
type Notice struct {
	Name string // for the log: the service, without any part of its address
	Send func(text string) error
}

// How often notices are sent.
const (
	// NoticeAfter is how long a question waits before there is a notice.
	NoticeAfter  = 5 * time.Second
	noticeEvery  = time.Minute // at most one for a session
	noticesBurst = 20          // of all sessions at once …
	noticesEach  = 3 * time.Second
	maxWaiting   = 10_000 // questions that are kept in mind
	maxQueued    = 16     // notices that wait for one service
)

// A message is what is sent. It is made of words of ours, a session's ID and
// an agent's name only: it passes through servers of others.
type message struct {
	short string // without address
	long  string // with the page's address
	tag   string // the session's
}

// A Notifier tells humans of questions that wait.
type Notifier struct {
	After  time.Duration // how long a question waits first; 0 is NoticeAfter
	Page   string        // address of the page, or ""
	Ways   []Notice
	Log    *slog.Logger
	pusher *pusher

	waiting map[string]waiting
	last    map[string]time.Time // by session
	limit   *rate.Limiter
}

type waiting struct {
	Change
	since time.Time
}

// Notifier returns what tells the server's devices, besides its other ways.
func (s *Server) Notifier(after time.Duration) *Notifier {
	return &Notifier{After: after, Page: s.origin + "/", Ways: s.o.Notices, Log: s.o.Log, pusher: s.pusher}
}

// Run sends notices until ctx ends or changes is closed.
func (n *Notifier) Run(ctx context.Context, changes <-chan Change) {
	if n.After == 0 {
		n.After = NoticeAfter
	}
	n.waiting, n.last = map[string]waiting{}, map[string]time.Time{}
	n.limit = rate.NewLimiter(rate.Every(noticesEach), noticesBurst)
	ways := n.start(ctx)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(n.next(time.Now()))
		select {
		case <-ctx.Done():
			return
		case c, ok := <-changes:
			if !ok {
				return
			}
			n.note(c, time.Now())
		case <-timer.C:
			for _, m := range n.due(time.Now()) {
				n.hand(ways, m)
			}
		}
	}
}

// note keeps a question in mind, once, or forgets it.
func (n *Notifier) note(c Change, now time.Time) {
	if !c.Pending {
		delete(n.waiting, c.ID)
		return
	}
	if _, known := n.waiting[c.ID]; !known && len(n.waiting) < maxWaiting {
		n.waiting[c.ID] = waiting{c, now}
	}
}

// at returns when there may be a notice of w; the zero time is never: there
// was one of it.
func (n *Notifier) at(w waiting) time.Time {
	if w.since.IsZero() {
		return time.Time{}
	}
	at := w.since.Add(n.After)
	if last, ok := n.last[w.Session]; ok && at.Before(last.Add(noticeEvery)) {
		at = last.Add(noticeEvery)
	}
	return at
}

// next returns how long there is nothing to do.
func (n *Notifier) next(now time.Time) time.Duration {
	wait := time.Hour
	for _, w := range n.waiting {
		if at := n.at(w); !at.IsZero() {
			wait = min(wait, max(at.Sub(now), 10*time.Millisecond))
		}
	}
	if n.limit.TokensAt(now) < 1 {
		wait = max(wait, noticesEach)
	}
	return wait
}

// due returns one notice for each session that has questions to tell of.
func (n *Notifier) due(now time.Time) []message {
	due := map[string][]string{} // IDs of questions by session
	for id, w := range n.waiting {
		if at := n.at(w); !at.IsZero() && !at.After(now) {
			due[w.Session] = append(due[w.Session], id)
		}
	}
	var out []message
	for session, ids := range due {
		if !n.limit.AllowN(now, 1) {
			break // later
		}
		out = append(out, n.compose(n.waiting[ids[0]].Change, len(ids)))
		n.last[session] = now
		for _, id := range ids {
			w := n.waiting[id]
			w.since = time.Time{}
			n.waiting[id] = w
		}
	}
	for session, at := range n.last {
		if now.Sub(at) > noticeEvery {
			delete(n.last, session)
		}
	}
	return out
}

// askings say what a question of a kind is about.
var askings = map[bawn.Kind]string{
	bawn.Filesystem: "asks for files",
	bawn.Network:    "asks for a host",
	bawn.Command:    "asks to run a command",
	bawn.Tool:       "asks to use a tool",
}

// compose writes a notice. The text of the action is not part of it.
func (n *Notifier) compose(c Change, count int) message {
	asking, ok := askings[c.Kind]
	if !ok {
		asking = "asks for something"
	}
	if count > 1 {
		asking = fmt.Sprintf("asks %d questions", count)
	}
	who := "Session " + plainName(c.Session, 8)
	if agent := plainName(c.Agent, 24); agent == c.Agent && agent != "" {
		who += " (agent " + agent + ")"
	}
	m := message{short: who + " " + asking + ": open Bawn", tag: plainName(c.Session, 8)}
	m.long = m.short
	if n.Page != "" {
		m.long += " " + n.Page
	}
	return m
}

// plainName keeps letters, digits, dots, hyphens and underscores, n at most.
func plainName(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return -1
	}, s)
	return clip(s, n)
}

// start begins one sender for each way: a slow one holds up no other.
func (n *Notifier) start(ctx context.Context) []chan message {
	send := []func(message){}
	for _, way := range n.Ways {
		send = append(send, func(m message) {
			if way.Send(m.long) != nil { // what it says may hold the address, which is a secret
				n.Log.Warn("a notice could not be sent; check the address of the service", "service", way.Name)
			}
		})
	}
	if n.pusher != nil {
		send = append(send, func(m message) { n.pusher.send(ctx, m) })
	}
	var queues []chan message
	for _, f := range send {
		queue := make(chan message, maxQueued)
		queues = append(queues, queue)
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case m := <-queue:
					f(m)
				}
			}
		}()
	}
	return queues
}

// hand gives a notice to all ways. A slow reader misses it.
func (n *Notifier) hand(queues []chan message, m message) {
	for _, queue := range queues {
		select {
		case queue <- m:
		default:
			n.Log.Warn("a notice was left out: its service is too slow")
		}
	}
}
