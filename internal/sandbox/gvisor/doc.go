// Package gvisor is the provider "gvisor": a session on a kernel of its own,
// gVisor's, which runsc starts as an OCI runtime.
//
// A launcher of ours (Bawn itself, with Argument) stands between: the first
// process of namespaces of its own, with the one user mapped as in provider
// native. There it assembles the guest's root with mounts of the host's kernel,
// so that even gVisor's own processes can't read what is hidden or write what is
// read-only. It makes the network and starts runsc, which needs no privilege but
// those of the user namespace. Everything it makes lies in its mount, network and
// PID namespaces. When it ends, by itself, with its parent or with the control
// socket, the kernel ends every process of the sandbox, and nothing is left to
// sweep.
//
// Inside, the first process is Bawn as well (package inside), which speaks to the
// host through descriptor 0. No descriptor passes gVisor's border, so package
// stream carries those of commands.
package gvisor

// Name is the provider's.
const Name = "gvisor"

// Argument, as the only one, makes Bawn the launcher of a sandbox. Nobody types
// it.
const Argument = "@gvisor"
