// Package acpcli holds "bawn acp": an agent in a sandbox, for an editor.
package acpcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/acp"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy/overlay"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// New makes the command.
func New(e *launch.Env) *cobra.Command {
	f := &launch.Flags{}
	c := &cobra.Command{
		Use:   "acp [flags of bawn run] -- AGENT [ARG...]",
		Short: "Put an agent into a sandbox, for an editor that speaks ACP",
		Long: `Run an agent as a guest for an editor that speaks the Agent Client Protocol
over standard input and output.

The agent runs as "bawn run" with the same flags would run it. What it asks of
the editor is decided by your policy: what that allows or denies is answered at
once, what it would ask you appears in the editor, and all of it is in the audit
log. Files are read and written, and terminals run, in the agent's kind of
sandbox. An "always allow" of the agent's is not offered: use the policy's.

Editors are told to run "bawn acp -- AGENT" where they would run AGENT, in the
project's directory.`,
		Example: `  bawn acp -- claude-agent-acp
  bawn acp --secret gemini-api-key -- gemini --acp
  bawn acp --cwd ~/src/app -- opencode acp`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return verb.Usage("for example: bawn acp -- gemini --acp", "no agent to run")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return runACP(f, c, e, args) },
	}
	f.Declare(c.Flags())
	for _, name := range notForACP {
		_ = c.Flags().MarkHidden(name) // it exists
	}
	launch.CompleteRun(c, e)
	return c
}

// notForACP are flags that make no sense between an editor and an agent.
var notForACP = []string{"plan", "json", "detach", "attachable", "detach-keys", "copy", "name", "from"}

// forFiles are the flags that say which files there are: those that a sandbox
// needs in which a file is read or written for an agent.
var forFiles = []string{"provider", "profile", "rw", "ro", "deny", "open", "protect", "unprotect", "as"}

// forAgent are the flags that the sandbox of a terminal has no use for.
var forAgent = []string{"publish", "split", "split-workspace", "model", "agent", "cwd"}

func runACP(f *launch.Flags, c *cobra.Command, e *launch.Env, args []string) error {
	for _, name := range notForACP {
		if c.Flags().Changed(name) {
			return verb.Usage("leave it out", "--%s is not for bawn acp", name)
		}
	}
	if e.Guest() || launch.Inside(e) != "" {
		return &verb.Error{Code: verb.ExitDenied, Err: errors.New("this is a guest: an agent's sandbox is made outside of every other"), Hint: "tell the editor to start \"bawn acp\""}
	}
	self, err := os.Executable()
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("find bawn's own program: %w", err)}
	}
	spec, err := f.Spec(c.Flags(), e, args)
	if err != nil {
		return err
	}
	l := &launch.Launch{Spec: *spec, Plan: true} // nothing is started
	planned, err := l.Prepare(e)
	if err != nil {
		return e.Elsewhere(err)
	}
	s := planned.Session // the agent's requests are decided in its name
	planned.Discard()
	s.Close()
	if s.Copy != "" {
		return verb.Usage("add --no-copy to the editor's command: bawn acp --no-copy -- AGENT", "isolation.copy is on, and an editor shows the workspace itself, not a copy")
	}
	end, err := acpGuard(planned, e)
	if err != nil {
		return err
	}
	defer end()
	a := &acpServer{env: e, spec: spec, session: s, self: self, flags: c.Flags(), ownReads: planned.Known != nil && planned.Known.Agent.OwnReads}
	return a.run()
}

// acpGuard gives the session a policy and a log.
func acpGuard(p *launch.Planned, e *launch.Env) (end func(), err error) {
	s := p.Session
	if err := launch.MakeStateDir(e); err != nil {
		return nil, err
	}
	dir, err := settings.AuditDir(&e.World)
	if err != nil {
		return nil, err
	}
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("open the audit log: %w", err), Hint: "what can't be recorded does not run; mend the directory or set XDG_STATE_HOME"}
	}
	s.Guard = guard.Guard{Recorder: e.Share(log, "the session")}
	if s.Prompter, err = p.NewPrompter(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return func() {
		s.Prompter.Close()
		_ = log.Close() // each event has been written
	}, nil
}

// An acpServer is one agent between an editor and its sandboxes.
type acpServer struct {
	env     *launch.Env
	session *runner.Session
	spec    *session.Spec // of the agent's session, but for who is asked
	self    string
	flags   *pflag.FlagSet
	// ownReads is of acp.Options.
	ownReads bool
}

// run starts the agent and carries its conversation.
func (a *acpServer) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer stop()
	asks, err := a.asks()
	if err != nil {
		return err
	}
	defer asks.close()
	spec := *a.spec
	spec.Asks = asks.socket
	cmd, text, err := launch.Launcher(a.self, &spec)
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	defer text.Close()
	cmd.Env, cmd.Dir, cmd.Stderr = a.env.Environ, a.env.Dir, a.env.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	launch.DieWithParent(cmd.SysProcAttr)
	in, err := cmd.StdinPipe()
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("start the agent's session: %w", err)}
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })()
	asks.host(cmd.Process.Pid)
	p := acp.New(acp.Options{Workspace: a.session.Isolation.Workspace, Check: a.check, Permitted: asks.permitted, Terminal: a.terminal, Run: a.inside, Note: a.note, OwnReads: a.ownReads}, a.env.Stdin, a.env.Stdout, out, in)
	asks.at(p)
	served := p.Serve(ctx, func() { // the editor is gone
		in.Close()
		time.AfterFunc(acpGrace, func() { _ = cmd.Process.Signal(syscall.SIGTERM) }) // it may have ended
		time.AfterFunc(2*acpGrace, func() { _ = cmd.Process.Kill() })
	})
	err = statusOf(cmd.Wait())
	if served != nil && ctx.Err() == nil {
		return &verb.Error{Code: verb.ExitInternal, Err: served}
	}
	return err
}

