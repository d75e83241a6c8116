package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/shim"
)

// A ToolsSetting is what Bawn's own tools are made of.
type ToolsSetting struct {
	Workspace string
	Environ   []string
	Shell     string // that runs commands; "" for none
	Handed    bool   // it hands them to the session's door
	Judge     func(context.Context, intent.Judge) (intent.Verdict, error)
	Request   func(ctx context.Context, want []string, why string) (granted bool, answer string, err error)
	In, Out   *os.File // of the one client
}

// startTools serves Bawn's own tools in the session that this is, or starts one
// for them, with flags of `bawn run`.
func (m *mcpServe) startTools(flags []string) error {
	e := m.env
	switch {
	case m.http != "":
		return usageError("leave --http out", "the tools are served over standard input and output")
	case inside(e) == "":
		return e.sessionOfTools(flags)
	case len(flags) > 0:
		return usageError("leave them out", "flags of bawn run are not for a session that runs")
	case !e.guest():
		return &Error{Code: ExitDenied, Err: errors.New("this session has no door, where calls would be decided"), Hint: "start it with a provider that \"bawn doctor --matrix\" shows with a door"}
	case e.Tools == nil:
		return become(e, "mcp", e.args[1:])
	}
	return e.serveTools()
}

// sessionOfTools becomes a session whose guest serves the tools.
func (e *Env) sessionOfTools(flags []string) error {
	self, err := os.Executable()
	if err != nil {
		return &Error{Code: ExitInternal, Err: fmt.Errorf("find bawn's own program: %w", err)}
	}
	args := slices.Concat([]string{"bawn", "run", "-q", "--agent", "bawn-tools"}, flags, []string{"--", self, "mcp", "--tools"})
	return &Error{Code: ExitInternal, Err: fmt.Errorf("start %q: %w", self, syscall.Exec(self, args, e.Environ))}
}

func (e *Env) serveTools() error {
	dir, err := realDir(e.Dir)
	if err != nil {
		return err
	}
	set := ToolsSetting{Workspace: workspaceOf(dir, e.Getenv("HOME")), Environ: e.Environ, Judge: shim.Judge, Request: shim.Wish, In: e.Stdin, Out: e.Stdout}
	set.Shell, set.Handed = shellOfTools()
	ctx, stop := signal.NotifyContext(e.life(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := e.Tools(ctx, set); err != nil {
		return &Error{Code: ExitInternal, Err: err}
	}
	return nil
}

// shellOfTools is the shell that commands are judged as, and whether it is
// Bawn's own: that of a split session, which hands them on.
func shellOfTools() (shell string, handed bool) {
	ours, oursErr := os.Stat(programInside)
	for _, name := range []string{"/bin/bash", "/usr/bin/bash", "/bin/sh"} {
		if info, err := os.Stat(name); err == nil {
			return name, oursErr == nil && os.SameFile(info, ours)
		}
	}
	return "", false
}
