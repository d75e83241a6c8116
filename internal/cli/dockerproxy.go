package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// newDockerProxyCommand serves the Docker API of guests without a session, for
// programs that something else contains.
func newDockerProxyCommand(e *launch.Env) *cobra.Command {
	var socket, workspace string
	c := &cobra.Command{
		Use:   "dockerd-proxy --socket PATH [--workspace DIR]",
		Short: "Serve a filtered Docker API, as guests have it, at a socket",
		Long: `Serve a filtered Docker API at a socket, until it is told to end.

It is what "bawn run --docker" gives to guests, for a program that something
else contains: no privileges, devices or namespaces of the host, copies of files
of the workspace only, limits for all containers together. They reach each other
and nobody else; ports are published at the loopback of this machine. All
containers are removed in the end.`,
		Example: `  bawn dockerd-proxy --socket /run/user/1000/agent-docker.sock --workspace ~/project`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if socket == "" {
				return verb.Usage("for example: bawn dockerd-proxy --socket ./docker.sock", "no socket to serve at")
			}
			return e.Elsewhere((&dockerProxy{env: e, socket: settings.Absolute(&e.World, socket), workspace: settings.Absolute(&e.World, workspace)}).run())
		},
	}
	c.Flags().StringVar(&socket, "socket", "", "`path` of the socket, which must not be there; only this user may connect to it")
	c.Flags().StringVar(&workspace, "workspace", ".", "`directory` of which containers may be given copies")
	return c
}

// A dockerProxy is one run of that verb.
type dockerProxy struct {
	env               *launch.Env
	socket, workspace string
}

func (p *dockerProxy) run() error {
	e := p.env
	ws, err := filepath.EvalSymlinks(p.workspace)
	if err != nil {
		return verb.Usage("name a directory that exists", "--workspace: %v", err)
	}
	cfg, err := settings.LoadConfig(&e.World, ws, config.Flags{})
	if err != nil {
		return err
	}
	iso := cfg.Isolation(ws)
	iso.DockerAPI, iso.Network = true, bawn.NetworkNone
	if err := launch.DockerHere(e, iso); err != nil {
		return err
	}
	s := &runner.Session{Session: bawn.Session{
		ID: launch.NewSessionID(), Agent: "dockerd-proxy", Mode: cfg.Mode, Autonomy: cfg.Autonomy, Isolation: iso, Started: time.Now(), Provider: launch.NoProvider,
	}}
	serve, err := launch.Docker(e, cfg, s.Session, nil)
	if err != nil {
		return err
	}
	if err := launch.MakeStateDir(e); err != nil {
		return err
	}
	check, end, err := launch.ContainerGuard(&launch.Launch{}, e, cfg, s)
	if err != nil {
		return err
	}
	defer end()
	return p.serve(s, serve, check)
}

// serve answers until a signal comes.
func (p *dockerProxy) serve(s *runner.Session, serve func(runner.ContainerHost) (func() error, error), check func(context.Context, bawn.Action) bawn.Decision) error {
	mask := syscall.Umask(0o177) // no other process can connect, not for a moment
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.socket, Net: "unix"})
	syscall.Umask(mask)
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err, Hint: "remove what is there, or choose another path"}
	}
	defer l.Close()
	own, place, err := launch.ContainerSocket(p.env, s.ID) // for its directory
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	defer os.RemoveAll(place)
	own.Close()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	end, err := serve(runner.ContainerHost{Listener: l, Place: place, Guest: ownMachine{}, Guard: check, Refused: p.refused})
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	fmt.Fprintf(p.env.Stderr, "bawn: serving at %s; end it with Ctrl-C\n", p.socket)
	<-told
	if err := end(); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("containers could not all be removed: %w", err)}
	}
	return nil
}

func (p *dockerProxy) refused(d sandbox.Denial) {
	fmt.Fprintf(p.env.Stderr, "bawn: denied: %s (%s): %s\n", strconv.Quote(d.Resource), d.Rule, d.Reason)
}

// ownMachine stands for a program that is in no sandbox of Bawn's.
type ownMachine struct{}

var (
	_ sandbox.Loopback = ownMachine{}
	_ sandbox.Visible  = ownMachine{}
)

// Listen takes a port of this machine's loopback.
func (ownMachine) Listen(port uint16) (*os.File, error) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return l.File()
}

// View is this machine's "/".
func (ownMachine) View() (*os.File, error) { return os.Open("/") }
