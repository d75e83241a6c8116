package launch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/copies"
	"github.com/bawn-dev/bawn/internal/gitstore"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/undo"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A sessionCopy is the copy that a session works on, while the session lives. Its methods
// do nothing for nil.
type sessionCopy struct {
	launch *Launch
	env    *Env
	state  string // Bawn's state directory, or one for a plan that is only shown
	copy   *copies.Copy
	live   copies.Filter
	based  chan struct{} // closed when the checkpoint of the workspace is kept
	base   string
	failed error         // why it is not
	done   chan struct{} // closed when that is on the disk
	ran    bool
	ended  bool
}

// copied makes the session's copy, where one is asked for.
func (p *gatherer) copied(s bawn.Session) (*sessionCopy, error) {
	// A session's own children and tools are about its workspace, and a hook's command about
	// that of an agent without a sandbox.
	p.onCopy = p.config.Copy(s.Agent) && p.Parent == nil && !p.Plugin && p.For == ""
	if !p.onCopy {
		if p.Name != "" {
			return nil, verb.Usage("add --copy, or leave out --name", "--name is for a session on a copy")
		}
		return nil, nil
	}
	if err := p.copyable(s); err != nil {
		return nil, err
	}
	state, err := settings.StateDir(&p.env.World)
	if err == nil && p.Plan {
		state, err = os.MkdirTemp("", "bawn-plan-")
	}
	if err != nil {
		return nil, err
	}
	c := &sessionCopy{launch: p.Launch, env: p.env, state: state, based: make(chan struct{}), done: make(chan struct{})}
	record := copies.Record{ID: s.ID, Name: p.Name, Agent: s.Agent, Workspace: s.Isolation.Workspace, Started: s.Started}
	from, err := p.goesOn(&record)
	if err != nil {
		return nil, err
	}
	if from != nil {
		defer from.Close()
	}
	if c.copy, err = copies.Create(state, record); err == nil && from != nil && !p.Plan {
		err = c.goOn(from)
	}
	if errors.Is(err, copies.ErrNamed) {
		return nil, verb.Usage(fmt.Sprintf("choose another name, or apply and discard that one: bawn discard %s", p.Name), "--name %q is that of a copy that is there", p.Name)
	}
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("make the session's copy: %w", err), Hint: "mend Bawn's state directory, or use --no-copy"}
	}
	if c.base = record.Base; p.Plan || from != nil {
		close(c.based)
		close(c.done)
		return c, nil
	}
	go c.keepBase(s)
	return c, nil
}

// goesOn opens the copy from which the session goes on, if there is one, and notes its
// base: what the session changes is compared with the same moment.
func (p *gatherer) goesOn(r *copies.Record) (*copies.Copy, error) {
	if p.From == "" {
		return nil, nil
	}
	state, err := settings.StateDir(&p.env.World)
	if err != nil {
		return nil, err
	}
	list, err := copies.List(state, r.Workspace)
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	found := copies.Find(list, p.From)
	if len(found) != 1 {
		return nil, verb.Usage("\"bawn ps\" and \"bawn apply\" list copies", "--from %q names %d copies of this workspace, want one", p.From, len(found))
	}
	if _, err := found[0].BaseOf(state); err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	from, err := copies.Open(state, found[0].ID)
	if err != nil {
		return nil, verb.Usage("wait until it has ended, or end it: bawn kill "+found[0].ID[:8], "--from %s: %w", p.From, err)
	}
	r.Base = from.Base
	return from, nil
}

// goOn fills the copy with what another one has, and says what that takes.
func (c *sessionCopy) goOn(from *copies.Copy) error {
	files, bytes, err := c.copy.GoOn(from)
	if err != nil {
		return errors.Join(err, c.copy.Discard())
	}
	if bytes > 0 && !c.launch.Quiet && !c.launch.JSON {
		fmt.Fprintf(c.env.Stderr, "bawn: goes on from copy %s: %s copied (%s)\n", from.Called(), undo.Files(files), undo.Bytes(bytes))
	}
	return nil
}

// copyable refuses what no copy is made for.
func (p *gatherer) copyable(s bawn.Session) error {
	live := "use --no-copy: the session then changes the workspace itself, and \"bawn undo\" takes it back"
	writes := slices.ContainsFunc(s.Isolation.Mounts, func(m bawn.Mount) bool { return m.Path == s.Isolation.Workspace && m.Access == bawn.ReadWrite })
	switch {
	case !sandbox.AbilitiesOf(p.choice.Provider).Copy:
		return verb.Usage(live, "--copy needs provider \"native\", \"bwrap\" or \"gvisor\", or \"docker\" as root with Docker's own engine; this session has %q", p.choice.Name())
	case p.config.Split().On && p.choice.Name() != layout.NativeName:
		return verb.Usage(live, "--copy: the two zones of a split session share a copy with provider %q only", layout.NativeName)
	case s.Isolation.DockerAPI:
		return verb.Usage(live, "--copy: containers of a guest would see the workspace and not the copy")
	case !writes:
		return verb.Usage("use --no-copy", "--copy: this session may not write to its workspace")
	case p.Name != "" && !copies.NameOK(p.Name):
		return verb.Usage("want at most 64 letters, digits, and - _ . within", "--name %q can't name a copy", p.Name)
	}
	return nil
}

