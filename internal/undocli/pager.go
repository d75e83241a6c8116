package undocli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/verb"
)

// page has something written to the pager if standard output is a terminal, and else
// to standard output.
func page(e *launch.Env, write func(out io.Writer, colour bool) error) error {
	terminal := verb.IsTerminal(e.Stdout) && e.Getenv("TERM") != "dumb"
	colour := terminal && e.Getenv("NO_COLOR") == ""
	pager := e.Getenv("PAGER")
	if pager == "" {
		pager = "less"
		if _, err := exec.LookPath(pager); err != nil {
			pager = "cat" // a small system has none
		}
	}
	if !terminal || pager == "cat" {
		return buffered(e.Stdout, colour, write)
	}
	cmd := exec.Command("/bin/sh", "-c", pager) //nolint:forbidigo // as git and man start it: the human has named it
	cmd.Stdout, cmd.Stderr, cmd.Env = e.Stdout, e.Stderr, e.Environ
	if e.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], "LESS=FRX")
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return buffered(e.Stdout, colour, write)
	}
	err = buffered(in, colour, write)
	if errors.Is(err, syscall.EPIPE) {
		err = nil // the human has seen enough
	}
	in.Close()
	if failed := cmd.Wait(); failed != nil && err == nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("%w: %q: %w", errPager, pager, failed), Hint: "set PAGER=cat to do without"}
	}
	return err
}

func buffered(out io.Writer, colour bool, write func(io.Writer, bool) error) error {
	b := bufio.NewWriter(out)
	return errors.Join(write(b, colour), b.Flush())
}
