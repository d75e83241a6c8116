package launch

import (
	"errors"
	"os"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/terminal"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A planner makes a Planned, step by step.
type planner struct {
	*Planned
	relays *relays
}

// plan finds a provider, gathers what the session needs, and plans its sandboxes.
func (p *planner) plan() (err error) {
	s := p.asked
	if p.choice, err = provide(p.Launch, p.env, p.config, &s); err != nil {
		return err
	}
	s.Isolation.CacheDirs = cacheDirs(p.env, s.Isolation, p.Plan)
	cache, err := p.places(s.Isolation)
	if err != nil {
		return err
	}
	bare := p.choice.bare()
	args := p.Argv
	if !bare {
		p.checkpoints = scan(p.Launch, p.env, s)
		args = p.Known.Contain(args, p.holds(s))
	}
	req := p.newRequest(s, args, cache)
	p.Session = &runner.Session{
		Provider: p.choice.Provider, Argv: args, Dir: p.dir, Stdio: [3]*os.File{p.env.Stdin, p.env.Stdout, p.env.Stderr},
		Dumb: !terminal.Emulates(p.env.Getenv("TERM")), Session: req.Session,
	}
	if p.steering, err = p.steer(p.Session, &req, bare); err != nil {
		return err
	}
	if !bare {
		if err := p.gatherGit(&req); err != nil {
			return err
		}
		if err := p.checkpoints.close(&req, p.config.Split().On); err != nil {
			return err
		}
		if err := p.workspaceSecrets(&req); err != nil {
			return err
		}
	}
	p.below.Protected, p.below.Guarded = req.Protected, req.Guarded
	p.Session.Session, p.Session.Remedy = req.Session, remedies(p.env, p.config, s.Isolation)
	return p.sandboxes(req)
}

// sandboxes plans what the guest runs in: nothing, one sandbox, or one for each zone.
func (p *planner) sandboxes(req sandbox.Request) (err error) {
	if p.choice.bare() {
		return p.planBare(req)
	}
	if split := p.config.Split(); split.On && p.Parent == nil {
		err = p.planZones(req, split)
	} else {
		err = p.planWhole(req)
	}
	if err == nil {
		p.Session.Contained = contained(p.config, p.Session)
		p.Session.ConnectionAsks = p.connectionAsks()
	}
	return err
}

// connectionAsks is ConnectionAsks of the zone in which commands run.
func (p *planner) connectionAsks() bool {
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
	return refused(p.Parent.Verify(s.Plan.Provider(), s.Plan.Places()))
}

// newRequest is what a provider makes the session's plan from.
func (p *planner) newRequest(s bawn.Session, args []string, cache string) sandbox.Request {
	cfg, e := p.config, p.env
	req := sandbox.Request{
		Session: s, Argv: args, Dir: p.dir, Environ: p.environ(e), Home: e.Getenv("HOME"), Open: cfg.Open, Protected: cfg.Protected,
		Hidden: OwnDirs(e), CacheDir: cache, Guarded: cfg.Guarded(), Owned: cfg.Owned(), GuestWrote: guestWrote(e),
	}
	if p.PinGit {
		req.SetEnv = policy.GitPins()
	}
	req.Open, req.Protected = p.narrower(req.Open, req.Protected)
	narrow(p.Parent, &req)
	return req
}

// places makes Bawn's own directories for a session, and returns that of its
// private caches.
func (p *planner) places(iso bawn.Isolation) (cache string, err error) {
	if !p.Plan {
		if err := MakeStateDir(p.env); err != nil {
			return "", err
		}
	}
	return privateCaches(p.env, iso)
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
