// Package sandbox is the one interface behind which every provider enforces an
// Isolation. A provider thinks first (Plan, a value that can be shown and
// compared) and acts afterwards (Start); what it can enforce on this machine
// it finds out by trying (Capabilities).
package sandbox

import (
	"errors"
	"os"
	"syscall"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/redact"
)

// ErrUnsupported is returned by a provider on a system it can't work on.
var ErrUnsupported = errors.New("this provider is not supported on this system")

// A Request is what a provider makes a plan from.
type Request struct {
	Session   bawn.Session
	Argv      []string
	Dir       string   // working directory, absolute
	Environ   []string // the host's environment, from which the isolation chooses
	Open      []string // credential paths whose reading is allowed again
	Protected []string // names protected besides the built-in ones
	Hidden    []string // Bawn's own directories
	CacheDir  string   // where private caches are kept, absolute
}

// A Plan is what a provider will do. Its JSON form is what --plan prints.
type Plan interface {
	Provider() string
	// Partly lists what will be enforced in part, and why.
	Partly() []bawn.Capability
}

// A Denial is a refusal that the provider itself pronounced, so that it is
// certain who refused.
type Denial struct {
	Kind      bawn.Kind
	Operation bawn.Operation
	Resource  string
	Rule      string
	Reason    string
	Remedy    string
}

// A Hit is a limit that a guest ran into. A provider reports it only with
// proof: a counter of the kernel's, a clock of its own.
type Hit struct {
	Rule   string `json:"rule"`   // for example "limits:memory"
	Reason string `json:"reason"` // what happened
	Remedy string `json:"remedy"` // what raises the limit
	Killed bool   `json:"killed"` // something of the guest was ended for it
}

// A Provider enforces isolations.
type Provider interface {
	Name() string
	Capabilities() []bawn.Capability
	Plan(Request) (Plan, error)
	// Start makes the sandbox and returns once it is ready for commands. It
	// calls onDenial, from any goroutine, for each refusal it can vouch for.
	Start(p Plan, onDenial func(Denial)) (Guest, error)
}

// A Launcher is a Provider that can start the first command along with the
// sandbox, so that neither waits for the other.
type Launcher interface {
	Provider
	// Launch does what Start and Exec do. On an error, which is a
	// *NotFoundError where the command can't be executed, there is no sandbox.
	Launch(p Plan, first Command, onDenial func(Denial)) (Guest, Process, error)
}

// A Guest is a running sandbox.
type Guest interface {
	// Exec starts a command in the sandbox.
	Exec(Command) (Process, error)
	// OpenTerminal opens a pseudo-terminal of the guest's own.
	OpenTerminal() (master, slave *os.File, err error)
	// Close ends every process of the sandbox and removes what it left.
	// It may be called more than once.
	Close() error
	// Hits lists the limits that the guest ran into so far; nil after Close.
	Hits() []Hit
	// Done is closed when the sandbox has ended by itself.
	Done() <-chan struct{}
}

// A Command is one program to start in a sandbox.
type Command struct {
	Argv       []string
	Env        []string // nil: the plan's
	Dir        string   // "": the plan's
	Stdio      [3]*os.File
	Terminal   *os.File // becomes its controlling terminal, or nil
	Foreground bool     // start in the terminal's foreground
	Last       bool     // the sandbox ends with this command
}

// A Change is a change of state of a process.
type Change struct {
	Stopped bool // by a signal, else ended
	Status  syscall.WaitStatus
}

// A Process is a command that was started.
type Process interface {
	// Changes delivers each stop, and at last the end; then it is closed.
	Changes() <-chan Change
	// Signal sends sig to the command's process group.
	Signal(sig syscall.Signal) error
	// Foreground gives the process group the terminal.
	Foreground() error
}

// A NotFoundError says that a program can't be executed in the sandbox: it
// is absent there, or it may not be executed.
type NotFoundError struct {
	Name   string
	Err    error  // the errno
	Absent bool   // there is no such program: exit code 127, else 126
	Why    string // what was found out; "" where the errno says it all
	Remedy string // what to do, or ""
}

// Error writes the name and why, in words that print safely.
func (e *NotFoundError) Error() string {
	why := e.Why
	if why == "" {
		why = e.Err.Error()
	}
	return redact.Visible(e.Name + ": " + why)
}

// Unwrap returns the errno.
func (e *NotFoundError) Unwrap() error { return e.Err }
