package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/peercred"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// The descriptors that a host inherits beside its spec and its terminal.
const (
	hostEnd    = specEnd + 1 // of the pair to who started it
	hostMaster = specEnd + 2 // of its own terminal
)

// detachedSize is the window of a session that nobody looks at.
var detachedSize = pty.Winsize{Rows: 24, Cols: 80}

// A host adds what a bawn run in the background needs: a server for its own
// terminal, to which viewers attach.
type host struct{ server *attach.Server }

// LaunchHost starts the host and returns the end by which it is viewed.
func LaunchHost(spec *session.Spec, e *Env, detach bool) (ours *os.File, err error) {
	self, err := hostProgram(spec, e)
	if err != nil {
		return nil, err
	}
	master, slave, err := hostTerminal(e)
	if err != nil {
		return nil, err
	}
	defer master.Close()
	defer slave.Close()
	theirs, ours, err := attach.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	hosted := *spec
	hosted.Hosted = true
	cmd, text, err := Launcher(self, &hosted)
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	defer text.Close()
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = hostEnviron(e), slave, slave, slave
	if !detach && !verb.IsTerminal(e.Stderr) {
		cmd.Stderr = e.Stderr
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, theirs, master) // hostEnd, hostMaster
	if pass := e.passphrase(); pass != nil {
		defer pass.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, pass) // hostPassphrase
		cmd.Env = append(slices.Clip(cmd.Env), fmt.Sprintf("%s=%d", egress.PassphraseFD, hostPassphrase))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	go func() { _ = cmd.Wait() }() // how it ended is told over the pair
	return ours, nil
}

// hostProgram is the one of Bawn's two programs that has the session's provider: a
// host can't become another program once it is viewed. The host reports all other
// errors.
func hostProgram(spec *session.Spec, e *Env) (string, error) {
	var absent AbsentProvider
	if errors.As(chosen(&Launch{Spec: *spec}, e), &absent) {
		return remote.Find()
	}
	return os.Executable()
}

// chosen returns an error if the session can't have a provider.
func chosen(l *Launch, e *Env) error {
	dir, err := l.directory(e)
	if err != nil {
		return err
	}
	ws := settings.WorkspaceOf(dir, e.Getenv("HOME"))
	cfg, err := settings.LoadConfig(&e.World, ws, l.Flags)
	if err == nil {
		_, err = choose(&l.Spec, e, cfg, cfg.Isolation(ws))
	}
	if err == nil {
		err = DockerHere(e, cfg.Isolation(ws))
	}
	return err
}

// hostTerminal makes the host's terminal like the user's.
func hostTerminal(e *Env) (master, slave *os.File, err error) {
	master, slave, err = pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("no terminal for it: %w", err)
	}
	size := detachedSize
	if verb.IsTerminal(e.Stdin) {
		if state, err := term.GetState(int(e.Stdin.Fd())); err == nil {
			_ = term.Restore(int(slave.Fd()), state) // the defaults do as well
		}
	}
	if now, err := pty.GetsizeFull(e.Stdout); err == nil && now.Rows > 0 && now.Cols > 0 {
		size = *now
	}
	_ = pty.Setsize(master, &size) // then it has none, like a serial line
	return master, slave, nil
}

// hostEnviron sets TERM if it is not set, as under cron.
func hostEnviron(e *Env) []string {
	if e.Getenv("TERM") != "" {
		return e.Environ
	}
	return append(e.Environ[:len(e.Environ):len(e.Environ)], "TERM=xterm-256color")
}

// becomeHost takes over the descriptors that LaunchHost has passed on. From now on
// the session's viewers see the terminal's output.
func (e *Env) becomeHost() error {
	unix.CloseOnExec(hostEnd)
	unix.CloseOnExec(hostMaster)
	e.hidePassphrase(false)
	err := unix.SetNonblock(hostMaster, true)
	end := os.NewFile(hostEnd, "viewer")
	if err != nil || end == nil {
		return errors.New("it inherits no terminal")
	}
	h := &host{server: attach.NewServer(os.NewFile(hostMaster, "terminal"))}
	if err := h.server.Serve(end); err != nil {
		return err
	}
	e.host = h
	return nil
}

// Hosted is the end of a host: everything is closed that could still write to
// its terminal, and viewers learn the exit code.
func (e *Env) Hosted(code int) int {
	if e.host == nil {
		return code
	}
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := range 3 {
		if err == nil {
			_ = unix.Dup2(null, fd) // both are open
		}
	}
	_ = e.host.server.End(code) // nobody is left to be told
	return code
}

// register enters the session into the registry for as long as it runs. leave is
// called at its end. A session that nobody can attach to is entered once it runs:
// nobody waits for its entry, and its command runs meanwhile.
func register(l *Launch, e *Env, s *runner.Session) (leave func(), err error) {
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return nil, err
	}
	dir := settings.RuntimeDir(&e.World, state)
	if e.host == nil {
		remove := func() {} // of one that never ran
		s.OnStart = func() {
			place, err := attach.Register(dir, entryOf(e, s))
			if err != nil { // it runs all the same
				l.note(e, "\"bawn ps\" won't list this session: "+err.Error())
				return
			}
			remove = place.Remove
		}
		return func() { remove() }, nil
	}
	place, err := attach.Register(dir, entryOf(e, s))
	if err == nil {
		e.host.server.Refused = refusedAt(s, "attach.sock")
		err = e.host.server.Listen(place)
	}
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: err, Hint: "without --detach and --attachable it runs as usual"}
	}
	s.OnStart, s.Watched = e.host.server.Running, e.host.server.Watched()
	return func() {}, nil // by hosted
}

// maxTold is how many refusals at one socket are recorded: they are no way to
// fill the log.
const maxTold = 1000

// refusedAt returns what records those that a socket of the session's host
// refuses.
func refusedAt(s *runner.Session, socket string) func(error) {
	var recorded atomic.Int32
	log, id := s.Guard.Recorder, s.ID // the session's own changes
	return func(why error) {
		if recorded.Add(1) > maxTold {
			return
		}
		event := peercred.Event(socket, why, time.Now())
		event.Session = id
		_ = log.Record(context.Background(), event) // they are refused either way
	}
}

func entryOf(e *Env, s *runner.Session) attach.Entry {
	entry := attach.Entry{
		ID: s.ID, Parent: s.Parent, Agent: s.Agent, Argv: s.Argv, Dir: s.Dir, Workspace: s.Isolation.Workspace, Provider: s.Plan.Provider(),
		Mode: s.Mode.String(), Network: s.Isolation.Network.String(), Started: time.Now(), PID: os.Getpid(),
		Terminal: e.host != nil || verb.IsTerminal(e.Stdout), Hosted: e.host != nil, Copy: s.Copy,
	}
	if s.Split != nil {
		entry.Zones = []string{"reasoning", "execution"}
	}
	for _, c := range partly(s) {
		entry.InPart = append(entry.InPart, c.Attribute)
	}
	return entry
}
