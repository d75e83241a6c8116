//go:build linux || darwin

package runner

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// A Network reaches the network in a guest's place, outside of the sandbox. It
// is a *remote.Relay.
type Network interface {
	// Placed waits until the sandbox's files of it are complete.
	Placed() error
	// Serve takes the guest's sockets (sandbox.GuestNetwork.Files), which it
	// closes here.
	Serve(sockets []*os.File, h remote.Handlers) error
	Answer(egress.Answer) error
	// Done is closed when it has ended by itself.
	Done() <-chan struct{}
	Close() error
}

// serve lets the guest reach the network, where it has one by name.
func (w *watch) serve(log *denials) error {
	if w.execution != nil {
		return w.serveSplit(log)
	}
	w.ports.serve(w.guest.Dial)
	w.openSocket(log)
	if err := w.serveContainers(w.guest, log); err != nil {
		return err
	}
	network := w.session.Network
	if network == nil {
		return nil
	}
	w.asker = newAsker(w.prompter().Approver(w.session.Zone), w.guest, network.Answer)
	return w.connect(log, remote.Handlers{Ask: w.asker.ask, Withdraw: w.asker.withdraw, Denied: log.told})
}

// awaitPlaces waits for files that the sandboxes of the session show: each
// network has written them while they were planned.
func (s *Session) awaitPlaces() error {
	var errs []error
	if s.Network != nil {
		errs = append(errs, s.Network.Placed())
	}
	if s.Split != nil && s.Split.Network != nil {
		errs = append(errs, s.Split.Network.Placed())
	}
	return errors.Join(errs...)
}

// connect gives the session's own sandbox its network.
func (w *watch) connect(log *denials, h remote.Handlers) error {
	sockets := w.guest.Network()
	if sockets == nil {
		return errors.New("BUG(bawn): the plan made no sockets for the relay")
	}
	if err := w.session.Network.Serve(sockets.Files(), h); err != nil {
		return fmt.Errorf("give the guest its network: %w", err)
	}
	w.log, w.networkGone = log, w.session.Network.Done()
	return nil
}

// serveSplit opens the session socket, and lets each zone reach its network. Only what
// commands reach is asked about.
func (w *watch) serveSplit(log *denials) error {
	x := w.execution
	w.ports.serve(x.guest.Dial)
	prompter := w.prompter()
	if x.session.Split.Network != nil {
		w.asker = newAsker(prompter.Approver(w.session.Zone), x.guest, x.session.Split.Network.Answer)
	}
	if w.session.Network != nil {
		unasked := remote.Handlers{Ask: func(egress.Question) {}, Withdraw: func(uint64) {}, Denied: log.told}
		if err := w.connect(log, unasked); err != nil {
			return err
		}
	}
	if err := w.serveContainers(x.guest, x.log); err != nil {
		return err
	}
	return x.serve(w.asker, prompter, log)
}

// published are the ports of a guest that the host's loopback reaches: those of
// the zone of commands, if there are two.
func (s *Session) published() []string {
	if s.Split != nil {
		return s.Split.Isolation.Egress.Ports
	}
	return s.Isolation.Egress.Ports
}

// lost says that the relay has ended before the session has. The guest goes on
// without a network: every socket that led out is closed.
func (w *watch) lost() {
	w.log.told(egress.Denial{
		Operation: bawn.Connect, Resource: "*", Rule: "builtin:egress-gone", Reason: "the relay of the session's network has ended",
		Remedy: "end the session and start it anew",
	})
}

// CloseNetwork ends the session's network, where it has one, in every zone. It
// may be called more than once.
func (s *Session) CloseNetwork() {
	var all sync.WaitGroup
	if s.Network != nil {
		all.Go(func() { s.Network.Close() })
	}
	if s.Split != nil && s.Split.Network != nil {
		all.Go(func() { s.Split.Network.Close() })
	}
	all.Wait()
}

// told keeps a refusal that another component has recorded.
func (d *denials) told(n egress.Denial) {
	den := sandbox.Denial{Kind: bawn.Network, Operation: n.Operation, Resource: n.Resource, Rule: n.Rule, Reason: n.Reason, Remedy: n.Remedy}
	d.session.Recent.add(den)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.seen[den] {
		return
	}
	if len(d.seen) >= maxKept {
		d.missed++
		return
	}
	d.seen[den] = true
	d.network = append(d.network, den)
}