// acpGrace is how long an agent may go on once its editor is gone.
const acpGrace = 5 * time.Second

// statusOf is how a session below this process ended, as this process ends.
func statusOf(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	case exit.ExitCode() >= 0:
		return verb.Status(exit.ExitCode())
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return verb.Status(128 + int(ws.Signal()))
	}
	return verb.Status(verb.ExitInternal)
}

func (a *acpServer) note(text string) {
	if !a.spec.Quiet {
		fmt.Fprintln(a.env.Stderr, "bawn: note: "+verb.Visible(text))
	}
}

// words are the flags that were given, of those that keep wants.
func (a *acpServer) words(keep func(name string) bool) (list []string) {
	a.flags.Visit(func(fl *pflag.Flag) {
		if !keep(fl.Name) {
			return
		}
		if many, ok := fl.Value.(pflag.SliceValue); ok {
			for _, v := range many.GetSlice() {
				list = append(list, "--"+fl.Name+"="+v)
			}
			return
		}
		list = append(list, "--"+fl.Name+"="+fl.Value.String())
	})
	return list
}

// terminal is the command line of a sandbox in which argv runs. Its workspace
// is the session's, whatever the directory leads to.
func (a *acpServer) terminal(dir string, env, argv []string) []string {
	line := append([]string{a.self, "run", "--quiet"}, a.words(func(name string) bool { return name != "quiet" && !slices.Contains(forAgent, name) })...)
	for _, kv := range env {
		line = append(line, "--env="+kv)
	}
	line = append(line, "--split=false", "--agent="+a.session.Agent, "--cwd="+a.session.Isolation.Workspace, "--")
	if dir != a.session.Isolation.Workspace {
		line = append(line, "/bin/sh", "-c", enter, "sh", dir)
	}
	return append(line, argv...)
}

// enter is a shell's: its $1 is where the rest runs.
const enter = `cd -- "$1" && shift && exec "$@"`

// inside runs a program of the system in a sandbox that has the agent's files
// and no network.
func (a *acpServer) inside(ctx context.Context, input string, limit int, argv ...string) (string, error) {
	line := append([]string{"run", "--quiet", "--net=none", "--split=false", "--agent=" + a.session.Agent, "--cwd=" + a.session.Isolation.Workspace}, a.words(func(name string) bool { return slices.Contains(forFiles, name) })...)
	ctx, cancel := context.WithTimeout(ctx, insidePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, a.self, append(append(line, "--"), argv...)...)
	cmd.Env, cmd.Dir, cmd.Stdin = a.env.Environ, a.env.Dir, strings.NewReader(input)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var errs bytes.Buffer
	cmd.Stderr = &limitedBuffer{&errs, 4 << 10, nil}
	all := &bytes.Buffer{}
	cmd.Stdout = &limitedBuffer{all, limit, cancel}
	switch err := cmd.Run(); {
	case all.Len() >= limit:
		return "", fmt.Errorf("it is larger than %d MiB", limit>>20)
	case err != nil && errs.Len() > 0:
		return "", errors.New(strings.TrimSpace(errs.String()))
	case err != nil:
		return "", err
	}
	return all.String(), nil
}

// insidePatience is how long a file may take.
const insidePatience = 30 * time.Second

// A limitedBuffer keeps so many bytes, and says when there are more.
type limitedBuffer struct {
	to   *bytes.Buffer
	most int
	full func()
}

func (l *limitedBuffer) Write(b []byte) (int, error) {
	room := l.most - l.to.Len()
	if len(b) <= room {
		return l.to.Write(b)
	}
	l.to.Write(b[:room])
	if l.full == nil {
		return len(b), nil
	}
	l.full()
	return room, io.ErrShortWrite
}

// check decides about what the agent wants.
func (a *acpServer) check(ctx context.Context, action bawn.Action, vague bool, human bawn.Approver) bawn.Decision {
	s := a.session
	action.Session, action.Agent, action.At = s.ID, s.Agent, time.Now()
	zone := asking.Zone{Question: launch.SessionQuestion(a.env, s)}
	g := s.Guard
	g.Approver, g.Decider = human, s.Prompter.Decider(zone)
	if action.Kind == bawn.Network {
		g.Decider = s.Prompter.Decider(s.Zone)
	}
	if vague {
		g.Decider = overlay.Insist(g.Decider, RuleVague, "the agent does not say exactly what it will do")
	}
	return g.Check(ctx, action, bawn.Event{Mode: s.Mode, Details: map[string]string{"asked by": "acp"}})
}

// RuleVague is that of an agent that does not say exactly what it will do.
const RuleVague = "builtin:vague"
