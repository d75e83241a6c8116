package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/session"
)

// Verb is the command by which Bawn's processes start a session in another
// one: it reads the session's spec from specEnd. No person needs it.
const Verb = "launch"

// specEnd is the descriptor that such a process inherits. A guest's session
// ends when the other end is closed.
const specEnd = 3

// Receive takes over what this process has inherited.
func (e *Env) Receive() (*session.Spec, error) {
	unix.CloseOnExec(specEnd)
	f := os.NewFile(specEnd, "spec")
	if f == nil {
		return nil, errors.New("it inherits no spec")
	}
	spec, err := session.Receive(f)
	if err != nil {
		return nil, err
	}
	e.spec, e.inherited = spec, f
	switch {
	case spec.Parent != nil:
		e.Dir = spec.Parent.Dir
	case spec.Hosted:
		err = e.becomeHost()
	}
	return spec, err
}

// Launcher returns the command that starts a session in another process, and the
// file that it inherits for it: to be closed once it runs.
func Launcher(program string, spec *session.Spec) (*exec.Cmd, *os.File, error) {
	f, err := specFile(spec)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(program, Verb)
	cmd.Args[0] = filepath.Base(program)
	cmd.ExtraFiles = []*os.File{specEnd - 3: f}
	return cmd, f, nil
}

// specFile returns a file with a spec, at its begin.
func specFile(spec *session.Spec) (*os.File, error) {
	text, err := spec.Encode()
	if err != nil {
		return nil, err
	}
	f, err := nameless()
	if err != nil {
		return nil, err
	}
	if _, err = f.Write(text); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Life returns a context that ends with the session above, if there is one.
func (e *Env) Life() context.Context {
	ctx := context.Background()
	if e.spec == nil || e.spec.Parent == nil {
		return ctx
	}
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		_, err := io.Copy(io.Discard, e.inherited)
		end(errors.Join(errors.New("the session that started this one has ended"), err))
	}()
	return ctx
}

// again has this process's spec, if it has one, inherited by the program that it
// becomes.
func (e *Env) again() error {
	if e.spec == nil {
		return nil
	}
	f, err := specFile(e.spec)
	if err == nil {
		defer f.Close()
		err = unix.Dup2(int(f.Fd()), specEnd)
	}
	if err != nil {
		return fmt.Errorf("hand the session's spec on: %w", err)
	}
	return nil
}
