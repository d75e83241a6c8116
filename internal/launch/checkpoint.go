package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/undo"
	"github.com/bawn-dev/bawn/internal/verb"
)

// ruleNotCovered is recorded of a session that goes without a checkpoint.
const ruleNotCovered = "builtin:not-covered"

// WhyUncovered begins the reason why a place is read-only that no checkpoint covers.
const WhyUncovered = "no checkpoint covers it"

// beginKeeping begins to look at what the session may destroy. A guest's own session
// has the checkpoints of the one above it.
func (l *Launch) beginKeeping(e *Env, s bawn.Session) {
	state, err := settings.StateDir(&e.World)
	own := OwnDirs(e)
	roots := destroyable(s.Isolation, own)
	if err != nil || l.Parent != nil || l.Plan || len(roots) == 0 {
		return
	}
	dir := settings.RuntimeDir(&e.World, state)
	l.keeper = undo.Begin(undo.Options{
		State: state, Workspace: s.Isolation.Workspace, Roots: roots, Own: own, Session: s.ID, Agent: s.Agent,
		Others: func() bool { return len(Writing(dir, s.ID, roots)) > 0 }, Progress: l.progress(e),
	})
}

// destroyable are the directories of the host that a session writes, without Bawn's own,
// caches and what agents keep for themselves. The workspace comes first.
func destroyable(iso bawn.Isolation, own []string) []string {
	var roots []string
	for _, m := range iso.Mounts {
		real, err := filepath.EvalSymlinks(m.Path)
		inside := func(dir string) bool {
			return fspath.Below(real, dir) || fspath.Below(dir, real) && real != iso.Workspace
		}
		if err != nil || m.Access != bawn.ReadWrite || strings.HasPrefix(m.Why, config.AgentState) || !isDir(real) || slices.ContainsFunc(slices.Concat(own, iso.CacheDirs), inside) {
			continue
		}
		roots = append(roots, real)
	}
	slices.SortFunc(roots, func(a, b string) int {
		if (a == iso.Workspace) != (b == iso.Workspace) {
			return map[bool]int{true: -1, false: 1}[a == iso.Workspace]
		}
		return strings.Compare(a, b)
	})
	return slices.DeleteFunc(slices.Compact(roots), func(r string) bool {
		return slices.ContainsFunc(roots, func(o string) bool { return o != r && fspath.Below(r, o) })
	})
}

// Writing returns the sessions that run and whose workspace is, holds or lies in one
// of these directories.
func Writing(registry, except string, roots []string) (list []attach.Entry) {
	all, err := attach.List(registry)
	if err != nil {
		return nil
	}
	for _, s := range all {
		if s.State == attach.Running && s.ID != except && slices.ContainsFunc(roots, func(r string) bool {
			return fspath.Below(s.Workspace, r) || fspath.Below(r, s.Workspace)
		}) {
			list = append(list, s)
		}
	}
	return list
}

// coverRest makes read-only what no checkpoint will have, unless the human has said
// that sessions write it. It does not wait for the scan: the sandbox is planned with
// what was not covered last, and again if that is not true any more (recover).
func (l *Launch) coverRest(e *Env, req *sandbox.Request, split bool) error {
	if l.keeper == nil {
		return nil
	}
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return err
	}
	if l.consent, err = undo.ReadConsent(state, req.Session.Isolation.Workspace); err != nil {
		l.note(e, err.Error())
	}
	if split {
		l.consent.Last = l.keeper.Uncovered()
	}
	l.plain = req.Session.Isolation.Mounts
	req.Session.Isolation.Mounts = l.shut(l.consent.Last)
	return nil
}

// shut adds read-only places to the mounts of the session.
func (l *Launch) shut(list []checkpoint.Uncovering) []bawn.Mount {
	mounts := slices.Clip(l.plain)
	for _, u := range l.consent.ReadOnly(list) {
		if _, err := os.Lstat(u.Path); err == nil {
			mounts = append(mounts, bawn.Mount{Path: u.Path, Access: bawn.ReadOnly, Why: WhyUncovered + ": " + u.Why})
		}
	}
	return mounts
}

