//go:build !linux

package inside

import (
	"context"
	"os"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Main can't work here. It closes control and returns 1.
func Main(_ []string, control *os.File) int {
	control.Close()
	return 1
}

// Guest is the host's end of a first process. Only Linux has one.
type Guest struct{}

// Start returns sandbox.ErrUnsupported and closes conn.
func Start(_ context.Context, conn *os.File, _ Setup) (*Guest, error) {
	conn.Close()
	return nil, sandbox.ErrUnsupported
}
