// Package inside is the first process of a sandbox that another engine made
// (bubblewrap, a container engine, gVisor), and the host's end of it.
//
// The program is Bawn itself, which the provider shows to the sandbox and has
// started with Argument. It receives a Setup over its control socket and carries
// it out with the rights that the engine has left it. Then it gives the rights
// up and becomes the session's executor (package executor) on the same socket.
// Commands run by tickets only, which Guest signs with a key that never leaves
// the host. When the socket closes, everything it has started is killed, and it
// ends.
//
// It makes what the engine does not make: sockets of a network by name, limits
// of processes, Landlock, and the seccomp filter. All threads lose every
// capability before the first command.
package inside
