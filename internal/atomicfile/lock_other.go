//go:build !unix

package atomicfile

import (
	"errors"
	"os"
)

// NonBlock is the flag with which opening a pipe or a device does not wait; 0
// where there is none.
const NonBlock = 0

func lock(*os.File) error { return errors.ErrUnsupported }
