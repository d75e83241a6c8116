//go:build !linux

package sealed

import (
	"errors"
	"os"
)

// Open is for Linux.
func Open(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// Reach is for Linux.
func Reach(string) (*os.File, error) { return nil, errors.ErrUnsupported }
