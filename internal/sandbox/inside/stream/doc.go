// Package stream carries a control socket, and the descriptors that travel over
// it, through a socket that carries bytes alone: that of a sandbox whose kernel
// is not the host's (gVisor), where SCM_RIGHTS ends at the border.
//
// On the host Open returns an ordinary control socket for package inside; in the
// sandbox Serve returns the other one for the executor. Between them every
// descriptor that was sent becomes a channel: what can be read is read here and
// written there into a pipe, what can be written the other way about, a socket
// goes both ways, each way with its own end. A terminal is made anew in the
// sandbox, and its modes and size are carried along.
//
// Each direction of a channel has a window, so that who does not read holds up
// nobody else, and neither end keeps more in memory than that and what it takes to
// hold it, however small the frames are. The end of a command is told once
// everything it has written before has been written.
//
// The host's end trusts nothing that comes from the sandbox: a frame that makes
// no sense ends the connection, and with it the sandbox.
package stream
