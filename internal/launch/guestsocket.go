package launch

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/sessionsocket"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// SocketsName is the directory of the session sockets, below that of
// sessions.
const SocketsName = "sockets"

// Guest reports whether this bawn runs in a session that has a socket.
func (e *Env) Guest() bool {
	if e.spec != nil || Inside(e) == "" {
		return false
	}
	info, err := os.Stat(socketInside)
	return err == nil && info.Mode().Type() == os.ModeSocket
}

// openSocket makes the session socket with one zone. Without one a guest can't
// ask for anything, which is no reason not to run.
func (p *planner) openSocket(req *sandbox.Request) {
	s := p.Session
	if p.Plan || !sandbox.AbilitiesOf(s.Provider).Socket {
		return
	}
	dir, err := socketDir(p.env)
	if err == nil {
		d := &runner.Socket{Path: filepath.Join(dir, s.ID)}
		if d.Listener, err = sessionsocket.Listen(d.Path); err == nil {
			s.Socket = d
			req.Files = append(req.Files, sandbox.File{Source: d.Path, Target: socketInside})
			req.Sockets = append(req.Sockets, socketInside)
			p.Known.prefixed(req)
			return
		}
	}
	p.note(p.env, "the guest can't ask for anything: "+err.Error())
}

// prefixed has an agent that can put a program in front of its commands put
// Bawn there, which has each judged at the session socket.
func (k *Known) prefixed(req *sandbox.Request) {
	if k == nil || !slices.Contains(k.Agent.Moves, prefixVariable) {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return // the sandbox holds without it
	}
	req.Files = append(req.Files, sandbox.File{Source: self, Target: prefixInside})
	req.SetEnv = append(req.SetEnv, prefixVariable+"="+prefixInside)
}

// socketDir makes the directory of the session sockets.
func socketDir(e *Env) (string, error) {
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(settings.RuntimeDir(&e.World, state), SocketsName)
	return dir, os.MkdirAll(dir, 0o700)
}

// answerGuests says who serves the session sockets.
func (p *Planned) answerGuests() (end func(), err error) {
	e, s := p.env, p.Session
	s.Apart = p.Parent != nil
	if s.Socket == nil && s.Split == nil {
		return func() {}, nil
	}
	req := p.request
	if s.Split != nil {
		req.Session.Isolation = s.Split.Isolation // commands ask, and so do their children
	}
	masked, _ := p.masked.list()
	s.Recent = &runner.Recent{Hides: hides(p.config, req, masked)}
	s.Refusals = &runner.Refusals{Recent: s.Recent}
	judged := newJudge(e, s, s.Refusals.Of(s.Guard)).Serve
	r := &requests{session: s.Session, prompter: s.Prompter, network: s.Zone, guard: s.Guard, reach: s.Isolation}
	dir, err := socketDir(e)
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	k := &children{env: e, guard: s.Refusals.Of(s.Guard), parent: p.above(), prompter: s.Prompter, copied: p.copy != nil, covered: s.Covered, refused: refusedAt(s, "asks")}
	k.parent.Asks = filepath.Join(dir, s.ID[:AsksName]+".a")
	if p.Parent == nil {
		k.parent.Tree = filepath.Join(dir, s.ID+".child")
	}
	tools := k.Tools
	if k.parent.Plugin { // it would have the others do something that it may not do
		tools = nil
	}
	if s.Split == nil {
		s.Socket.Handlers = sessionsocket.Handlers{Session: s.ID, Run: k.Run, Request: r.Request, Judge: judged, Tools: tools, Why: s.Recent.Serve}
		return k.close, nil
	}
	r.command, r.reach = &s.Split.Zone, s.Split.Isolation
	k.split = append([]string{}, s.Split.Plan.Environ()...)
	k.guard.Approver, k.guard.Decider = s.Prompter.Approver(s.Split.Zone), s.Prompter.Decider(s.Split.Zone)
	s.Split.Requests = sessionsocket.Handlers{Run: k.Run, Request: r.Request, Judge: judged, Tools: tools, Why: s.Recent.Serve}
	return k.close, nil
}

// above is what no child of the session exceeds: of two zones, that in
// which commands run.
func (p *Planned) above() session.Parent {
	s, above := p.Session, p.below
	above.Session, above.Places, above.CanAsk, above.Plugin = s.Session, s.Plan.Places(), p.canAsk(), p.Only
	if s.Split != nil {
		above.Session.Isolation, above.Places, above.Zone = s.Split.Isolation, s.Split.Plan.Places(), egress.Execution
	}
	above.Session.Isolation = session.Led(above.Session.Isolation, all)
	above.Session.Provider = s.Plan.Provider()
	if k := p.Parent; k != nil {
		above.Plugin = above.Plugin || k.Plugin
		above.Depth, above.CanAsk, above.Tree = k.Depth, k.CanAsk, k.Tree
		above.Zone, above.Models = k.Zone, k.Models
	}
	return above
}
