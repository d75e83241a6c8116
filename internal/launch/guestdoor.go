package launch

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/bawn-dev/bawn/internal/door"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// DoorsName is the directory of the doors of all sessions, below that of
// sessions.
const DoorsName = "doors"

// Guest reports whether this bawn runs in a session that has a door.
func (e *Env) Guest() bool {
	if e.spec != nil || Inside(e) == "" {
		return false
	}
	info, err := os.Stat(doorInside)
	return err == nil && info.Mode().Type() == os.ModeSocket
}

// openDoor makes the door of a session with one zone. Without one a guest can't
// ask for anything, which is no reason not to run.
func (l *Launch) openDoor(e *Env, s *runner.Session, req *sandbox.Request) {
	if l.Plan || !sandbox.AbilitiesOf(s.Provider).Door {
		return
	}
	dir, err := l.doorDir(e)
	if err == nil {
		d := &runner.Door{Path: filepath.Join(dir, s.ID)}
		if d.Listener, err = door.Listen(d.Path); err == nil {
			s.Door = d
			req.Files = append(req.Files, sandbox.File{Source: d.Path, Target: doorInside})
			req.Sockets = append(req.Sockets, doorInside)
			l.Known.prefixed(req)
			return
		}
	}
	l.note(e, "the guest can't ask for anything: "+err.Error())
}

// prefixed has an agent that can put a program in front of its commands put
// Bawn there, which has each judged at the door.
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

// doorDir makes the directory of the doors of all sessions.
func (l *Launch) doorDir(e *Env) (string, error) {
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(settings.RuntimeDir(&e.World, state), DoorsName)
	return dir, os.MkdirAll(dir, 0o700)
}

// answerGuests says who serves the doors of the session.
func (l *Launch) answerGuests(e *Env, s *runner.Session) (end func(), err error) {
	s.Apart = l.Parent != nil
	if s.Door == nil && s.Split == nil {
		return func() {}, nil
	}
	s.Refusals = &runner.Refusals{}
	judged := newJudge(e, s, s.Refusals.Of(s.Guard)).Serve
	r := &requests{session: s.Session, desk: s.Desk, network: s.Zone, guard: s.Guard, reach: s.Isolation}
	dir, err := l.doorDir(e)
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	k := &children{env: e, guard: s.Refusals.Of(s.Guard), parent: l.above(e, s), desk: s.Desk, covered: s.Covered, refused: refusedAt(s, "asks")}
	k.parent.Asks = filepath.Join(dir, s.ID[:AsksName]+".a")
	if l.Parent == nil {
		k.parent.Tree = filepath.Join(dir, s.ID+".child")
	}
	tools := k.Tools
	if k.parent.Plugin { // it would have the others do what it may not do
		tools = nil
	}
	if s.Split == nil {
		s.Door.Handlers = door.Handlers{Session: s.ID, Run: k.Run, Request: r.Request, Judge: judged, Tools: tools}
		return k.close, nil
	}
	r.command, r.reach = &s.Split.Zone, s.Split.Isolation
	k.split = append([]string{}, s.Split.Plan.Environ()...)
	k.guard.Approver, k.guard.Decider = s.Desk.Approver(s.Split.Zone), s.Desk.Decider(s.Split.Zone)
	s.Split.Requests = door.Handlers{Run: k.Run, Request: r.Request, Judge: judged, Tools: tools}
	return k.close, nil
}

// above is what no child of the session exceeds: of two zones, that in
// which commands run.
func (l *Launch) above(e *Env, s *runner.Session) session.Parent {
	p := session.Parent{Session: s.Session, Open: l.credentials, Protected: l.protected, Guarded: l.guarded, Places: s.Plan.Places(), CanAsk: l.canAsk(e), Plugin: l.Only}
	if s.Split != nil {
		p.Session.Isolation, p.Places = s.Split.Isolation, s.Split.Plan.Places()
		p.Zone, p.Models = egress.Execution, l.models
	}
	p.Session.Isolation = session.Led(p.Session.Isolation, all)
	p.Session.Provider = s.Plan.Provider()
	p.Git, p.GitPool = l.gitDirs, l.gitPool
	if l.Parent != nil {
		p.Plugin = p.Plugin || l.Parent.Plugin
		p.Depth, p.CanAsk, p.Tree = l.Parent.Depth, l.Parent.CanAsk, l.Parent.Tree
		p.Zone, p.Models = l.Parent.Zone, l.Parent.Models
	}
	return p
}
