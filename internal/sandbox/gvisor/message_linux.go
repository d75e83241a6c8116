package gvisor

import (
	"errors"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// An order is what the host says to the launcher. Exactly one member is set.
type order struct {
	Launch *launch `json:",omitempty"`
	Socket int     `json:",omitempty"` // make a TCP socket of this family in the gateway
}

// Valid returns an error unless exactly one member is set.
func (o *order) Valid() error {
	if (o.Launch != nil) == (o.Socket != 0) {
		return errors.New("the order does not say exactly one thing")
	}
	return nil
}

// A launch is all that the launcher makes.
type launch struct {
	Groups int // cgroup.procs files among its descriptors
	// Processes bounds how many there may be in the launcher's user namespace
	// (RLIMIT_NPROC, which does not hold for root); 0 for no bound.
	Processes int64
	Mounts    []mount
	Gateway   *Gateway
	Resolver  *Resolver
	Config    spec
	Runsc     string // path
	Flags     []string
	Program   string // path of Bawn
}

// A mount carries what native.Mount keeps to itself.
type mount struct {
	layout.Mount
	Dev, Ino           uint64
	LayerDev, LayerIno uint64
}

// mounts are those of a layout that the host's kernel makes.
func mounts(p *layout.Plan) []mount {
	var list []mount
	for _, m := range p.Mounts {
		if kernels(p, m) {
			list = append(list, mount{m, m.ID.Dev, m.ID.Ino, m.LayerID().Dev, m.LayerID().Ino})
		}
	}
	return list
}

// A report is what the launcher says. Exactly one member is set, but for
// Sockets, with which come files.
type report struct {
	Sockets int    `json:",omitempty"` // of the gateway; that many files come along
	Failed  *step  `json:",omitempty"`
	Socket  bool   `json:",omitempty"` // the socket that was asked for comes along
	Started bool   `json:",omitempty"` // runsc was
	Ended   *ended `json:",omitempty"` // runsc has
}

// A step is what the launcher could not do.
type step struct {
	Name, Why string
	Errno     int
}

// ended says how runsc ended.
type ended struct {
	Status int
	Text   string // the end of its output
}
