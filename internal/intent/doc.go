// Package intent is what a guest says to the door of its session, what the
// door answers, and the wire that both use, the door and the executor too: a
// frame is a length in 4 bytes, big-endian, and that many bytes of JSON. Up to
// 3 descriptors travel with the frame that names them (SCM_RIGHTS, unix(7)).
//
// Whatever arrives was written by somebody who may be hostile: a member that is
// not known, data behind the message, more descriptors than a frame may have,
// or control data that was cut short end the conversation.
package intent
