// Package intent has the messages between a guest and the socket of its session,
// and those that the executor shares. Package ipc carries them.
package intent

import "github.com/bawn-dev/bawn/internal/ipc"

// What one message may have.
const (
	MaxFrame = 1 << 20 // bytes
	MaxFiles = 3       // descriptors that travel with it
)

// Limits are the same for package ipc.
var Limits = ipc.Limits{Bytes: MaxFrame, Files: MaxFiles}
