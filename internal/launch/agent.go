package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/agents"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A known agent is one that a session starts and that there is a data file for.
type Known struct {
	Agent   *agents.Agent
	program string // where it is, links resolved
	profile *config.AgentProfile
	off     []string // arguments that switch its own sandbox and prompts off
	silent  bool     // it asks nothing itself
}

// configure loads the configuration of the session, with the profile of the agent
// that it starts.
func (u *setup) configure() (err error) {
	e, l := u.env, u.Launch
	u.config, err = settings.LoadConfig(&e.World, u.workspace, l.Flags)
	if err != nil || l.Parent != nil || l.Only || !u.config.AgentProfile() { // of a child, its parent has decided
		return err
	}
	k := l.recognise(e, u.config, u.dir, l.Argv[0])
	if k == nil {
		return nil
	}
	if err := k.fill(e, u.workspace, l.Plan); err != nil {
		return err
	}
	in, err := settings.ConfigInputs(&e.World, u.workspace, l.Flags)
	if err != nil {
		return err
	}
	in.Agent = k.profile
	with, err := config.Load(in)
	if err != nil {
		return settings.ConfigError(err)
	}
	if guests(k.program, with) && !slices.ContainsFunc(k.profile.Guard, func(g string) bool { return fspath.Below(k.program, g) }) {
		l.note(e, fmt.Sprintf("%s is not known as %s: a session could exchange it", k.program, k.Agent.Title))
		return nil
	}
	u.Known, u.config = k, with
	return nil
}

// recognise returns the agent that a program is. Its name alone is not enough: a
// program that a guest may have put there, in the workspace or elsewhere, gets
// nothing for it.
func (l *Launch) recognise(e *Env, cfg *config.Config, dir, name string) *Known {
	a, ok := agents.ByProgram(filepath.Base(name))
	if !ok {
		return nil
	}
	program, err := runner.LookAgent(name, dir, e.Getenv("PATH"))
	if err != nil {
		return nil // the start says so, with what to do
	}
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return nil
	}
	if guests(program, cfg) || guests(real, cfg) {
		l.note(e, fmt.Sprintf("%s is not known as %s, since it lies where sessions write", program, a.Title))
		return nil
	}
	return &Known{Agent: a, program: real}
}

// fill lists the agent's needs here, and makes missing files: a file that is
// absent when a sandbox is made is never seen in it.
func (k *Known) fill(e *Env, ws string, plan bool) error {
	a := k.Agent
	w := agents.World{Home: filepath.Clean(e.Getenv("HOME")), Project: ws, Getenv: e.Getenv}
	k.profile = &config.AgentProfile{Name: a.Name, Models: a.Models, Closed: a.Closed, Guard: present(a.ExpandAll(a.Files.Guard, w))}
	if err := k.make(w, plan); err != nil {
		return err
	}
	absent := func(p string) bool { _, err := os.Stat(p); return err != nil }
	k.profile.RW = slices.DeleteFunc(a.ExpandAll(a.Files.State, w), absent)
	k.profile.Caches = slices.DeleteFunc(a.ExpandAll(a.Files.Cache, w), absent)
	k.profile.Private = slices.DeleteFunc(a.ExpandAll(a.Files.Private, w), absent)
	if i := slices.IndexFunc(k.profile.Private, isLink); i >= 0 {
		err := fmt.Errorf("%q is a symbolic link, which a session could exchange; want a directory", k.profile.Private[i])
		return &verb.Error{Code: verb.ExitUsage, Err: err, Hint: "remove it, or use --no-agent-profile"}
	}
	k.profile.Open = slices.DeleteFunc(a.ExpandAll(a.Files.Read, w), absent)
	k.profile.Env = a.Variables()
	return k.keepApart(w, plan)
}

// present replaces places that end in a pattern (path.Match) by those that
// exist.
func present(places []string) []string {
	var all []string
	for _, p := range places {
		if !strings.Contains(filepath.Base(p), "*") {
			all = append(all, p)
			continue
		}
		entries, _ := os.ReadDir(filepath.Dir(p)) // without it there is nothing
		for _, e := range entries {
			if ok, err := filepath.Match(filepath.Base(p), e.Name()); ok && err == nil {
				all = append(all, filepath.Join(filepath.Dir(p), e.Name()))
			}
		}
	}
	return all
}

