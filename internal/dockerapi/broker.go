// Package dockerapi is a Docker API for guests: a filter in front of a real
// engine. A guest runs containers of its own (Testcontainers, Compose) without
// access to the engine, which is root on the host.
//
// The guest's requests are parsed, judged and written anew. No byte of a
// request line, a header or a JSON body reaches the engine as the guest wrote
// it, except the contents of archives and of attached streams. What is not
// known is refused, in Docker's own form of errors. A container is the guest's
// if the broker has made it for this session; all others do not exist for it.
//
// Requests follow the Docker Engine API (v1.40 to v1.47), as its OpenAPI
// document describes it.
package dockerapi

import (
	"context"
	"io"
	"net"
	"os"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox/maker"
)

// labelPrefix begins labels that no guest may set: those of package maker.
const labelPrefix = "dev.bawn."

// Roles of what the broker makes at the engine.
const (
	RoleChild  = "child"  // a container, a volume that a guest asked for
	RoleHolder = "holder" // keeps the network of a session's containers
)

// A Guard decides actions and records them: guard.Guard's Check.
type Guard func(ctx context.Context, a bawn.Action) bawn.Decision

// A Network is where a session's containers are. Its methods may be called
// from any goroutine.
type Network interface {
	// Mode is the network mode of every container: "container:ID" of the one
	// whose network they share. The first call may make that, of an image that is
	// present.
	Mode(ctx context.Context, image string) (string, error)
	// Dial connects to a TCP port of that network's loopback.
	Dial(port uint16) (*os.File, error)
	// Listen takes a TCP port of the guest's own loopback, any free one for 0.
	Listen(port uint16) (*net.TCPListener, error)
}

// Options say whom a broker serves and what its containers may use.
type Options struct {
	Engine  string       // the engine's UNIX socket, absolute
	Session bawn.Session // its Isolation.Resources bound the sum of all containers
	Maker   maker.Maker
	View    View
	// Dir is a directory of this session's own, not seen by the guest, for files
	// that containers are given.
	Dir string
	// Write starts package writeback for a directory of the guest's, as the guest and in
	// its sandbox. end kills it. nil: containers write to no directory of the guest's.
	Write   func(dir string, in, out *os.File) (end func(), err error)
	Network Network // nil: containers have an empty network, and publish no port
	Guard   Guard
	// Pull lets images be fetched, which the engine does, outside of the
	// session's network: each is put to the guard as a connection to its registry.
	Pull bool
	// Refused is called with what was refused, the rule and the reason. It may be nil.
	Refused func(Refusal)
	// Program is bawnd's path: started with WatchArgument, it ends the containers
	// where this process is killed. "" leaves them to the next Sweep.
	Program string
	Log     io.Writer // what went wrong beside requests; nil for nowhere
	Now     func() time.Time
}

// A View is what containers may be given of what the guest sees, as copies.
// The zero View gives nothing.
type View struct {
	// Open opens the root as the guest sees it (O_PATH), hidden places and masked
	// files as they are there.
	Open func() (*os.File, error)
	// Below are the directories of the guest that are copied from: its workspace,
	// and its /tmp where that is its own. The first one is the workspace.
	Below []string
}

// workspace is the directory that actions are about.
func (v View) workspace() string {
	if len(v.Below) == 0 {
		return ""
	}
	return v.Below[0]
}
