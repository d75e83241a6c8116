// Package sandbox is the one interface behind which every provider enforces an
// Isolation. A provider thinks first (Plan, a value that can be shown and
// compared) and acts afterwards (Start); what it can enforce on this machine
// it finds out by trying (Capabilities).
package sandbox

import (
	"errors"
	"os"
	"slices"
	"syscall"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/redact"
)

// ErrUnsupported is returned by a provider on a system it can't work on.
var ErrUnsupported = errors.New("this provider is not supported on this system")

// A Request is what a provider makes a plan from.
type Request struct {
	Session   bawn.Session
	Zone      string // tells two sandboxes of one session apart; "" for the only one
	Argv      []string
	Dir       string   // working directory, absolute
	Environ   []string // the environment from which the isolation chooses
	Home      string   // of the human, absolute, where credentials are hidden; "" for HOME of Environ
	Open      []string // credential paths whose reading is allowed again
	Protected []string // names protected besides the built-in ones
	Hidden    []string // Bawn's own directories
	// Project says that the workspace holds no home directory and that no link of the
	// human's leads there: a name of class login (package protect) counts at its top
	// alone. A provider that can't tell one depth from another protects it at each.
	Project bool
	Linked  []string // places, absolute, to which protected names in the home directory lead by links
	// Guarded are files and directories, absolute, that stay as they are also below
	// a writable place. They need not be there, and must not come into being then.
	Guarded  []string
	Owned    []string // files, absolute, that may be written though their names are protected
	CacheDir string   // where private caches are kept, absolute
	Files    []File   // of the host, shown to the guest at places of their own
	// Users are the host's lists of users and groups, with the guest's own entry. A
	// provider that can't show them, or shows those of an image, leaves them out.
	Users     []File
	Sockets   []string // targets of Files that are UNIX sockets, to which the guest may connect
	SetEnv    []string // NAME=value; wins over all else
	HostPorts []uint16 // of the guest's loopback that lead to the relay, for network "allowlist"
	// Tmp is a directory of the host that the guest finds, writable, at /tmp, in
	// place of an empty one of its own: two sandboxes of one session share it. ""
	// for none. It has no bound but the disk's.
	Tmp string // absolute
	// Relay says that the caller fetches Guest.Network and serves it. A plan
	// for network "allowlist" is refused otherwise: its guest would wait for
	// answers that never come.
	Relay bool
	// GuestWrote reports whether an earlier session could write in a directory of
	// the host, links resolved; nil where nobody knows.
	GuestWrote func(dir string) bool `json:"-"`
	Programs   *Programs             `json:"-"` // nil: none is held
	// Git are the repositories of whose git directories the guest gets a private
	// one. A provider that can't mount refuses to write below Path instead.
	Git []bawn.GitDir
	// GitPool is an absolute directory of the host for the git directories of
	// repositories that the guest makes. For each it has a directory with a
	// PoolNote and, as PoolGit, the git directory or the file that leads to one.
	// The host has an empty .git in its place. "" for none: then a guest makes no
	// repository in a place of the host, unless the provider can't refuse it.
	GitPool string
	// Copy is a directory of the host, absolute, with the directories "upper"
	// and "lower": the guest sees the workspace, and what it changes goes to "upper".
	// "" for a guest that changes the workspace itself. Only native can make it.
	Copy string
	// SharedCopy is that of the sandboxes which share the copy, or nil for one alone.
	SharedCopy *SharedCopy
	// NoFiles says that no command of the session gets a file or a directory of the
	// host as a descriptor: only pipes, sockets, terminals of its own, and /dev/null.
	NoFiles bool
}

// Names in an entry of Request.GitPool.
const (
	PoolGit  = "git"
	PoolNote = "place.json" // a PoolEntry
)

// A PoolEntry says on which entry of the host's a git directory of a pool was
// mounted. To mount it again, a request names both as a bawn.GitDir.
type PoolEntry struct {
	Path     string `json:"path"` // of the empty .git, in the guest, when it was made
	Dev      uint64 `json:"dev"`
	Ino      uint64 `json:"ino"`
	BornSec  int64  `json:"born_sec"` // 0 where the file system doesn't say
	BornNsec int64  `json:"born_nsec"`
}

// A File is a file or a directory of the host that the guest sees, read-only,
// at another place, whatever is there or covers it. A Target that does not
// exist on the host must lie below a place of the session's own, such as
// /run/bawn.
type File struct {
	Source, Target string // absolute
}

