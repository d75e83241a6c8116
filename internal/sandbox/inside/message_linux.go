package inside

import (
	"errors"
	"fmt"
)

// An order is what the host says before the executor is there. Exactly one
// member is set.
type order struct {
	Join  int    `json:",omitempty"` // so many cgroup.procs files come along, to be joined
	Setup *Setup `json:",omitempty"` // the last order
}

// Valid returns an error unless exactly one member is set.
func (o *order) Valid() error {
	if (o.Join != 0) == (o.Setup != nil) {
		return errors.New("the order does not say exactly one thing")
	}
	return nil
}

// A report is what the first process says. Exactly one member is set.
type report struct {
	Sockets int        `json:",omitempty"` // so many of the network come along
	Handed  *handed    `json:",omitempty"` // the setup is done; the executor follows
	Failed  *StepError `json:",omitempty"` // it ends
}

// Valid returns an error unless exactly one member is set.
func (r *report) Valid() error {
	n := 0
	for _, is := range []bool{r.Sockets != 0, r.Handed != nil, r.Failed != nil} {
		if is {
			n++
		}
	}
	if n != 1 {
		return errors.New("the report does not say exactly one thing")
	}
	return nil
}

// handed says which files come along, in this order.
type handed struct{ Root, Listener, Mounts bool }

func (h handed) files() int {
	n := 0
	for _, is := range []bool{h.Root, h.Listener, h.Mounts} {
		if is {
			n++
		}
	}
	return n
}

// check refuses what can't be carried out or would contain nothing by mistake.
func (s *Setup) check() error {
	switch {
	case s.Session == "" || s.Plan == [32]byte{}:
		return errors.New("BUG(bawn): a setup without a session or a plan; no ticket could be signed")
	case s.Stream && (len(s.Groups) > 0 || s.Network != nil || s.Filter.supervised() || s.Mounts):
		return errors.New("BUG(bawn): a setup wants descriptors to leave a sandbox that none can leave")
	case s.KeepCapabilities && (s.Filter != FilterNone || s.Landlock.ABI != 0):
		return errors.New("BUG(bawn): a setup keeps capabilities below a filter or Landlock")
	case s.Filter > FilterNone:
		return fmt.Errorf("BUG(bawn): filter %d; want one of the four", s.Filter)
	case s.Network != nil && (len(s.Network.Own) == 0 || len(s.Network.Own) > 2):
		return fmt.Errorf("BUG(bawn): a network with %d addresses of its own; want 1 or 2", len(s.Network.Own))
	}
	return nil
}