// make makes files that the agent would make itself, and can't in a session.
func (k *Known) make(w agents.World, plan bool) error {
	if plan {
		return nil
	}
	f := k.Agent.Files
	var errs []error
	for _, dir := range k.Agent.ExpandAll(slices.Concat(f.State, f.Private, f.Cache, f.Make), w) {
		errs = append(errs, os.MkdirAll(dir, 0o700))
	}
	for _, file := range k.Agent.ExpandAll(f.Empty, w) {
		if info, err := os.Lstat(filepath.Dir(file)); err != nil || !info.IsDir() { // a project's link leads anywhere
			continue
		}
		if err := atomicfile.Create(file, nil, 0o600); !errors.Is(err, fs.ErrExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("make what %s needs: %w", k.Agent.Title, err), Hint: "make it yourself, or use --no-agent-profile"}
	}
	return nil
}

// maxCopied bounds, in bytes, a file that an agent gets a copy of.
const maxCopied = 32 << 20

// keepApart gives the agent a copy of the file that it would otherwise write in
// sessions and obey outside of them.
func (k *Known) keepApart(w agents.World, plan bool) error {
	dir, file, from, ok := k.Agent.Own(w)
	if !ok {
		return nil
	}
	k.profile.Guard = slices.DeleteFunc(k.profile.Guard, func(g string) bool { return g == file })
	k.profile.Owned = []string{file}
	k.profile.Env = append(k.profile.Env, k.Agent.Apart.Variable+"="+dir)
	if _, err := os.Lstat(file); plan || err == nil {
		return nil
	}
	source, err := os.Open(from)
	if err != nil {
		return nil //nolint:nilerr // it makes a new one
	}
	defer source.Close()
	text, err := io.ReadAll(io.LimitReader(source, maxCopied))
	if err == nil {
		err = atomicfile.Create(file, text, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("copy %s for %s: %w", from, k.Agent.Title, err), Hint: "make it yourself, or use --no-agent-profile"}
	}
	return nil
}

// Contain switches off the agent's own sandbox, which can't work inside of Bawn's,
// and those of its prompts that the sandbox makes needless. Bawn asks about what
// leaves the sandbox, so nobody is asked twice.
func (k *Known) Contain(args []string, holds bool) []string {
	if k == nil || filepath.Base(args[0]) != k.Agent.Programs[0] {
		return args
	}
	switches := []agents.Switch{k.Agent.Sandbox.Switch}
	if holds {
		switches = append(switches, k.Agent.Prompts.Switch)
	}
	for i, s := range switches {
		if len(s.Off) == 0 || slices.ContainsFunc(args[1:], s.Said) {
			continue
		}
		k.off = append(k.off, s.Off...)
		k.silent = k.silent || i > 0
	}
	return slices.Concat(args[:1], k.off, args[1:])
}

// holds reports whether a session's sandbox will hold what its agent does, all of it:
// only then the agent need not ask.
func (p *gatherer) holds(s bawn.Session) bool {
	if p.Known == nil || p.Parent != nil || s.Mode < bawn.ModeNormal || s.Autonomy < bawn.AutonomyModerate || p.config.Decides() || !sandbox.AbilitiesOf(p.choice.Provider).Socket {
		return false
	}
	partly, err := sandbox.Negotiate(s.Isolation, p.choice.Provider)
	return err == nil && holding(partly, s.Isolation) == bawn.ContainedFully
}

// name is the agent's, for the log.
func (k *Known) name(otherwise string) string {
	if k == nil {
		return otherwise
	}
	return k.Agent.Name
}

// profileOf is nil for a program that nothing is known of.
func (k *Known) profileOf() *config.AgentProfile {
	if k == nil {
		return nil
	}
	return k.profile
}

