package launch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/sessionsocket"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/shell/invocation"
	"github.com/bawn-dev/bawn/internal/verb"
)

// The places of Bawn's files in the zones of a split session.
const (
	socketInside   = "/run/bawn/session.sock"
	ProgramInside  = "/run/bawn/bawn"
	splitDirectory = "split" // of Bawn's own cache
)

// A zonePlanner plans the two zones of a split session.
type zonePlanner struct {
	*planner
	zones   session.Zones
	program string          // Bawn's own
	request sandbox.Request // of a session that is not split
}

// planZones plans a session of two zones.
func (p *planner) planZones(req sandbox.Request, split config.Split) (err error) {
	e, s := p.env, p.Session
	if !sandbox.AbilitiesOf(s.Provider).Split {
		return splitError(s.Provider, nil)
	}
	self, err := os.Executable()
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("find bawn's own program: %w", err)}
	}
	shells, err := shells(e, req)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	s.Split = &runner.Split{Program: ProgramInside}
	if s.Split.Place, err = runner.MakePlace(filepath.Join(settings.BaseDir(&e.World, "XDG_CACHE_HOME", ".cache"), "bawn", splitDirectory), s.ID); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	req.Tmp = s.Split.Place.Tmp()
	if p.copy != nil {
		s.Split.Copy = &sandbox.SharedCopy{}
		// Commands get the descriptors that the agent hands them, of the host's files too.
		req.SharedCopy, req.NoFiles = s.Split.Copy, false
	}
	p.request = req
	z := &zonePlanner{planner: p, zones: zonesOf(e, req, split), program: self, request: req}
	p.below.Models = z.zones.Models
	if err := z.execution(); err != nil {
		return err
	}
	return z.reasoning(shells)
}

// zonesOf says how the session's isolation is split.
func zonesOf(e *Env, req sandbox.Request, split config.Split) session.Zones {
	z := session.Zones{Whole: req.Session.Isolation, Home: filepath.Clean(e.Getenv("HOME")), Workspace: split.Workspace, Models: split.Hosts, Ports: split.HostPorts}
	for _, name := range agentPlaces {
		if dir := e.Getenv(name); filepath.IsAbs(dir) {
			z.Own = append(z.Own, filepath.Clean(dir))
		}
	}
	return z
}

// agentPlaces are variables in which agents are told where their own files are.
var agentPlaces = []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "QWEN_HOME", "GEMINI_CLI_HOME", "OPENCODE_CONFIG_DIR", "PI_CODING_AGENT_DIR", "CLINE_DIR"}

// execution plans the zone in which commands run, and starts its relay.
func (p *zonePlanner) execution() error {
	if err := makeShellPlaces(p.zones, p.Plan); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	s, req := p.Session, p.request
	req.Session.Isolation, req.Zone = there(p.zones), "-x"
	req.Open = append(p.zones.Opened(req.Open), p.zones.Shells()...)
	req.Environ = session.WithoutModels(req.Environ)
	req.Argv = []string{ProgramInside}
	masked, _ := p.masked.list()
	req.Files = append([]sandbox.File{{Source: p.program, Target: ProgramInside}}, masked...)
	z := p.zone(egress.Execution, p.zones.Models)
	relay, err := p.relays.open(&req, z)
	if err != nil {
		return err
	}
	if relay != nil {
		s.Split.Network = relay
	}
	if err := p.openContainers(&req, z); err != nil {
		return err
	}
	s.Split.Isolation = req.Session.Isolation
	if s.Split.Plan, err = s.Provider.Plan(req); err != nil {
		return planError(fmt.Errorf("the zone in which commands run: %w", err))
	}
	return p.copy.filter(s.Provider, req)
}

// there is the isolation in which commands run, without the places of shells
// that do not exist.
func there(z session.Zones) bawn.Isolation {
	iso, shells := z.Execution(), z.Shells()
	iso.Mounts = slices.DeleteFunc(iso.Mounts, func(m bawn.Mount) bool { return slices.Contains(shells, m.Path) && !isDir(m.Path) })
	return iso
}

