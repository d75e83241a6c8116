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

// checkpoints are those of a session. All of its methods do nothing without them.
type checkpoints struct {
	launch  *Launch
	env     *Env
	state   string // Bawn's state directory
	taker   *undo.Taker
	consent *undo.Consent
	plain   []bawn.Mount // of the session, without places that are read-only because no checkpoint covers them
}

// scan begins to look at the files that the session may destroy. It returns nil
// where no checkpoint is needed: a guest's own session has those of the one
// above it.
func scan(l *Launch, e *Env, s bawn.Session) *checkpoints {
	state, err := settings.StateDir(&e.World)
	own := OwnDirs(e)
	roots, files := destroyable(s.Isolation, own)
	if l.onCopy { // nothing in the workspace is destroyed
		inside := func(p string) bool { return fspath.Below(p, s.Isolation.Workspace) }
		roots, files = slices.DeleteFunc(roots, inside), slices.DeleteFunc(files, inside)
	}
	if err != nil || l.Parent != nil || l.Plan || len(roots)+len(files) == 0 {
		return nil
	}
	c := &checkpoints{launch: l, env: e, state: state}
	dir := settings.RuntimeDir(&e.World, state)
	c.taker = undo.Begin(undo.Options{
		State: state, Workspace: s.Isolation.Workspace, Roots: roots, Files: files, Own: own, Session: s.ID, Agent: s.Agent,
		Others: func() bool { return len(Writing(dir, s.ID, slices.Concat(roots, files))) > 0 }, Progress: c.progress(),
	})
	return c
}

// destroyable are the directories and single files of the host that a session writes,
// without Bawn's own, caches and what agents keep for themselves. The workspace comes first.
func destroyable(iso bawn.Isolation, own []string) (roots, files []string) {
	for _, m := range iso.Mounts {
		real, err := filepath.EvalSymlinks(m.Path)
		inside := func(dir string) bool {
			return fspath.Below(real, dir) || fspath.Below(dir, real) && real != iso.Workspace
		}
		if err != nil || m.Access != bawn.ReadWrite || strings.HasPrefix(m.Why, config.AgentState) || slices.ContainsFunc(slices.Concat(own, iso.CacheDirs), inside) {
			continue
		}
		switch info, err := os.Lstat(real); {
		case err == nil && info.IsDir():
			roots = append(roots, real)
		case err == nil && info.Mode().IsRegular():
			files = append(files, real)
		}
	}
	slices.SortFunc(roots, func(a, b string) int {
		if (a == iso.Workspace) != (b == iso.Workspace) {
			return map[bool]int{true: -1, false: 1}[a == iso.Workspace]
		}
		return strings.Compare(a, b)
	})
	roots = slices.Compact(roots)
	within := func(r string) bool {
		return slices.ContainsFunc(roots, func(o string) bool { return o != r && fspath.Below(r, o) })
	}
	slices.Sort(files)
	return slices.DeleteFunc(slices.Clone(roots), within), slices.DeleteFunc(slices.Compact(files), within)
}

// Writing returns the sessions that run and whose workspace is, holds or lies in one
// of these directories.
func Writing(registry, except string, roots []string) (list []attach.Entry) {
	all, err := attach.List(registry)
	if err != nil {
		return nil
	}
	for _, s := range all {
		if s.State == attach.Running && s.ID != except && s.Copy == "" && slices.ContainsFunc(roots, func(r string) bool {
			return fspath.Below(s.Workspace, r) || fspath.Below(r, s.Workspace)
		}) {
			list = append(list, s)
		}
	}
	return list
}

// close makes read-only what no checkpoint will have, unless the human has said that
// sessions write it. It does not wait for the scan: the sandbox is planned with the
// places that were not covered last, and again if that has changed (settle).
func (c *checkpoints) close(req *sandbox.Request, split bool) (err error) {
	if c == nil {
		return nil
	}
	if c.consent, err = undo.ReadConsent(c.state, req.Session.Isolation.Workspace); err != nil {
		c.launch.note(c.env, err.Error())
	}
	if split {
		c.consent.Last = c.taker.Uncovered()
	}
	c.plain = req.Session.Isolation.Mounts
	req.Session.Isolation.Mounts = c.mounts(c.consent.Last)
	return nil
}

// mounts are those of the session, with read-only places for uncovered files.
func (c *checkpoints) mounts(uncovered []checkpoint.Uncovering) []bawn.Mount {
	mounts := slices.Clip(c.plain)
	for _, u := range c.consent.ReadOnly(uncovered) {
		if c.launch.onCopy && fspath.Below(u.Path, c.consent.Workspace) {
			continue
		}
		if _, err := os.Lstat(u.Path); err == nil {
			mounts = append(mounts, bawn.Mount{Path: u.Path, Access: bawn.ReadOnly, Why: WhyUncovered + ": " + u.Why})
		}
	}
	return mounts
}

