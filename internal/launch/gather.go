package launch

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/terminal"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A gatherer collects everything beside the sandbox: directories, git,
// checkpoints, masked files, the texts that steer the agent.
type gatherer struct{ *Planned }

// gather finds a provider and makes the request from which it plans.
func (p *gatherer) gather() (req sandbox.Request, err error) {
	s := p.asked
	if p.choice, err = provide(p.Launch, p.env, p.config, &s); err != nil {
		return req, err
	}
	if !p.Plan { // which makes nothing
		p.caches = holdCachePlaces(p.env)
	}
	if p.copy, err = p.copied(s); err != nil {
		return req, err
	}
	s.Isolation.CacheDirs = cacheDirs(p.env, s.Isolation, p.caches)
	cache, err := p.places(s.Isolation)
	if err != nil {
		return req, err
	}
	unsandboxed := p.choice.unsandboxed()
	args := p.Argv
	if !unsandboxed {
		p.checkpoints = scan(p.Launch, p.env, s)
		args = p.Known.Contain(args, p.holds(s))
	}
	req = p.newRequest(s, args, cache)
	if !unsandboxed {
		p.noteHidden(req)
	}
	if req.Users, err = userFiles(p.env); err != nil {
		return req, err
	}
	if err := p.holdPrograms(&req); err != nil {
		return req, err
	}
	p.Session = &runner.Session{
		Project: req.Project, Provider: p.choice.Provider, Argv: args, Dir: p.dir, Stdio: [3]*os.File{p.env.Stdin, p.env.Stdout, p.env.Stderr},
		Dumb: !terminal.Emulates(p.env.Getenv("TERM")), Session: req.Session,
	}
	if p.copy != nil {
		p.Session.Copy = p.copy.copy.Called()
	}
	if !unsandboxed {
		p.Session.Label = Label(&p.env.World, Mark, p.Argv[0])
		req.SetEnv = append(req.SetEnv, prompts(&p.env.World, p.Argv[0], s.Isolation.SetEnv)...)
	}
	if p.steering, err = p.steer(p.Session, &req, unsandboxed); err != nil {
		return req, err
	}
	if !unsandboxed {
		if err := p.workspaceSecrets(&req); err != nil {
			return req, err
		}
	}
	return req, nil
}

// gatherRepository adds what takes longest: git, and the places that no checkpoint
// covers.
func (p *gatherer) gatherRepository(req *sandbox.Request) error {
	if !p.choice.unsandboxed() {
		if err := p.gatherGit(req); err != nil {
			return err
		}
		if err := p.checkpoints.close(req, p.config.Split().On); err != nil {
			return err
		}
	}
	p.below.Protected, p.below.Guarded, p.below.Project = req.Protected, req.Guarded, req.Project
	p.Session.Session, p.Session.Remedy = req.Session, remedies(p.env, p.config, req.Session.Isolation)
	return nil
}

// newRequest is a provider's input for the session's plan.
func (p *gatherer) newRequest(s bawn.Session, args []string, cache string) sandbox.Request {
	cfg, e := p.config, p.env
	req := sandbox.Request{
		Session: s, Argv: args, Dir: p.dir, Environ: p.environ(e), Home: e.Getenv("HOME"), Open: cfg.Open, Protected: cfg.Protected,
		Hidden: OwnDirs(e), CacheDir: cache, Guarded: cfg.Guarded(), Owned: cfg.Owned(), GuestWrote: guestWrote(e), Copy: p.copy.layer(),
		NoFiles: noFiles(e.Stdin, e.Stdout, e.Stderr),
	}
	if p.PinGit {
		req.SetEnv = policy.GitPins()
	}
	req.Open, req.Protected = p.narrower(req.Open, req.Protected)
	req.Project, req.Linked = p.homes().project(s.Isolation.Workspace)
	narrow(p.Parent, &req)
	return req
}

// places makes Bawn's own directories for a session, and returns that of its
// private caches.
func (p *gatherer) places(iso bawn.Isolation) (cache string, err error) {
	if !p.Plan {
		if err := MakeStateDir(p.env); err != nil {
			return "", err
		}
	}
	return privateCaches(p.env, iso)
}

// noFiles reports whether a guest that gets these descriptors gets no file or directory of
// the host, nor a pipe that has a name: for a terminal it gets one of its own.
func noFiles(stdio ...*os.File) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && !slices.ContainsFunc(stdio, func(f *os.File) bool {
		fi, err := f.Stat()
		at, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd()))) // "pipe:[1]", "socket:[1]"
		nameless := strings.HasPrefix(at, "pipe:") || strings.HasPrefix(at, "socket:")
		return err != nil || !nameless && !os.SameFile(fi, null) && !verb.IsTerminal(f)
	})
}