// A Plan is what a provider will do. Its JSON form is what --plan prints.
type Plan interface {
	Provider() string
	// Places says what the guest sees and writes of the host, links resolved; the
	// longest path that covers one counts, and what none covers is hidden. A place
	// of the session's own is Private. What Bawn itself shows is left out.
	Places() []bawn.Mount
	// Partly lists what will be enforced in part, and why.
	Partly() []bawn.Capability
	// Environ is what a command gets that has no environment of its own.
	Environ() []string
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

// A Preparer is a Launcher that can make a sandbox while who wants it still has
// other things to do, such as recording that its command is about to start.
type Preparer interface {
	Launcher
	// Prepare begins to make the sandbox of a plan, in which nothing of the
	// guest's runs, for a later Start or Launch of the same plan. What goes wrong
	// is an error of that. abandon ends a sandbox that neither has taken.
	Prepare(p Plan) (abandon func())
}

// A Guest is a running sandbox.
type Guest interface {
	// Exec starts a command in the sandbox.
	Exec(Command) (Process, error)
	// OpenTerminal opens a pseudo-terminal of the guest's own.
	OpenTerminal() (master, slave *os.File, err error)
	// Network returns the sockets that carry the guest's network, where that
	// is "allowlist" and the plan's request said Relay; nil elsewhere.
	Network() *GuestNetwork
	// Dial connects to a TCP port of the guest's own loopback, IPv4 first and
	// then IPv6, from the guest's network namespace. It errs with ECONNREFUSED
	// where nothing listens, and with ErrUnsupported where the guest has no
	// loopback of its own.
	Dial(port uint16) (*os.File, error)
	// Close ends every process of the sandbox and removes what it left.
	// It may be called more than once.
	Close() error
	// Hits lists the limits that the guest ran into so far; nil after Close.
	Hits() []Hit
	// Done is closed when the sandbox has ended by itself.
	Done() <-chan struct{}
}

// A Loopback is a Guest's, where others can listen at it for the guest.
type Loopback interface {
	// Listen makes a TCP socket that listens at a port of the guest's 127.0.0.1,
	// any free one for 0, in the guest's network namespace. The guest has no
	// descriptor of it, and connections are accepted outside. It errs with
	// EADDRINUSE where the guest, or the session, has that port, and with
	// ErrUnsupported where the guest has no loopback of its own.
	Listen(port uint16) (*os.File, error)
}

// A Rooted is a Guest whose processes are below one of this machine's, which is in
// the guest's network namespace.
type Rooted interface {
	// Root returns its PID.
	Root() int
}

// A Visible is a Guest whose files can be seen from outside, as it sees them:
// what is hidden or masked is so there as well.
type Visible interface {
	// View opens the guest's "/" (O_PATH), for openat2(2) with RESOLVE_IN_ROOT and
	// RESOLVE_NO_MAGICLINKS. It errs with ErrUnsupported if it can't be seen from
	// outside.
	View() (*os.File, error)
}

// A GuestNetwork holds the sockets, made inside the guest's network namespace, at
// which all arrives that the guest sends to other machines. Each list has one for
// IPv4 and, where the machine has IPv6, one for IPv6 after it. The guest has no
// descriptor for them.
//
// The files may go to another process (SCM_RIGHTS) and into net.FileListener
// or net.FilePacketConn, which duplicate them; a process outside accepts and
// reads from them without entering the namespace. As long as anybody holds a
// listener open, connections to it wait in its queue; once all copies are
// closed they are refused at once. So the caller that hands copies over calls Close
// then. Guest.Close closes what is still open.
type GuestNetwork struct {
	// Connect receives every TCP connection to somewhere else than loopback or
	// the guest's own addresses, and those to Request.HostPorts of 127.0.0.1
	// and ::1. SO_ORIGINAL_DST (IPPROTO_IP; IPPROTO_IPV6 for IPv6) of an
	// accepted connection is where the guest wanted to go; it is the
	// listener's own address where the guest dialled that, which is nowhere.
	Connect []*os.File
	// DNS receives datagrams to port 53 of any address, loopback too. An
	// answer to the sender comes from the address that was asked.
	DNS []*os.File
	// DNSStream receives TCP connections to port 53 of any address.
	DNSStream []*os.File
	// Proxy listens at 127.0.0.1 and ::1 on ProxyPort, for programs that
	// insist on a proxy.
	Proxy     []*os.File
	ProxyPort uint16
}

// Files lists every socket: Connect, DNS, DNSStream and Proxy in this order,
// all of the same length.
func (n *GuestNetwork) Files() []*os.File {
	return slices.Concat(n.Connect, n.DNS, n.DNSStream, n.Proxy)
}

// Close closes every socket. It may be called more than once.
func (n *GuestNetwork) Close() error {
	var errs []error
	for _, f := range n.Files() {
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
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

// Abilities are what a provider can do for Bawn's own purposes, which no
// isolation asks for. The zero value can nothing.
type Abilities struct {
	// Socket says that Request.Files and Request.Sockets work, also for a socket
	// at /run/bawn: a guest can speak to its session.
	Socket bool
	// Unsandboxed says that it isolates nothing: it never runs a session by Bawn's own
	// choice, and no action in one counts as contained.
	Unsandboxed bool
	// Split says that two sandboxes of one session can share Request.Tmp, and
	// that Request.Files cover shells: a split session.
	Split bool
	// Copy says that Request.Copy works: a session on a copy of its workspace.
	Copy bool
}

// An Able is a Provider that says what it can do besides isolating. A Provider that
// is not Able can do nothing else.
type Able interface {
	Provider
	Abilities() Abilities
}

// AbilitiesOf returns what p can do.
func AbilitiesOf(p Provider) Abilities {
	if able, ok := p.(Able); ok {
		return able.Abilities()
	}
	return Abilities{}
}