// makeShellPlaces makes directories that an agent would make later: a directory
// that does not exist when the sandbox is made is never seen in it.
func makeShellPlaces(z session.Zones, plan bool) error {
	for _, dir := range z.Shells() {
		if plan {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make the directory from which the agent's shells read: %w", err)
		}
	}
	return nil
}

// reasoning opens the session socket, plans the zone of the agent and starts its relay. There
// Bawn is in the place of the shells.
func (p *zonePlanner) reasoning(shells []string) error {
	iso, err := p.zones.Reasoning()
	if err != nil {
		return verb.Usage("see \"bawn run --help\"", "%w", err)
	}
	s, req := p.Session, p.request
	at := s.Split.Place.Socket()
	if s.Split.Socket, err = sessionsocket.Listen(at); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	req.Session.Isolation = iso
	relay, err := p.relays.open(&req, p.zone(egress.Reasoning, p.zones.Models))
	if err != nil {
		return err
	}
	if relay != nil {
		s.Network = relay
	}
	req.Files = slices.Concat(req.Files, shimmed(shells, p.program), []sandbox.File{{Source: p.program, Target: ProgramInside}, {Source: at, Target: socketInside}})
	req.Sockets = append(req.Sockets, socketInside)
	if shell := p.env.Getenv("SHELL"); shell != "" && !understood(shell) {
		req.SetEnv = append(req.SetEnv, "SHELL=/bin/sh")
	}
	s.Session = req.Session
	if s.Plan, err = s.Provider.Plan(req); err != nil {
		return planError(fmt.Errorf("the zone of the agent: %w", err))
	}
	return nil
}

// shells finds the shells to cover, and refuses an agent that one of them would
// interpret.
func shells(e *Env, req sandbox.Request) ([]string, error) {
	path := e.Getenv("PATH")
	list, err := runner.Shells(path, req.Session.Isolation.CacheDirs, e.Getenv("SHELL"))
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: err, Hint: "leave out --split on this machine"}
	}
	var launcher *runner.LauncherError
	if err := runner.CheckLauncher(req.Argv, req.Dir); errors.As(err, &launcher) {
		starts := cmp.Or(redact.Visible(launcher.Starts), "PROGRAM")
		return nil, verb.Usage("name the program that it starts: bawn run --split -- "+starts+" ARG...", "%w", err)
	}
	program, err := runner.LookAgent(req.Argv[0], req.Dir, path)
	if err != nil {
		return list, nil //nolint:nilerr // the start says so, with what to do
	}
	var script *runner.ScriptError
	if err := runner.CheckAgent(program, path, list); errors.As(err, &script) {
		hint := "name the program that it starts: bawn run --split -- PROGRAM ARG..."
		if script.Starts != "" {
			hint += "; the script says: " + redact.Visible(script.Starts)
		}
		return nil, &verb.Error{Code: verb.ExitUsage, Err: errors.New(redact.Visible(err.Error())), Hint: hint}
	}
	return list, nil
}

// shimmed covers every shell with Bawn itself.
func shimmed(shells []string, self string) []sandbox.File {
	files := make([]sandbox.File, len(shells))
	for i, shell := range shells {
		files[i] = sandbox.File{Source: self, Target: shell}
	}
	return files
}

// A zonePlan is one zone of a split session in what --plan prints.
type zonePlan struct {
	Network string       `json:"network"`
	Egress  *egressPlan  `json:"egress,omitempty"`
	Plan    sandbox.Plan `json:"plan"`
}

// executionOf returns nil for a session that is not split.
func executionOf(s *runner.Session) *zonePlan {
	if s.Split == nil {
		return nil
	}
	iso := s.Split.Isolation
	return &zonePlan{iso.Network.String(), egressOf(iso), s.Split.Plan}
}

// understood reports whether a shell is one that is read as a policy reads it.
func understood(shell string) bool { return invocation.NameOf(shell) != "" }

// commandZone is what decisions and questions about commands share.
func commandZone(e *Env, s *runner.Session) asking.Zone {
	q := SessionQuestion(e, s)
	for _, kv := range s.Split.Plan.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		q.Names = append(q.Names, name)
	}
	return asking.Zone{
		Name: egress.Execution, Question: q, Covered: s.Covered,
		Contains: contains(s, "it runs in the zone of commands, which has the workspace and the session's network, and none of the agent's own files and keys"),
	}
}
