// Package attach knows which sessions run on this machine, and lets several viewers see
// and type into one. It holds the registry, and the protocol between the host of a
// session and its viewers.
//
// # Registry
//
// Every session has a directory of its own, DIR/sessions/ID (0700), where DIR
// is Bawn's runtime directory. The directory itself is locked (flock(2)) by the
// session's host as long as it lives. In it are
//
//	session.json  an [Entry]; replaced as a whole
//	attach.sock   where viewers connect, of a hosted session
//	output.log    what a hosted session wrote, and output.log.1 what it wrote before
//
// The lock makes "alive" exact: the kernel releases it when the host is gone, for
// whatever reason, and a reused pid is not mistaken for the host. A session that is not
// hosted leaves nothing behind. A hosted one leaves its output and how it ended, until
// [Sweep] finds it old.
//
// # Protocol
//
// Over a stream socket, in both directions, frames of one byte (the kind), four bytes
// (the length, big-endian) and the content, at most [MaxFrame]:
//
//	viewer  H hello (JSON, first)   I input   R resize (JSON)   G signal (its name)   S screen, please
//	host    S screen (begin anew, then these bytes)   O output   T state (JSON)   N notice   E exit (JSON, last)   X refusal (last)
//
// A frame of an unknown kind from a viewer ends the connection; a viewer
// ignores those of a host that is newer.
//
// # Several viewers
//
// Everybody gets all output. A viewer that is too slow loses its unread output and gets
// the screen anew: it never makes the guest wait. The window is as large as the smallest
// of those who may type. Only one of them gets a program's queries to the terminal
// (cursor position, colours): otherwise each would answer, and the answers would arrive
// as keys.
package attach
