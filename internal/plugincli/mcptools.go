package plugincli

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/shim"
	"github.com/bawn-dev/bawn/internal/verb"
)

// startTools serves Bawn's own tools in the session that this is, or starts one
// for them, with flags of `bawn run`.
func (m *Serving) startTools(flags []string) error {
	e := m.Env
	switch {
	case m.http != "":
		return verb.Usage("leave --http out", "the tools are served over standard input and output")
	case launch.Inside(e) == "":
		return sessionOfTools(e, flags)
	case len(flags) > 0:
		return verb.Usage("leave them out", "flags of bawn run are not for a session that runs")
	case !e.Guest():
		return &verb.Error{Code: verb.ExitDenied, Err: errors.New("this session has no socket, where calls would be decided"), Hint: "start it with a provider that \"bawn doctor --matrix\" shows with a session socket"}
	case e.Tools == nil:
		return launch.Become(e, "mcp", e.Args[1:])
	}
	return serveTools(e)
}

// sessionOfTools becomes a session whose guest serves the tools.
func sessionOfTools(e *launch.Env, flags []string) error {
	self, err := os.Executable()
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("find bawn's own program: %w", err)}
	}
	args := slices.Concat([]string{"bawn", "run", "-q", "--agent", "bawn-tools"}, flags, []string{"--", self, "mcp", "--tools"})
	return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("start %q: %w", self, syscall.Exec(self, args, e.Environ))}
}

func serveTools(e *launch.Env) error {
	dir, err := settings.RealDir(e.Dir)
	if err != nil {
		return err
	}
	set := launch.ToolsSetting{Workspace: settings.WorkspaceOf(dir, e.Getenv("HOME")), Environ: e.Environ, Judge: shim.Judge, Request: shim.RequestChange, In: e.Stdin, Out: e.Stdout}
	set.Shell, set.Handed = shellOfTools()
	ctx, stop := signal.NotifyContext(e.Life(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := e.Tools(ctx, set); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	return nil
}

// shellOfTools is the shell that commands are judged as, and whether it is
// Bawn's own: that of a split session, which hands them on.
func shellOfTools() (shell string, handed bool) {
	ours, oursErr := os.Stat(launch.ProgramInside)
	for _, name := range []string{"/bin/bash", "/usr/bin/bash", "/bin/sh"} {
		if info, err := os.Stat(name); err == nil {
			return name, oursErr == nil && os.SameFile(info, ours)
		}
	}
	return "", false
}