// keepBase keeps the workspace as it is when the session begins: what the copy is
// compared with.
func (c *sessionCopy) keepBase(s bawn.Session) {
	defer close(c.done)
	dir := settings.RuntimeDir(&c.env.World, c.state)
	ws := s.Isolation.Workspace
	kept, finish, err := undo.Base(undo.Options{
		State: c.state, Workspace: ws, Own: OwnDirs(c.env), Session: s.ID, Agent: s.Agent,
		Others: func() bool { return len(Writing(dir, s.ID, []string{ws})) > 0 },
	})
	if c.failed = err; err == nil {
		c.base = kept.ID
	}
	close(c.based)
	if err == nil {
		_ = finish() // it is there either way
	}
}

// layer is the directory from which the sandbox makes the overlay, or "".
func (c *sessionCopy) layer() string {
	if c == nil {
		return ""
	}
	return c.copy.Layer()
}

// filter keeps what a session like this one without a copy could not write.
func (c *sessionCopy) filter(provider sandbox.Provider, req sandbox.Request) error {
	if c == nil {
		return nil
	}
	req.Copy, req.SharedCopy = "", nil
	plan, err := provider.Plan(req)
	if err != nil {
		return planError(err)
	}
	live, ok := plan.(interface{ OnHost() *layout.Plan })
	if !ok {
		return fmt.Errorf("BUG(bawn): %T says nothing about names", plan)
	}
	c.live = copies.FilterOf(live.OnHost(), req.Session.Isolation.Workspace)
	return nil
}

// keep has the session's command wait for the checkpoint. Without one nothing could be
// taken over, and it does not start.
func (c *sessionCopy) keep(s *runner.Session) {
	if c == nil {
		return
	}
	others, covered := s.Kept, s.Covered
	s.Covered = func() bool { return c.launch.Parent == nil && (others == nil || covered()) }
	s.Kept = func() error {
		<-c.based
		if c.failed != nil {
			return fmt.Errorf("keep the workspace, to compare the copy with it: %w; with --no-copy the session starts", c.failed)
		}
		c.copy.Base, c.copy.Filter = c.base, c.live
		if err := c.copy.Note(); err != nil {
			return fmt.Errorf("keep the record of the copy: %w", err)
		}
		c.ran = true
		if others != nil {
			return others()
		}
		return nil
	}
}

// end keeps what the session has changed and committed, and says how to have it. A copy
// without changes goes.
func (c *sessionCopy) end(commits []gitstore.Kept) {
	if c == nil || c.ended {
		return
	}
	c.ended = true
	<-c.done
	c.copy.Base = c.base
	if c.launch.Plan {
		_ = errors.Join(c.copy.Discard(), os.RemoveAll(c.state)) // what the system sweeps, too
		return
	}
	n, any, err := c.copy.Changed()
	if err == nil && !any && len(commits) == 0 || !c.ran {
		_ = errors.Join(c.copy.ForgetBase(c.state, time.Second), c.copy.Discard()) // "bawn discard" does it
		return
	}
	c.copy.Ended, c.copy.Git = time.Now(), commits
	if err := c.copy.Save(); err != nil {
		c.launch.note(c.env, "the end of the copy is not noted: "+err.Error())
	}
	c.copy.Close()
	if name := c.copy.Called(); !c.launch.Quiet && !c.launch.JSON {
		fmt.Fprintf(c.env.Stderr, "bawn: %s changed on copy %s; \"bawn diff %s\" shows, \"bawn apply %s\" takes over, \"bawn discard %s\" removes\n", undo.Files(n), name, name, name, name)
	}
}

// SuggestCopy says once that a session in the background, as this one, could work on a
// copy.
func SuggestCopy(e *Env, session string) {
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return
	}
	list, _ := attach.List(settings.RuntimeDir(&e.World, state))
	i := slices.IndexFunc(list, func(a attach.Entry) bool { return a.ID == session })
	if i < 0 || list[i].Copy != "" || list[i].Provider != layout.NativeName || !news(e, "copy", "in the background") {
		return
	}
	fmt.Fprintln(e.Stderr, "bawn: it changes your workspace while you work; with --copy it gets a copy, and \"bawn apply\" takes its changes over (said once)")
}
