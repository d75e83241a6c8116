//go:build !linux

package launch

import (
	"errors"
	"os"
)

// nameless returns a file that no directory names any more.
func nameless() (*os.File, error) {
	f, err := os.CreateTemp("", "bawn-spec-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