// settle waits for the scan. It returns the session's mounts, and whether they differ
// from those that it was planned with.
func (c *checkpoints) settle() (mounts []bawn.Mount, changed bool) {
	if c == nil {
		return nil, false
	}
	found := c.taker.Uncovered()
	news := c.consent.Untold(c.consent.ReadOnly(found))
	if len(news) > 0 {
		c.launch.note(c.env, "read-only, since no checkpoint can hold them: "+uncoveredWords(c.consent.Workspace, news)+`; "bawn checkpoints allow PATH" lets sessions write there`)
	}
	if slices.Equal(found, c.consent.Last) && len(news) == 0 {
		return nil, false
	}
	c.consent.Last = found
	if c.consent.Write(c.state) != nil {
		c.launch.note(c.env, "what no checkpoint covers is named again next time")
	}
	return c.mounts(found), true
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

// keep begins to keep, and has the session wait for it. With --covered it does not start
// without a checkpoint.
func (c *checkpoints) keep(s *runner.Session) {
	if c == nil {
		return
	}
	c.taker.Keep()
	s.Covered = c.taker.Covered
	s.Kept = func() error {
		err := c.taker.Ready()
		if err != nil && c.launch.Covered {
			return withoutCheckpoint(err)
		}
		if err != nil {
			c.failed(s, err)
		}
		return nil
	}
}

// withoutCheckpoint refuses a command that was allowed because a checkpoint would
// restore its changes.
func withoutCheckpoint(why error) error {
	return &runner.DeniedError{Decision: bawn.Denied("the command may destroy what no checkpoint holds: "+why.Error()+"; have your human run it", ruleNotCovered)}
}

// failed tells that a session goes without a checkpoint.
func (c *checkpoints) failed(s *runner.Session, why error) {
	var noGit *undo.NoGitError
	switch ws := s.Isolation.Workspace; {
	case !errors.As(why, &noGit):
		c.launch.note(c.env, "no checkpoint, so that \"bawn undo\" can't take back what this session does: "+why.Error())
	case news(c.env, "nogit-"+filepath.Base(checkpoint.Place(c.state, ws)), why.Error()): // it is so each time
		c.launch.note(c.env, "the checkpoint is without the repository, so that \"bawn undo\" takes back files alone: "+why.Error())
	}
	_ = s.Guard.Recorder.Record(context.Background(), bawn.Event{ // the session goes on either way
		Time: time.Now(), Session: s.ID, Agent: s.Agent, Kind: "session", Operation: "checkpoint", Resource: s.Isolation.Workspace, Dir: s.Dir,
		Requested: bawn.Allow, Resolved: bawn.Allow, Source: "auto", Rule: ruleNotCovered, Reason: why.Error(),
	})
}

// runWith has checkpoints taken while the guest runs.
func (c *checkpoints) runWith(s *runner.Session) {
	if c == nil {
		return
	}
	started := s.OnStart
	s.OnStart = func() {
		c.taker.Run()
		if started != nil {
			started()
		}
	}
}

// guestEnded says that nothing of the guest runs any more.
func (c *checkpoints) guestEnded() {
	if c != nil {
		c.taker.Ended()
	}
}

// end keeps the session's end, and says how to undo it.
func (c *checkpoints) end() {
	if c == nil {
		return
	}
	l, e := c.launch, c.env
	end, err := c.taker.End()
	switch {
	case err != nil:
		l.note(e, err.Error())
	case end != nil && end.Lost > 0 && !l.Quiet && !l.JSON && e.host == nil && verb.IsTerminal(e.Stderr):
		fmt.Fprintf(e.Stderr, "bawn: %s; \"bawn diff\" shows, \"bawn undo\" takes back\n", end)
	}
}

// progress shows on a terminal how far the first checkpoint is, when that takes long.
func (c *checkpoints) progress() func(done, all int64) {
	if c.launch.JSON || c.launch.Quiet || c.env.host != nil || !verb.IsTerminal(c.env.Stderr) {
		return nil
	}
	return undo.Progress(c.env.Stderr, time.Now)
}

// watch returns a recorder that has things kept before they are destroyed.
func (c *checkpoints) watch(r bawn.Recorder) bawn.Recorder {
	if c == nil {
		return r
	}
	return watching{r, c.taker}
}

// watching is a recorder that has files kept before they are destroyed: a
// recorded action is about to happen.
type watching struct {
	bawn.Recorder
	taker *undo.Taker
}

// Record records e.
func (w watching) Record(ctx context.Context, e bawn.Event) error {
	switch {
	case undo.Prompt(e.Details["seen"]):
		w.taker.Prompt()
	case e.Resolved == bawn.Allow && e.Details["seen"] == "" && undo.Destroys(e):
		_ = w.taker.Before(ctx) // Covered says so from now on
	}
	return w.Recorder.Record(ctx, e)
}