// replan waits for the scan. If it has found other places that are not covered than the
// sandbox was planned with, the sandbox is planned anew.
func (l *Launch) replan(e *Env, s *runner.Session, abandon func()) error {
	if l.keeper == nil {
		return nil
	}
	found := l.keeper.Uncovered()
	rest := l.consent.ReadOnly(found)
	news := l.consent.Untold(rest)
	if len(news) > 0 {
		l.note(e, "read-only, since no checkpoint can hold them: "+uncoveredWords(s.Isolation.Workspace, news)+`; "bawn checkpoints allow PATH" lets sessions write there`)
	}
	if slices.Equal(found, l.consent.Last) && len(news) == 0 {
		return nil
	}
	l.consent.Last = found
	if state, err := settings.StateDir(&e.World); err != nil || l.consent.Write(state) != nil {
		l.note(e, "what no checkpoint covers is named again next time")
	}
	if s.Split != nil {
		return nil // planned after the scan
	}
	abandon()
	l.planned.Session.Isolation.Mounts = l.shut(found)
	s.Isolation.Mounts = l.planned.Session.Isolation.Mounts
	var err error
	if s.Plan, err = s.Provider.Plan(l.planned); err != nil {
		return planError(err)
	}
	return nil
}

// uncoveredWords names places with their sizes.
func uncoveredWords(ws string, list []checkpoint.Uncovering) string {
	const most = 5
	var words []string
	for i, u := range list {
		if i == most {
			words = append(words, fmt.Sprintf("%d more", len(list)-most))
			break
		}
		name := u.Path
		if rel, err := filepath.Rel(ws, u.Path); err == nil && !strings.HasPrefix(rel, "..") {
			name = rel
		}
		words = append(words, fmt.Sprintf("%s (%s, %s)", redact.Visible(name), undo.Bytes(u.Size), u.Why))
	}
	return strings.Join(words, ", ")
}

// keep begins to keep, and has the session wait for it.
func (l *Launch) keep(e *Env, s *runner.Session) {
	s.Covered = func() bool { return l.Parent != nil && l.Parent.Covered }
	if l.keeper == nil {
		if l.Covered && l.Parent == nil {
			s.Kept = func() error { return withoutCheckpoint(errors.New("this session takes none")) }
		}
		return
	}
	l.keeper.Keep()
	s.Covered = l.keeper.Covered
	s.Kept = func() error {
		err := l.keeper.Ready()
		if err != nil && l.Covered {
			return withoutCheckpoint(err)
		}
		if err != nil {
			l.uncovered(e, s, err)
		}
		return nil
	}
}

// withoutCheckpoint refuses a command that was allowed because a checkpoint would
// take back what it does.
func withoutCheckpoint(why error) error {
	return &runner.DeniedError{Decision: bawn.Denied("the command may destroy what no checkpoint holds: "+why.Error()+"; have your human run it", ruleNotCovered)}
}

// uncovered tells that a session goes without a checkpoint.
func (l *Launch) uncovered(e *Env, s *runner.Session, why error) {
	l.note(e, "no checkpoint, so that \"bawn undo\" can't take back what this session does: "+why.Error())
	_ = s.Guard.Recorder.Record(context.Background(), bawn.Event{ // the session goes on either way
		Time: time.Now(), Session: s.ID, Agent: s.Agent, Kind: "session", Operation: "checkpoint", Resource: s.Isolation.Workspace, Dir: s.Dir,
		Requested: bawn.Allow, Resolved: bawn.Allow, Source: "auto", Rule: ruleNotCovered, Reason: why.Error(),
	})
}

// keepOn has checkpoints taken while the guest runs.
func (l *Launch) keepOn(s *runner.Session) {
	if l.keeper == nil {
		return
	}
	started := s.OnStart
	s.OnStart = func() {
		l.keeper.Run()
		if started != nil {
			started()
		}
	}
}

// endKeeping keeps what the session has left, and says how to have it back.
func (l *Launch) endKeeping(e *Env) {
	end, err := l.keeper.End()
	switch {
	case err != nil:
		l.note(e, err.Error())
	case end != nil && end.Lost > 0 && !l.Quiet && !l.JSON && e.host == nil && verb.IsTerminal(e.Stderr):
		fmt.Fprintf(e.Stderr, "bawn: %s; \"bawn diff\" shows, \"bawn undo\" takes back\n", end)
	}
}

// progress shows on a terminal how far the first checkpoint is, when that takes long.
func (l *Launch) progress(e *Env) func(done, all int64) {
	if l.JSON || l.Quiet || e.host != nil || !verb.IsTerminal(e.Stderr) {
		return nil
	}
	return undo.Progress(e.Stderr, time.Now)
}

// watching is a recorder that has things kept before they are destroyed: what is
// recorded is about to happen.
type watching struct {
	bawn.Recorder
	keeper *undo.Keeper
}

// Record records e.
func (w watching) Record(ctx context.Context, e bawn.Event) error {
	switch {
	case undo.Prompt(e.Details["seen"]):
		w.keeper.Prompt()
	case e.Resolved == bawn.Allow && e.Details["seen"] == "" && undo.Destroys(e):
		_ = w.keeper.Before(ctx) // Covered says so from now on
	}
	return w.Recorder.Record(ctx, e)
}