// sayAgent says in one line which agent was recognised, and where to read what
// stays uncovered: once, and again when that has changed.
func (u *setup) sayAgent(environ []string) {
	k, e := u.Known, u.env
	if k == nil || u.Quiet || u.JSON {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: writes %s", k.Agent.Title, orNothing(inHome(e, u.config.AgentWrites())))
	if len(u.config.Guarded()) > 0 {
		b.WriteString(", but not its settings, hooks and extensions there")
	}
	if len(k.Agent.Sandbox.Off) > 0 && len(k.off) > 0 {
		b.WriteString("; its own sandbox is off, in favour of this one")
	}
	if k.silent {
		b.WriteString("; it asks nothing itself: Bawn asks about what leaves the sandbox")
	}
	if keys := k.readable(e, environ); len(keys) > 0 {
		fmt.Fprintf(&b, "; what it runs can read %s (bawn secret keeps keys out)", strings.Join(keys, ", "))
	}
	fmt.Fprintf(&b, " (said once; \"bawn agents %s\" says what is not covered)", k.Agent.Name)
	if news(e, "agent-"+k.Agent.Name, b.String()) {
		u.note(e, b.String())
	}
}

// withoutTries takes out refusals that the agent is known to live with.
func (k *Known) withoutTries(e *Env, denials []sandbox.Denial) []sandbox.Denial {
	if k == nil {
		return denials
	}
	home := filepath.Clean(e.Getenv("HOME"))
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	tries := k.Agent.ExpandAll(k.Agent.Files.Tries, agents.World{Home: home, Getenv: e.Getenv})
	return slices.DeleteFunc(denials, func(d sandbox.Denial) bool {
		return d.Kind == bawn.Filesystem && slices.ContainsFunc(tries, func(t string) bool { return d.Resource == t || strings.HasPrefix(d.Resource, t+".") })
	})
}

// readable are the keys of the agent that are in its environment as they are in
// the human's.
func (k *Known) readable(e *Env, environ []string) []string {
	var list []string
	for _, name := range k.Agent.Environment.Keys {
		if v := e.Getenv(name); v != "" && slices.Contains(environ, name+"="+v) {
			list = append(list, name)
		}
	}
	return list
}

func isLink(p string) bool {
	info, err := os.Lstat(p)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "nothing of its own"
	}
	return strings.Join(list, ", ")
}

// inHome shortens paths below the home directory.
func inHome(e *Env, list []string) []string {
	home := filepath.Clean(e.Getenv("HOME"))
	short := make([]string, len(list))
	for i, p := range list {
		short[i] = p
		if rest, ok := strings.CutPrefix(p, home+"/"); ok {
			short[i] = "~/" + rest
		}
	}
	return short
}

// An agentPlan is what --plan says of an agent that is known.
type agentPlan struct {
	Name      string   `json:"name"`
	Program   string   `json:"program"`
	Verified  string   `json:"verified_with,omitempty"` // the version
	Writes    []string `json:"writes"`
	Reads     []string `json:"reads,omitempty"`
	Guarded   []string `json:"guarded"`
	Private   []string `json:"private,omitempty"` // the session's own
	Protected []string `json:"protected_in_projects,omitempty"`
	Env       []string `json:"environment"`
	Models    []string `json:"models,omitempty"`
	Arguments []string `json:"arguments_added,omitempty"`
	Sandbox   string   `json:"own_sandbox,omitempty"`
	Uncovered []string `json:"uncovered,omitempty"`
}

func (u *setup) agentPlan() *agentPlan {
	k := u.Known
	if k == nil {
		return nil
	}
	return &agentPlan{
		Name: k.Agent.Name, Program: k.program, Verified: k.Agent.Version, Writes: u.config.AgentWrites(), Reads: k.profile.Open, Guarded: u.config.Guarded(), Private: k.profile.Private,
		Protected: k.Agent.Files.ProjectGuard, Env: k.profile.Env, Models: k.profile.Models, Arguments: k.off, Sandbox: k.Agent.Sandbox.Note, Uncovered: k.Agent.Uncovered,
	}
}
