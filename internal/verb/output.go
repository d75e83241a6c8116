package verb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// exitPipe is how a program ends that nobody reads any more: as if by SIGPIPE.
const exitPipe = 128 + 13

// output remembers that writing failed, for writers that ask nobody.
type output struct {
	W   io.Writer
	Err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.W.Write(p)
	if err != nil && o.Err == nil {
		o.Err = err
	}
	return n, err
}

// OutputError gives an error of writing to standard output its exit code. Who
// closed the other end of a pipe wants to hear nothing more.
func OutputError(stdout *os.File, err error) error {
	var path *fs.PathError
	switch {
	case !errors.As(err, &path) || path.Op != "write" || path.Path != stdout.Name():
		return err
	case errors.Is(err, syscall.EPIPE):
		return Status(exitPipe)
	}
	return &Error{Code: ExitInternal, Err: fmt.Errorf("write to standard output: %w", path.Err), Hint: "what was printed is not complete"}
}
