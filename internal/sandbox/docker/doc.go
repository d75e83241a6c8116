// Package docker is the provider that has a container engine make the sandbox:
// Docker's, or one that speaks its API as Podman's does.
//
// The engine gives what it is good at: a root file system from an image, the
// namespaces, the control groups. Everything by which a session is judged is
// ours. The container's only program is our own binary, mounted read-only
// (package inside). It drops the rights that the engine may have left, installs
// the filter under which file names are decided outside, and starts commands by
// tickets only. The network is always empty; hosts by name arrive at sockets
// that were made in the container's network namespace from outside. The engine
// is asked to create, to start and to remove, each with a deadline. A command in
// a running session needs no call to it.
package docker
