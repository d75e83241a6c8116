// Package inside is the first process of a sandbox that another engine made
// (bubblewrap, a container engine, gVisor), and the host's end of it.
//
// The program is Bawn itself, which the provider shows to the sandbox and has
// started with Argument. It is told a Setup over its control socket, carries
// that out with the rights that the engine has left it, gives the rights up, and
// becomes the session's executor (package executor) on the same socket: commands
// run by tickets alone, which Guest signs with a key that never leaves the host.
// When the socket closes, everything it has started is killed, and it ends.
//
// What the engine does not make is made in here: sockets of a network by name,
// limits of processes, Landlock, the seccomp filter, and the loss of every
// capability, of all threads, before the first command.
package inside
