// Package dockerapi is a Docker API for guests: a filter in front of a real
// engine. A guest runs containers of its own (Testcontainers, Compose) without
// access to the engine, which is root on the host.
//
// The guest's requests are parsed, judged and written anew. No byte of a
// request line, a header or a JSON body reaches the engine as the guest wrote
// it, except the contents of archives and of attached streams. Unknown requests and
// fields are refused, with errors in Docker's own form. A guest sees only containers that
// the broker has made for this session.
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

// Roles of the objects that the broker makes at the engine.
const (
	RoleChild  = "child"  // a container, a volume that a guest asked for
	RoleHolder = "holder" // keeps the network of a session's containers
)

// A Guard decides an action and records the decision, as guard.Guard.Check does.
type Guard func(ctx context.Context, a bawn.Action) bawn.Decision

// A Network is the network of a session's containers. Its methods may be called from any
// goroutine.
type Network interface {
	// Mode returns the network mode of every container: "container:ID" of the container
	// whose network they share. The first call may make that container from image, which
	// must be present.
	Mode(ctx context.Context, image string) (string, error)
	// Dial connects to a TCP port on the loopback of that network.
	Dial(port uint16) (*os.File, error)
	// Listen listens on a TCP port of the guest's loopback; 0 means any free port.
	Listen(port uint16) (*net.TCPListener, error)
}

// Options describe the session that a broker serves, and what its containers may use.
type Options struct {
	Engine  string       // the engine's UNIX socket, absolute
	Session bawn.Session // its Isolation.Resources limit all containers together
	Maker   maker.Maker
	View    View
	// Dir is a directory of this session that the guest can't see. It holds files that
	// containers get.
	Dir string
	// Write starts package writeback for a directory of the guest's, as the guest and in
	// its sandbox. end kills it. nil: containers write to no directory of the guest's.
	Write   func(dir string, in, out *os.File) (end func(), err error)
	Network Network // nil: containers have an empty network, and publish no port
	Guard   Guard
	// Pull permits fetching images. The engine fetches them, outside of the session's
	// network. The guard decides each fetch as a connection to the image's registry.
	Pull bool
	// Refused is called for each refusal. It may be nil.
	Refused func(Refusal)
	// Program is the path of bawnd. Started with WatchArgument, it ends the containers if
	// this process is killed. If Program is "", the next Sweep ends them.
	Program string
	Log     io.Writer // for errors that no request reports; may be nil
	Now     func() time.Time
}

// A View is the part of the guest's file system from which containers may get copies.
// The zero View gives nothing.
type View struct {
	// Open opens the guest's root directory (O_PATH). Hidden places and masked files
	// are as the guest sees them.
	Open func() (*os.File, error)
	// Below are the guest's directories that may be copied: first the workspace, then
	// /tmp if it is the guest's own.
	Below []string
}

// workspace is the directory that actions are about.
func (v View) workspace() string {
	if len(v.Below) == 0 {
		return ""
	}
	return v.Below[0]
}
