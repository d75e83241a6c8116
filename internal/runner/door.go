//go:build linux || darwin

package runner

import (
	"context"
	"net"
	"os"
	"sync"

	"github.com/bawn-dev/bawn/internal/door"
)

// A Door is the socket at which a guest asks for a session below its own, or
// for what a human has to allow.
type Door struct {
	Listener *net.UnixListener
	Path     string // of the host, removed by Close
	Handlers door.Handlers
}

// Close closes the door and removes it. It may be called for nil, and more than
// once.
func (d *Door) Close() error {
	if d == nil || d.Listener == nil {
		return nil
	}
	err := ignoreClosed(d.Listener.Close())
	d.Listener = nil
	_ = os.Remove(d.Path) // the listener has, unless it was served
	return err
}

// openDoor serves the door until shut is called, which waits for what was
// started through it. What it refuses goes to log.
func (w *watch) openDoor(log *denials) {
	d := w.session.Door
	if d == nil || d.Listener == nil {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	var served sync.WaitGroup
	h := d.Handlers
	h.Refused = log.atDoor
	served.Go(func() {
		_ = door.Serve(ctx, d.Listener, h) // ends with ctx; until then it goes on
	})
	w.shut = func() {
		end()
		served.Wait()
	}
}
