package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
)

// exitPipe is how a program ends that nobody reads any more: as if by SIGPIPE.
const exitPipe = 128 + 13

// output remembers that writing failed, for writers that ask nobody.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// outputError gives an error of writing to standard output its exit code. Who
// closed the other end of a pipe wants to hear nothing more.
func outputError(e *Env, err error) error {
	var path *fs.PathError
	switch {
	case !errors.As(err, &path) || path.Op != "write" || path.Path != e.Stdout.Name():
		return err
	case errors.Is(err, syscall.EPIPE):
		return exitStatus(exitPipe)
	}
	return &Error{Code: ExitInternal, Err: fmt.Errorf("write to standard output: %w", path.Err), Hint: "what was printed is not complete"}
}
