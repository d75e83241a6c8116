package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newAttachCommand(e *launch.Env) *cobra.Command {
	var keys string
	var readOnly bool
	c := &cobra.Command{
		Use:   "attach [flags] [SESSION]",
		Short: "Come to a session that runs in the background",
		Long: `Come to a session that was started with --detach or --attachable, from this
terminal: you see its screen, and it gets what you type. Others may be
there at the same time; the window is as large as the smallest of yours.

Ctrl-] and then d leaves the session, which goes on; so does closing the
terminal. The exit code is the session's, or 0 after leaving it. Name a
session by its ID or the beginning of it; with only one you need no name.`,
		Example: `  bawn attach
  bawn attach k3xr
  bawn attach --read-only k3xr
  bawn attach --detach-keys ctrl-p,ctrl-q k3xr`,
		Args: atMostOneSession,
		RunE: func(_ *cobra.Command, args []string) error {
			return attachTo(e, strings.Join(args, ""), keys, readOnly)
		},
	}
	c.Flags().StringVar(&keys, "detach-keys", attach.DefaultDetachKeys, "`keys` that leave the session: one or several, as d or ctrl-], separated by commas; \"none\" turns them off")
	c.Flags().BoolVar(&readOnly, "read-only", false, "look on, without typing; Ctrl-C leaves")
	c.ValidArgsFunction = completeSessions(e, func(s attach.Entry) bool { return s.Hosted && s.State == attach.Running }, 1)
	verb.CompleteFlags(c, map[string]func() []string{"detach-keys": verb.Fixed(attach.DefaultDetachKeys, "ctrl-p,ctrl-q", "none")})
	return c
}

// atMostOneSession are the arguments of commands that take at most one session.
func atMostOneSession(c *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	return verb.Usage(fmt.Sprintf("see \"%s --help\"", c.CommandPath()), "%q is one argument too many: %q takes one session", args[1], c.CommandPath())
}

func attachTo(e *launch.Env, id, keys string, readOnly bool) error {
	detach, err := detachKeys(keys)
	if err != nil {
		return err
	}
	reg, err := openRegistry(e)
	if err != nil {
		return err
	}
	s, err := reg.find(id, func(s attach.Entry) bool { return s.Hosted && s.State == attach.Running })
	if err != nil {
		return err
	}
	client, err := attach.Dial(reg.dir, s.ID, readOnly)
	if err != nil {
		return notAttached(s, err)
	}
	if len(detach) > 0 && !readOnly && verb.IsTerminal(e.Stdin) && verb.IsTerminal(e.Stderr) {
		fmt.Fprintf(e.Stderr, "bawn: session %s; %s leaves it, and it goes on\n", short(s.ID), strings.ReplaceAll(keys, ",", ", then "))
	}
	v := attach.View{Client: client, In: e.Stdin, Out: e.Stdout, Detach: detach, Notify: tell(e)}
	if readOnly {
		v.In = nil
	}
	v.Label = launch.Label(&e.World, leavingMark(keys, detach), s.Argv[0])
	out, err := v.Run(context.Background())
	return viewed(e, out, err)
}

// leavingMark begins the title of an attached terminal, whose screen the session's soon
// fills: it says how to leave.
func leavingMark(keys string, detach attach.DetachKeys) string {
	if len(detach) == 0 {
		return launch.Mark
	}
	return "bawn (" + strings.ReplaceAll(keys, ",", " ") + " leaves): "
}

// notAttached says why there is nothing to attach to.
func notAttached(s attach.Entry, err error) error {
	switch {
	case s.State != attach.Running || errors.Is(err, syscall.ECONNREFUSED):
		return &verb.Error{Code: verb.ExitUsage, Err: fmt.Errorf("session %q has ended", s.ID), Hint: fmt.Sprintf("\"bawn logs %s\" shows what it wrote", s.ID)}
	case !s.Hosted || errors.Is(err, fs.ErrNotExist):
		return &verb.Error{Code: verb.ExitUsage, Err: fmt.Errorf("session %q belongs to the terminal that it was started at", s.ID), Hint: "what is started with --detach or --attachable can be attached to"}
	}
	return &verb.Error{Code: verb.ExitInternal, Err: err}
}

// viewed ends a view: with the session's own exit code, or with a word on how
// to come back.
func viewed(e *launch.Env, out attach.Outcome, err error) error {
	var refused *attach.RefusedError
	switch {
	case errors.As(err, &refused):
		return &verb.Error{Code: verb.ExitDenied, Err: errors.New(redact.Visible(err.Error()))}
	case err != nil:
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	case out.Detached:
		fmt.Fprintf(e.Stderr, "\r\nbawn: left session %s, which goes on; \"bawn attach %s\" comes back\n", out.Status.Session, short(out.Status.Session))
		return nil
	case out.Exit.Code == 0:
		return nil
	}
	return verb.Status(out.Exit.Code)
}

// tell returns what prints a line of the host's, in a terminal that may be raw.
func tell(e *launch.Env) func(string) {
	return func(line string) { fmt.Fprintf(e.Stderr, "\r\nbawn: %s\r\n", redact.Visible(line)) }
}

func detachKeys(s string) (attach.DetachKeys, error) {
	keys, err := attach.ParseDetachKeys(s)
	if err != nil {
		return nil, verb.Usage("for example: --detach-keys "+attach.DefaultDetachKeys, "--detach-keys %q: %v", s, err)
	}
	return keys, nil
}
