package dockerapi

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/dockerapi/writeback"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// maxAnswers bounds what is read of the writer's answers, in bytes: it is the guest's.
const maxWriterAnswers = 16 << 20

// write starts the writer in the guest's sandbox, gives it the stream that fill makes, and
// returns what it could not write of names. Nothing of what it says is trusted: what a name
// really is shows the next look.
func (b *Broker) write(ctx context.Context, dir string, names []string, fill func(*tar.Writer) error) (failed map[string]string, err error) {
	in, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close(), to.Close())
	}
	end, err := b.o.Write(dir, in, out)
	in.Close()
	out.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start what writes for containers in the session: %w", err), to.Close(), from.Close())
	}
	defer end()
	stop := context.AfterFunc(ctx, func() {
		to.Close()
		from.Close()
	})
	defer stop()
	type answered struct {
		failed map[string]string
		err    error
	}
	answers := make(chan answered, 1)
	go func() {
		failed, err := readAnswers(from, names)
		answers <- answered{failed, err}
	}()
	stream := tar.NewWriter(to)
	err = fill(stream)
	if err == nil {
		err = stream.Close()
	}
	to.Close()
	a := <-answers
	from.Close()
	if err = errors.Join(err, a.err); err != nil {
		return nil, fmt.Errorf("write what a container has changed: %w", err)
	}
	return a.failed, nil
}

// A Starter starts commands in a guest's sandbox.
type Starter interface {
	Exec(sandbox.Command) (sandbox.Process, error)
}

// WriteBy is an Options.Write. program is one of Bawn's that the guest sees.
func WriteBy(guest Starter, program string) func(dir string, in, out *os.File) (end func(), err error) {
	return func(dir string, in, out *os.File) (func(), error) {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		defer null.Close()
		p, err := guest.Exec(sandbox.Command{Argv: []string{program, writeback.Argument, dir}, Dir: "/", Stdio: [3]*os.File{in, out, null}})
		if err != nil {
			return nil, err
		}
		return func() { _ = p.Signal(unix.SIGKILL) }, nil // it may have ended
	}
}

// readAnswers reads what the writer could not do. It keeps nothing of other names: the
// guest may forge any number of them.
func readAnswers(from io.Reader, names []string) (map[string]string, error) {
	asked := map[string]bool{}
	for _, name := range names {
		asked[name] = true
	}
	failed := map[string]string{}
	for d := json.NewDecoder(io.LimitReader(from, maxWriterAnswers)); ; {
		var a writeback.Answer
		switch err := d.Decode(&a); {
		case err != nil:
			return nil, fmt.Errorf("the writer in the session ends early: %w", err)
		case a.Done:
			return failed, nil
		case len(a.Path) == 0:
			return nil, fmt.Errorf("the writer in the session: %.200q", a.Error)
		}
		if asked[string(a.Path)] {
			failed[string(a.Path)] = fmt.Sprintf("the session can't write it (%.100q)", a.Error)
		}
	}
}
