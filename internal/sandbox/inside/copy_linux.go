package inside

import (
	"errors"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
)

// mount mounts the overlay. It does nothing for nil.
func (c *Copy) mount() error {
	if c == nil {
		return nil
	}
	s := kernel.NewSteps()
	s.OverlayInPlace(c.Target, c.Mounts)
	err := rawproc.Apart(&s.Program)
	var failed *rawproc.StepError
	if errors.As(err, &failed) {
		return step(failed.Step, failed.Errno)
	}
	return step("mount the copy", err)
}
