package inside

import (
	"fmt"
	"os"
	"syscall"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// Argument, as the first one, makes Bawn the first process of a sandbox. Nobody
// types it.
const Argument = "@inside"

// StreamArgument, behind Argument, says that no descriptor passes the control
// socket (package stream). Behind it may stand an address, and ports of the
// sandbox's loopback that lead there.
const StreamArgument = "-stream"

// A Filter says which seccomp filter is loaded.
type Filter uint8

// The zero Filter is the strictest that every guest can have.
const (
	FilterGuest      Filter = iota // seccomp.Guest(false)
	FilterSupervised               // seccomp.Guest(true): Guest.Listener must be served
	FilterPrograms                 // FilterSupervised, and seccomp.Programs
	FilterNone                     // none: the kernel is not the host's, or the engine has loaded one
)

// supervised reports whether the filter has a listener that must be served.
func (f Filter) supervised() bool { return f == FilterSupervised || f == FilterPrograms }

// A Setup is what is done inside before the first command, in this order. The
// zero Setup gives up all capabilities and loads the filter of a guest.
type Setup struct {
	Session string   // as tickets name it
	Plan    [32]byte // SHA-256 of the plan, as tickets name it; not zero
	// Groups are cgroup.procs files, open for writing (cgroup.Group.OpenProcs),
	// which the process joins first, with all of its threads. Start does not close
	// them.
	Groups   []*os.File `json:"-"`
	Loopback bool       // bring lo up
	// Terminals mounts pseudo-terminals of the sandbox's own on /dev/pts, an empty
	// directory. It takes CAP_SYS_ADMIN over the mount namespace.
	Terminals bool
	// Copy is mounted; nil for none. It takes CAP_SYS_ADMIN over the mount namespace.
	Copy *Copy `json:",omitempty"`
	// Network is made in the sandbox's network namespace; nil for none. It takes
	// CAP_NET_ADMIN there.
	Network *layout.Network `json:",omitempty"`
	Limits  bawn.Resources  // rlimits of every command; what a control group holds need not be repeated
	// Landlock restricts all threads; the zero value does not. Paths are the
	// sandbox's; those that are not there are left out. Its ABI is the newest that
	// is used; an older kernel is an error.
	Landlock layout.Landlock
	Filter   Filter
	// KeepCapabilities leaves the capabilities alone and does not give up new
	// privileges: for a provider that contains nothing. It goes with FilterNone
	// and no Landlock alone.
	KeepCapabilities bool
	// Mounts has the mount namespace passed out as well, for
	// native.Supervision.Keep.
	Mounts bool
	// Stream says that no descriptor can leave the sandbox: nothing is passed out,
	// and there can be no Groups, no Network and no FilterSupervised.
	Stream bool

	// The rest is the host's own.

	// Environ and Dir apply to commands without their own.
	Environ []string `json:"-"`
	Dir     string   `json:"-"`
	// Ports says that the sandbox has a loopback of its own, to which Guest.Dial
	// connects.
	Ports bool `json:"-"`
	// NotFound explains why a command, complete with environment and directory,
	// could not be executed; nil leaves it at the errno. native.NotFound fits where
	// the guest sees the host's files.
	NotFound func(c sandbox.Command, errno syscall.Errno) *sandbox.NotFoundError `json:"-"`
}

// A Copy is an overlay that takes the place of a directory. The layer is at
// layout.CopyPlace, and the directory, once more, on layout.CopyLower in it.
type Copy struct {
	Target string
	Mounts []string // below the target, without those in others: they move onto the overlay
}

// A StepError says what could not be done inside the sandbox.
type StepError struct {
	Step  string // for example "network: create the packet filter"
	Why   string
	Errno syscall.Errno // 0: no error
}

// Error writes the step and why.
func (e *StepError) Error() string {
	return fmt.Sprintf("make the sandbox: %s: %s", e.Step, e.Why)
}

// Unwrap returns the errno, or nil.
func (e *StepError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}
