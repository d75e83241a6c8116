package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/copies"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/gitstore"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A privateGit is the private git directory of a session, while it lives.
type privateGit struct {
	say   func(gitstore.Report)
	store *gitstore.Store
	copy  bool
	plan  string // a directory for a plan that is only shown, or ""
	stop  context.CancelFunc
	done  chan struct{}
	ended bool
	left  []gitstore.Kept // what a session on a copy has committed
}

// kept is what a session on a copy has committed; nothing before the end.
func (g *privateGit) kept() []gitstore.Kept {
	if g == nil {
		return nil
	}
	return g.left
}

// GitOptions are what private git directories are made with.
func GitOptions(e *Env, cachedProbe, session string) (gitstore.Options, error) {
	state, err := settings.StateDir(&e.World)
	return gitstore.Options{
		State: state, Session: session, Path: e.Getenv("PATH"),
		Untrusted: func(v gitstore.View) (gitstore.Untrusted, error) {
			return gitstore.Confined(native.New(cachedProbe))(v)
		},
	}, err
}

// gatherGit gives the session a git directory of its own. Where that can't be, the
// repository's is read-only for it.
func (p *gatherer) gatherGit(req *sandbox.Request) error {
	iso := req.Session.Isolation
	if req.Session.Provider == layout.LandlockName {
		return nil
	}
	writable := slices.ContainsFunc(iso.Mounts, func(m bawn.Mount) bool { return m.Path == iso.Workspace && m.Access == bawn.ReadWrite })
	if p.Parent != nil {
		p.below.Git, p.below.GitPool = gitAbove(p.Parent, req, writable)
		return nil
	}
	if !writable {
		return nil
	}
	cached := SettingOf(p.env, p.config).Native()
	if req.Session.Provider != layout.NativeName && !confines(native.New(cached)) {
		p.note(p.env, "git directory read-only: what a guest writes in one is read in a sandbox of provider \"native\", which can't be made here")
		return nil
	}
	o, err := GitOptions(p.env, cached, req.Session.ID)
	if err != nil {
		return err
	}
	o.Names = gitstore.Names{Extra: req.Protected, Opened: iso.Unprotected, None: !iso.Protect}
	o.Copy, o.Beside = p.copy != nil, writableBeside(iso)
	p.git = &privateGit{say: p.sayGit, copy: o.Copy}
	if p.Plan {
		if p.git.plan, err = os.MkdirTemp("", "bawn-plan-"); err != nil {
			return &verb.Error{Code: verb.ExitInternal, Err: err}
		}
		o.State = p.git.plan
	}
	if p.git.store, err = p.gitStore(iso.Workspace, o); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err, Hint: "mend Bawn's state directory"}
	}
	req.Git, req.GitPool = p.git.store.Dirs(), p.git.store.MadePool()
	if p.copy == nil { // what other sessions write to
		req.Git = append(req.Git, gitstore.Again(o.State, iso.Workspace)...)
	}
	p.below.Git, p.below.GitPool = req.Git, req.GitPool
	return nil
}

// writableBeside are the directories that a session may write beside its workspace.
func writableBeside(iso bawn.Isolation) (list []string) {
	for _, m := range iso.Mounts {
		if real, err := filepath.EvalSymlinks(m.Path); err == nil && m.Access == bawn.ReadWrite && m.Path != iso.Workspace {
			list = append(list, real)
		}
	}
	return list
}

// gitStore prepares the private git directory. A workspace without a repository that can
// be had gets an empty one.
func (p *gatherer) gitStore(workspace string, o gitstore.Options) (*gitstore.Store, error) {
	repo, err := gitstore.Find(workspace)
	if repo != nil && !p.Plan {
		p.recoverGit(repo, o)
	}
	if repo == nil {
		if err != nil {
			p.note(p.env, "git directory read-only: "+err.Error())
		}
		repo = &gitstore.Repository{Workspace: workspace}
	}
	o.Names.Project, _ = p.homes().project(repo.Workspace, filepath.Dir(repo.Common))
	store, err := gitstore.Prepare(repo, o)
	if err != nil && repo.Common != "" {
		p.note(p.env, "git directory read-only: "+err.Error())
		store, err = gitstore.Prepare(&gitstore.Repository{Workspace: repo.Workspace}, o)
	}
	return store, err
}

