//go:build linux || darwin

package runner

import (
	"context"
	"net"
	"os"
	"sync"

	"github.com/bawn-dev/bawn/internal/sessionsocket"
)

// A Socket takes a guest's requests for a session below its own, or for
// something that a human must allow.
type Socket struct {
	Listener *net.UnixListener
	Path     string // of the host, removed by Close
	Handlers sessionsocket.Handlers
}

// Close closes the session socket and removes it. It may be called for nil, and more than
// once.
func (d *Socket) Close() error {
	if d == nil || d.Listener == nil {
		return nil
	}
	err := ignoreClosed(d.Listener.Close())
	d.Listener = nil
	_ = os.Remove(d.Path) // the listener has, unless it was served
	return err
}

// openSocket serves the session socket until shut is called, which waits for
// everything that was started through it. Its refusals go to log.
func (w *watch) openSocket(log *denials) {
	d := w.session.Socket
	if d == nil || d.Listener == nil {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	var served sync.WaitGroup
	h := d.Handlers
	h.Refused = log.atSocket
	served.Go(func() {
		_ = sessionsocket.Serve(ctx, d.Listener, h) // ends with ctx; until then it goes on
	})
	w.shut = func() {
		end()
		served.Wait()
	}
}
