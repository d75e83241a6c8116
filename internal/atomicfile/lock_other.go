//go:build !unix

package atomicfile

import (
	"errors"
	"os"
)

// NonBlock is the flag with which opening a pipe or a device does not wait. It is
// 0, since this system has no such flag.
const NonBlock = 0

func lock(*os.File) error { return errors.ErrUnsupported }