// confines reports whether a sandbox can be made in which git reads a guest's
// files.
func confines(p *native.Provider) bool {
	return slices.ContainsFunc(p.Capabilities(), func(c bawn.Capability) bool { return c.Attribute == sandbox.Processes && c.Strength == bawn.Enforced })
}

// gitAbove gives a child the private git directories of its parent, of repositories
// that it works on itself: to read, if it may not write there. It returns those that
// there are for children of its own.
func gitAbove(k *session.Parent, req *sandbox.Request, writable bool) (dirs []bawn.GitDir, pool string) {
	ws := req.Session.Isolation.Workspace
	for _, g := range slices.Concat(k.Git, gitstore.Made(k.GitPool, ws)) {
		there := func(o bawn.GitDir) bool { return o.Path == g.Path }
		if (ws == k.Session.Isolation.Workspace || fspath.Below(g.Path, ws)) && !slices.ContainsFunc(dirs, there) {
			dirs = append(dirs, g)
		}
	}
	if writable {
		req.Git, req.GitPool = dirs, k.GitPool
		return dirs, k.GitPool
	}
	for _, g := range dirs {
		req.Session.Isolation.Mounts = append(slices.Clip(req.Session.Isolation.Mounts), bawn.Mount{Path: g.Path, Access: bawn.Private, Why: "private git directory"})
		req.Files = append(req.Files, sandbox.File{Source: g.Private, Target: g.Path})
		for _, o := range g.Objects {
			req.Files = append(req.Files, sandbox.File(o))
		}
	}
	return dirs, ""
}

// recoverGit publishes the leftovers of a killed bawn.
func (p *gatherer) recoverGit(repo *gitstore.Repository, o gitstore.Options) {
	reports, err := RecoverGit(repo, o)
	for _, r := range reports {
		p.sayGit(r)
	}
	if err != nil {
		p.note(p.env, "what an earlier session did in git is not published: "+err.Error())
	}
}

// RecoverGit publishes what killed sessions of a repository have left. The commits of a
// session on a copy are noted there.
func RecoverGit(repo *gitstore.Repository, o gitstore.Options) ([]gitstore.Report, error) {
	reports, err := gitstore.Recover(context.Background(), repo, o)
	for _, r := range reports {
		err = errors.Join(err, copies.NoteCommits(o.State, r.Session, r.Kept))
	}
	return reports, err
}

// start begins to publish the guest's work. The guest is about to start.
func (g *privateGit) start() {
	if g == nil || g.store == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	g.stop, g.done = stop, make(chan struct{})
	go func() {
		defer close(g.done)
		g.store.Run(ctx)
	}()
}

// end publishes the guest's last work, and says what a human must do. The guest has
// ended. It may be called more than once.
func (g *privateGit) end() {
	if g == nil || g.ended {
		return
	}
	g.ended = true
	if g.stop != nil {
		g.stop()
		<-g.done
	}
	if g.store != nil {
		r, err := g.store.Close(context.Background())
		if err != nil && !slices.Contains(r.Problems, err.Error()) {
			r.Problems = append(r.Problems, err.Error())
		}
		if g.copy {
			g.left, r.Kept = r.Kept, nil
		}
		g.say(r)
	}
	if g.plan != "" {
		_ = os.RemoveAll(g.plan) // what the system sweeps, too
	}
}

// sayGit tells what needs a human, on one line.
func (u *setup) sayGit(r gitstore.Report) {
	text := GitWords(r)
	if text != "" && !u.JSON && !u.Plan {
		fmt.Fprintf(u.env.Stderr, "bawn: git: %s\n", redact.Visible(text))
	}
}

// GitWords is the text of a report, or "" if nothing has to be done.
func GitWords(r gitstore.Report) string {
	var list []string
	for _, k := range r.Kept {
		list = append(list, fmt.Sprintf("%s of the session is at %s: %s", k.Ref, k.Beside, k.Why))
	}
	list = append(append(list, r.Questions...), r.Problems...)
	for _, m := range r.Made {
		list = append(list, fmt.Sprintf("the session has made a repository at %s; \"bawn git keep %s\" makes it yours", m, m))
	}
	switch len(list) {
	case 0:
		return ""
	case 1:
		return list[0]
	}
	return fmt.Sprintf("%s; and %d more: see \"bawn git\"", list[0], len(list)-1)
}
