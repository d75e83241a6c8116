package dockerapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox/maker"
)

// Bounds of what a guest may do at a time.
const (
	maxHeader   = 32 << 10 // bytes of a request's header
	headerTime  = 20 * time.Second
	maxRequests = 256         // served at a time, attached streams among them
	maxOpen     = 512         // connections without a stream: each is a descriptor and a buffer
	maxAnswers  = 4           // answers of the engine that are kept as a whole; others wait
	answerTime  = time.Minute // in which a guest has to read one
)

// A Broker serves the Docker API to one session. Close removes everything that it has
// made.
type Broker struct {
	o         Options
	engine    *engine
	server    *http.Server
	slots     chan struct{}
	open      atomic.Int32 // connections that carry requests
	budget    *budget
	store     *store
	building  chan struct{} // a slot for each build
	listeners chan struct{} // and for each published port
	joined    chan struct{} // and for each connection to these
	answers   chan struct{} // and for each answer that is kept as a whole
	names     *hosts
	life      context.Context // ends with Close
	end       context.CancelFunc

	mu       sync.Mutex
	children map[string]*child     // by the engine's ID
	execs    map[string]*execution // by the engine's ID, or by that of a slot
	networks map[string]*network   // by ID
	volumes  map[string]string     // the guest's name, and the engine's
	images   []*builtImage         // that were built here
	closed   bool
	work     sync.WaitGroup // watchers and ports
	requests sync.WaitGroup
	reaping  sync.Mutex // held while ended execs are looked for
	lastExec uint64     // guarded by mu
	making   sync.Mutex // who makes a volume
	gates    gates

	watching sync.Mutex
	watcher  *watcher // once there is something to end
}

// New returns a broker, or an error if the options are wrong. It does not contact the
// engine.
func New(o Options) (*Broker, error) {
	switch {
	case o.Session.ID == "" || o.Maker == (maker.Maker{}) || o.Engine == "":
		return nil, errors.New("BUG(bawn): a broker needs a session, its maker and an engine")
	case !sessionForm().MatchString(o.Session.ID):
		return nil, fmt.Errorf("session %q can't be a label", o.Session.ID)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	b := &Broker{
		o: o, engine: newEngine(o.Engine), slots: make(chan struct{}, maxRequests), budget: newBudget(o.Session.Isolation.Resources), store: newStore(), building: make(chan struct{}, maxBuilds),
		listeners: make(chan struct{}, maxListeners), joined: make(chan struct{}, maxJoined), answers: make(chan struct{}, maxAnswers),
		children: map[string]*child{}, execs: map[string]*execution{}, networks: map[string]*network{}, volumes: map[string]string{},
	}
	b.life, b.end = context.WithCancel(context.Background())
	var err error
	if b.names, err = newHosts(o.Dir); err != nil {
		return nil, err
	}
	b.server = &http.Server{
		Handler: http.HandlerFunc(b.handle), ReadHeaderTimeout: headerTime, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return b.life }, ConnState: b.connState,
	}
	b.networks = predefined()
	return b, nil
}

// Serve serves requests at l until Close, which closes l.
func (b *Broker) Serve(l net.Listener) error {
	err := b.server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// connState closes connections that are too many. Those that have become streams
// count as requests.
func (b *Broker) connState(c net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		if b.open.Add(1) > maxOpen {
			c.Close()
		}
	case http.StateClosed, http.StateHijacked:
		b.open.Add(-1)
	}
}

// handle serves one request, and says why it does not.
func (b *Broker) handle(w http.ResponseWriter, r *http.Request) {
	if !b.enter(&b.requests) {
		return
	}
	defer b.requests.Done()
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	default:
		b.answer(w, r, refuse(RuleLimit, "wait for others to end", "%d requests are being served", maxRequests).status(http.StatusTooManyRequests))
		return
	}
	b.answer(w, r, b.route(w, r))
}

