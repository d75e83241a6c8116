package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of the clients over HTTP.
const (
	maxClients  = 64               // sessions at a time
	maxRequests = 4 * maxClients   // that are answered at a time, with streams of events
	maxBodies   = 4                // that are read at a time, each up to maxClientMessage
	maxHeld     = 64 << 20         // bytes of those that are being answered
	bodyTime    = 30 * time.Second // until a request has been read
	idleTime    = 2 * time.Minute  // of a connection between two requests
)

// clients bounds the sessions and requests of clients over HTTP. With as many sessions as
// there may be, a new one ends the one that has been unused for longest; one of which a
// request is being answered stays.
type clients struct {
	front    *mcp.Server
	next     http.Handler // with sessions
	requests chan struct{}
	bodies   chan struct{}
	bodyTime time.Duration

	mu      sync.Mutex
	held    int // bytes of bodies
	opening int // sessions that are being made
	used    map[string]*use
}

// A use is what is known of a session.
type use struct {
	open int // requests
	last time.Time
}

func newClients(front *mcp.Server, next http.Handler) *clients {
	return &clients{
		front: front, next: next, requests: make(chan struct{}, maxRequests), bodies: make(chan struct{}, maxBodies), bodyTime: bodyTime, used: map[string]*use{},
	}
}

// ServeHTTP serves a request of a client with a session, or of one that begins its own.
func (c *clients) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		if !c.begin() {
			overloaded(w, fmt.Sprintf("%d clients have a session, and all are in use; end one", maxClients))
			return
		}
		defer c.made()
		c.next.ServeHTTP(&opening{w, c}, r)
		c.begun(w.Header().Get(sessionHeader)) // if it has sent nothing
		return
	}
	c.mu.Lock()
	u := c.used[id]
	c.mu.Unlock()
	c.count(u, 1)
	defer c.count(u, -1)
	c.next.ServeHTTP(w, r)
}

// sessionHeader names a client's session.
const sessionHeader = "Mcp-Session-Id"

// overloaded refuses a request that would be one too many.
func overloaded(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "5")
	http.Error(w, "bawn: "+why, http.StatusServiceUnavailable)
}

// begin counts a new session. It reports false if the limit is reached and all are in use.
func (c *clients) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	live := c.live()
	if len(live)+c.opening >= maxClients {
		oldest := ""
		for id := range live {
			if u := c.used[id]; u.open == 0 && (oldest == "" || u.last.Before(c.used[oldest].last)) {
				oldest = id
			}
		}
		if oldest == "" {
			return false
		}
		delete(c.used, oldest)
		go live[oldest].Close() //nolint:errcheck // its client is told when it asks again
	}
	c.opening++
	return true
}

// made ends what begin began.
func (c *clients) made() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opening--
}

// begun knows a session that was made, if one was.
func (c *clients) begun(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != "" && c.used[id] == nil {
		c.used[id] = &use{last: time.Now()}
	}
}

// An opening answers a request that begins a session. The session is known before its
// client learns its name, so that the client's next request is counted.
type opening struct {
	http.ResponseWriter
	c *clients
}

// WriteHeader sends the name of the session.
func (o *opening) WriteHeader(status int) {
	o.c.begun(o.Header().Get(sessionHeader))
	o.ResponseWriter.WriteHeader(status)
}

// Write sends the name of the session with the first bytes.
func (o *opening) Write(p []byte) (int, error) {
	o.c.begun(o.Header().Get(sessionHeader))
	return o.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (o *opening) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// count counts requests of a session, or none of one that is not known.
func (c *clients) count(u *use, n int) {
	if u == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	u.open, u.last = u.open+n, time.Now()
}

// live are the sessions that are counted and have not ended. It forgets those that have.
func (c *clients) live() map[string]*mcp.ServerSession {
	live := map[string]*mcp.ServerSession{}
	for s := range c.front.Sessions() {
		if c.used[s.ID()] != nil {
			live[s.ID()] = s
		}
	}
	for id := range c.used {
		if live[id] == nil {
			delete(c.used, id)
		}
	}
	return live
}

// bounded limits the requests that are served at a time, their size, and the time in which
// they must arrive.
func (c *clients) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case c.requests <- struct{}{}:
			defer func() { <-c.requests }()
		default:
			overloaded(w, fmt.Sprintf("%d requests are being answered", maxRequests))
			return
		}
		body, err := c.body(w, r)
		var long *http.MaxBytesError
		switch {
		case errors.As(err, &long):
			http.Error(w, fmt.Sprintf("bawn: the request has more than %d bytes", long.Limit), http.StatusRequestEntityTooLarge)
		case err != nil:
			http.Error(w, "bawn: the request did not come: "+err.Error(), http.StatusBadRequest)
		case !c.hold(len(body)):
			overloaded(w, fmt.Sprintf("requests of %d MiB are being answered", maxHeld>>20))
		default:
			defer c.hold(-len(body))
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		}
	})
}

// hold adds to the bytes that are in memory, or subtracts. It reports false if they would
// exceed the limit.
func (c *clients) hold(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held+n > maxHeld {
		return false
	}
	c.held += n
	return true
}

// body reads what a request holds.
func (c *clients) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	select {
	case c.bodies <- struct{}{}:
		defer func() { <-c.bodies }()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	conn := http.NewResponseController(w)
	if err := conn.SetReadDeadline(time.Now().Add(c.bodyTime)); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxClientMessage))
	if err != nil {
		return nil, err // the deadline also ends the wait for the rest
	}
	return body, conn.SetReadDeadline(time.Time{})
}
