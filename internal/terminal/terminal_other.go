//go:build !linux && !darwin

package terminal

import (
	"errors"
	"os"
)

// ErrUnsupported is returned on systems without pseudo-terminals as pty(7)
// describes them.
var ErrUnsupported = errors.New("terminals for guests exist on Linux and macOS only")

// ErrBackground is never returned here.
var ErrBackground = errors.New("bawn is in the background of its terminal")

// A Mode is the state of a Terminal.
type Mode uint8

// The only mode here.
const NoTerminal Mode = 0

// A Terminal can't exist here.
type Terminal struct{}

// New returns ErrUnsupported.
func New([3]*os.File) (*Terminal, error) { return nil, ErrUnsupported }
