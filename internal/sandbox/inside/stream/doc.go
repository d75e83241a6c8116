// Package stream carries a control socket, and the descriptors that travel over
// it, through a socket that carries bytes only. A sandbox whose kernel is not the
// host's (gVisor) has such a socket: SCM_RIGHTS ends at the border.
//
// On the host Open returns an ordinary control socket for package inside; in the
// sandbox Serve returns the other one for the executor. Between them every sent
// descriptor becomes a channel. A readable one is read here and written there into
// a pipe, a writable one the other way round, and a socket both ways, each with
// its own end. A terminal is made anew in the sandbox, and its modes and size are
// carried along.
//
// Each direction of a channel has a window, so that a slow reader delays no other
// channel. Neither end keeps more in memory than the window and its bookkeeping,
// however small the frames are. The end of a command is told once everything it
// has written before has been written.
//
// The host's end trusts nothing that comes from the sandbox: a frame that makes
// no sense ends the connection, and with it the sandbox.
package stream