// enter counts one more in work, unless the broker is closed.
func (b *Broker) enter(work *sync.WaitGroup) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		work.Add(1)
	}
	return !b.closed
}

func (b *Broker) route(w http.ResponseWriter, r *http.Request) error {
	c, err := parse(endpoints, r.Method, r.RequestURI)
	if err != nil {
		return err
	}
	w.Header().Set("Server", "bawn")
	return c.endpoint.serve(b, w, r, c)
}

// whole serialises requests whose answers are kept as a whole. Such an answer may
// take many times the engine's 32 MiB, and stays in memory until the guest has read
// it.
func whole(serve func(*Broker, http.ResponseWriter, *http.Request, *call) error) func(*Broker, http.ResponseWriter, *http.Request, *call) error {
	return func(b *Broker, w http.ResponseWriter, r *http.Request, c *call) error {
		select {
		case b.answers <- struct{}{}:
			defer func() { <-b.answers }()
		case <-r.Context().Done():
			return r.Context().Err()
		}
		out := http.NewResponseController(w)
		if err := out.SetWriteDeadline(b.o.Now().Add(answerTime)); err != nil {
			return err
		}
		defer func() { _ = out.SetWriteDeadline(time.Time{}) }() // the connection may be gone
		return serve(b, w, r, c)
	}
}

// answer writes an error as Docker does. It also passes a refusal by a rule to
// Options.Refused.
func (b *Broker) answer(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *Refusal
	var engine *engineError
	switch {
	case err == nil, errors.Is(err, errHijacked):
	case errors.As(err, &refusal):
		refusal.What = fmt.Sprintf("%.10s %.200s", r.Method, r.RequestURI)
		if b.o.Refused != nil && refusal.Status == http.StatusForbidden {
			b.o.Refused(*refusal)
		}
		writeError(w, refusal.Status, refusal.Error())
	case errors.As(err, &engine) && engine.Status == http.StatusNotModified:
		w.WriteHeader(http.StatusNotModified)
	case errors.As(err, &engine):
		writeError(w, engine.Status, b.own(engine.Message))
	default:
		b.log("%s %s: %v", r.Method, r.RequestURI, err)
		writeError(w, http.StatusBadGateway, "bawn: the engine does not do its part (rule "+RuleEngine+"); see the session's log outside")
	}
}

// own puts the guest's names in place of the engine's.
func (b *Broker) own(text string) string { return strings.ReplaceAll(text, b.prefix(), "") }

func (b *Broker) log(format string, args ...any) {
	if b.o.Log != nil {
		fmt.Fprintf(b.o.Log, "docker: "+format+"\n", args...)
	}
}

// prefix begins the engine's names of all that is this session's.
func (b *Broker) prefix() string {
	return "bawn-" + b.o.Session.ID[:min(len(b.o.Session.ID), 12)] + "-"
}

// check puts an action to the guard.
func (b *Broker) check(ctx context.Context, kind bawn.Kind, op bawn.Operation, resource string, args ...string) error {
	if b.o.Guard == nil {
		return refuse(RuleUnguarded, "", "there is nobody to decide it")
	}
	d := b.o.Guard(ctx, bawn.Action{
		Kind: kind, Operation: op, Resource: resource, Args: args, Session: b.o.Session.ID, Agent: b.o.Session.Agent,
		Dir: b.o.View.workspace(), At: b.o.Now(),
	})
	if d.Verdict != bawn.Allow {
		return refuse(d.Rule, "", "%s", d.Reason)
	}
	return nil
}

// labels are those of everything that the broker makes.
func (b *Broker) labels(guest map[string]string, role string) map[string]string {
	return b.o.Maker.Labels(guest, b.o.Session.ID, role)
}

// copyBody sends a stream on as it comes.
func copyBody(w http.ResponseWriter, body io.Reader) {
	flusher, _ := w.(http.Flusher)
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return
			}
			if flusher != nil {
				flusher.Flush()
			}
		}
		if err != nil {
			return
		}
	}
}
