package egressd

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/bawn-dev/bawn/internal/dotenv"
	"github.com/bawn-dev/bawn/internal/egress/mitm"
)

// A workspace knows the secrets that lie in the session's workspace, for its
// programs to read. It reads them at the start, and again when requests come while
// its last look is some time ago. It keeps all: a guest may remove a file that it
// has read.
type workspace struct {
	dir   string
	ready chan struct{} // closed after the first look
	set   atomic.Pointer[mitm.WatchSet]
	busy  atomic.Bool

	mu     sync.Mutex
	values []mitm.Watched
	known  map[string]bool // names and values
	last   time.Time
}

// Bounds of a workspace's secrets.
const (
	maxWatched = 256
	lookAgain  = 3 * time.Second
)

// newWorkspace begins to look through a directory.
func newWorkspace(dir string) *workspace {
	w := &workspace{dir: dir, ready: make(chan struct{}), known: map[string]bool{}}
	w.busy.Store(true)
	go func() {
		defer close(w.ready)
		w.look()
	}()
	return w
}

// look reads the files and adds new secrets.
func (w *workspace) look() {
	defer w.busy.Store(false)
	found := dotenv.Workspace(w.dir)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = now()
	before := len(w.values)
	for _, k := range found {
		key := k.Name + "\x00" + string(k.Value)
		if !w.known[key] && len(w.values) < maxWatched {
			w.known[key] = true
			w.values = append(w.values, mitm.Watched{Name: k.Name, Value: k.Value})
		}
	}
	if len(w.values) > before {
		w.set.Store(mitm.NewWatchSet(w.values))
	}
}

// watched returns the known ones so far; may be nil.
func (w *workspace) watched() *mitm.WatchSet {
	if w == nil {
		return nil
	}
	<-w.ready
	w.mu.Lock()
	old := now().Sub(w.last) > lookAgain
	w.mu.Unlock()
	if old && w.busy.CompareAndSwap(false, true) {
		go w.look()
	}
	return w.set.Load()
}
