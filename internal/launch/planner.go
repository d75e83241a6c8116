package launch

import (
	"errors"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A planner plans the guest's sandboxes, and opens the ways out of them.
type planner struct {
	*Planned
	relays *relays
}

// plan gathers the session's parts, and plans its sandboxes.
func (p *planner) plan() error {
	g := &gatherer{p.Planned}
	req, err := g.gather()
	if err != nil {
		return err
	}
	if !p.choice.unsandboxed() && !p.splits() {
		if err := p.relays.tell(&req, p.ownZone()); err != nil {
			return err
		}
	}
	if err := g.gatherRepository(&req); err != nil {
		return err
	}
	return p.sandboxes(req)
}

// splits reports whether agent and commands get a sandbox each.
func (p *planner) splits() bool { return p.config.Split().On && p.Parent == nil }

// sandboxes plans where the guest runs: without a sandbox, in one, or in one for each
// zone.
func (p *planner) sandboxes(req sandbox.Request) (err error) {
	if p.choice.unsandboxed() {
		return p.planUnsandboxed(req)
	}
	if p.splits() {
		err = p.planZones(req, p.config.Split())
	} else {
		err = p.planWhole(req)
	}
	if err == nil {
		p.Session.Contained = contained(p.config, p.Session)
		p.Session.ConnectionAsks = p.connectionAsks()
	}
	return err
}

// connectionAsks is ConnectionAsks of the zone in which commands run. Where the sandbox
// holds in part, there are ways out besides connections: a socket of the host, such as
// an engine's, a program of the host, or a file that the host executes.
func (p *planner) connectionAsks() bool {
	if p.Session.Contained != bawn.ContainedFully {
		return false
	}
	iso := &p.Session.Isolation
	if p.Session.Split != nil {
		iso = &p.Session.Split.Isolation
	}
	return ConnectionAsks(iso, p.config.Split().Hosts) && (p.relays.asks || iso.Network == bawn.NetworkNone)
}

// planWhole plans a session of one zone.
func (p *planner) planWhole(req sandbox.Request) (err error) {
	s := p.Session
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	p.openSocket(&req)
	z := p.ownZone()
	relay, err := p.relays.open(&req, z)
	if err != nil {
		return err
	}
	if relay != nil {
		s.Network = relay
	}
	if err := p.openContainers(&req, z); err != nil {
		return err
	}
	p.below.Open, p.request = req.Open, req
	if s.Plan, err = s.Provider.Plan(req); err != nil {
		return planError(err)
	}
	if err := p.copy.filter(s.Provider, req); err != nil {
		return err
	}
	return refused(p.Parent.Verify(s.Plan.Provider(), s.Plan.Places()))
}

// planError gives an error of the planning its exit code.
func planError(err error) error {
	var mismatch *sandbox.MismatchError
	if errors.As(err, &mismatch) {
		return &verb.Error{Code: verb.ExitInternal, Err: err, Hint: "\"bawn doctor\" shows what this machine can enforce"}
	}
	var ws *layout.WorkspaceError
	if errors.As(err, &ws) {
		return &verb.Error{Code: verb.ExitUsage, Err: err, Hint: "change to a project's directory, or name one with --cwd"}
	}
	var mendable interface{ Remedy() string }
	if errors.As(err, &mendable) {
		return &verb.Error{Code: verb.ExitUsage, Err: err, Hint: mendable.Remedy()}
	}
	return &verb.Error{Code: verb.ExitUsage, Err: err}
}
