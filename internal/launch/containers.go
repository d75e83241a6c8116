package launch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/policy/overlay"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A ContainerSetting configures a session's Docker API.
type ContainerSetting struct {
	Environ   []string // in which an engine is found
	Config    *config.Config
	Session   bawn.Session // whose isolation no container exceeds
	HostPorts []uint16     // of the session's loopback that lead to its relay
	Cache     string       // a file for the result of an engine's trial; "" keeps it nowhere
	Warn      func(string) // tells the human, before the session starts
}

// An UnsafeEngineError says why no guest's containers are made by an engine.
type UnsafeEngineError struct{ Why, Remedy string }

func (e *UnsafeEngineError) Error() string { return e.Why }

// acceptEscapes is how a user has an unsafe engine all the same.
const acceptEscapes = "or accept it in your own configuration: accept_escapes = true under [isolation.docker_options]"

// Docker makes a session's Docker API.
func Docker(e *Env, cfg *config.Config, s bawn.Session, hostPorts []uint16) (func(runner.ContainerHost) (func() error, error), error) {
	serve, err := e.Docker(ContainerSetting{
		Environ: engineEnviron(e.Environ, cfg), Config: cfg, Session: s, HostPorts: hostPorts, Cache: SettingOf(e, cfg).Cache(TrialName),
		Warn: func(text string) { fmt.Fprintf(e.Stderr, "bawn: warning: %s\n", redact.Visible(text)) },
	})
	var unsafe *UnsafeEngineError
	switch {
	case errors.As(err, &unsafe):
		return nil, &verb.Error{Code: verb.ExitInternal, Err: err, Hint: unsafe.Remedy + "; " + acceptEscapes}
	case err != nil:
		return nil, &verb.Error{Code: verb.ExitInternal, Err: err, Hint: "start the engine, name it with DOCKER_HOST or docker_options.host, or leave out --docker"}
	}
	return serve, nil
}

// TrialName names the record of an engine's trial among those of providers.
const TrialName = "docker-api"

// NoProvider stands for the provider where there is a Docker API without a
// sandbox.
const NoProvider = "none"

// containersInside is where a guest finds its Docker API.
const containersInside = "/run/bawn/docker.sock"

// DockerHere says whether this program can serve the Docker API that a session
// asks for.
func DockerHere(e *Env, iso bawn.Isolation) error {
	switch {
	case !iso.DockerAPI || e.Docker != nil:
		return nil
	case e.Providers != nil:
		return &verb.Error{Code: verb.ExitInternal, Err: errors.New("a Docker API of the session's own is not served on " + runtime.GOOS), Hint: "leave out --docker"}
	}
	if err := e.Absent(""); !errors.As(err, &AbsentProvider{}) {
		return err
	}
	return AbsentProvider{Part: "the session's Docker API"}
}

// openContainers gives the zone of req a Docker API, where its isolation says
// so.
func (p *planner) openContainers(req *sandbox.Request, z zone) (err error) {
	e, s := p.env, p.Session
	iso := req.Session.Isolation
	if iso.DockerAPI && !sandbox.AbilitiesOf(s.Provider).Socket {
		return withoutSocket(s.Provider)
	}
	if !iso.DockerAPI || p.Plan {
		return nil
	}
	if e.Docker == nil { // a child of a session: its bawn can't become another program
		return &verb.Error{Code: verb.ExitInternal, Err: errors.New("the session's Docker API is part of bawnd, which a session below another does not start"), Hint: "leave out --docker"}
	}
	c := &runner.Containers{}
	if c.Serve, err = Docker(e, p.config, req.Session, req.HostPorts); err != nil {
		return err
	}
	if c.Zone, err = containerZone(e, s, iso); err != nil {
		return err
	}
	if c.Listener, c.Place, err = ContainerSocket(e, s.ID); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("make the session's Docker socket: %w", err)}
	}
	s.Containers = c
	if !slices.ContainsFunc(req.Files, func(f sandbox.File) bool { return f.Target == ProgramInside }) {
		self, err := os.Executable() // writes what containers have changed
		if err != nil {
			return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("find bawn's own program: %w", err)}
		}
		req.Files = append(req.Files, sandbox.File{Source: self, Target: ProgramInside})
	}
	req.Files = append(req.Files, sandbox.File{Source: filepath.Join(c.Place, "docker.sock"), Target: containersInside})
	req.Sockets = append(req.Sockets, containersInside)
	// Ryuk, Testcontainers' own reaper, wants the engine's socket; the session's
	// end does its work.
	req.SetEnv = append(req.SetEnv, "DOCKER_HOST=unix://"+containersInside, "TESTCONTAINERS_RYUK_DISABLED=true", "TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1",
		"DOCKER_BUILDKIT=0", "COMPOSE_DOCKER_CLI_BUILD=0") // BuildKit is not served
	if s.Provider.Name() == DockerName {
		return nil // they join the guest's own network
	}
	inner := *req
	inner.Files, inner.Sockets, inner.SetEnv = slices.Clip(inner.Files), slices.Clip(inner.Sockets), slices.Clip(inner.SetEnv)
	z.inner = true
	relay, err := p.relays.open(&inner, z)
	if relay != nil {
		c.Network = relay
	}
	return err
}

// withoutSocket refuses a Docker API to guests of a provider that can't show them a
// socket.
func withoutSocket(p sandbox.Provider) error {
	return &verb.Error{
		Code: verb.ExitInternal, Err: fmt.Errorf("provider %q can't show its guest a socket, so there is no Docker API for it", p.Name()),
		Hint: "use --provider native, bwrap or docker, or leave out --docker",
	}
}

// ContainerSocket makes the socket, in a directory of its own.
func ContainerSocket(e *Env, session string) (*net.UnixListener, string, error) {
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return nil, "", err
	}
	place := filepath.Join(settings.RuntimeDir(&e.World, state), session[:min(len(session), 16)]+"-d")
	if err := os.Mkdir(place, 0o700); err != nil {
		return nil, "", err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(place, "docker.sock"), Net: "unix"})
	if err == nil {
		err = os.Chmod(filepath.Join(place, "docker.sock"), 0o600)
	}
	if err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(place))
	}
	return l, place, nil
}

// containerZone is what decisions about containers share. Requests to a registry
// are decided as for the session's network. The rest is as contained as the
// guest's own commands: where these are not decided one by one, only what
// somebody's rule denies is denied.
func containerZone(e *Env, s *runner.Session, iso bawn.Isolation) (asking.Zone, error) {
	z := asking.Zone{Name: "containers", Question: SessionQuestion(e, s), Contains: "the container is as closed as the session, and gone with it"}
	network, err := asking.Network(iso.Egress)
	z.Decide = overlay.Container(network, s.Split != nil)
	return z, err
}
