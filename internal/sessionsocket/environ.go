//go:build linux || darwin

package sessionsocket

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn"
)

// An Environ makes a command's environment from the guest's: the execution
// zone's variables, and the guest's changes since it was started.
type Environ struct {
	Reasoning []string // the guest's environment at its start, NAME=value
	Execution []string // what commands of the execution zone are given, NAME=value
	// Never reports values that may not leave the reasoning zone: a
	// placeholder, or the name of one of its secrets. Nil is nothing at all
	// leaves.
	Never func(name, value string) bool
}

// maxProbes bounds the remembered variables.
const maxProbes = 1024

// A probe remembers which variables a line may set without being asked about,
// and in which directory. A guest's variable may be as large as its message, so
// only a digest of each is kept: 64 KiB for all of them, not a gigabyte.
type probe struct {
	mu   sync.Mutex
	seen map[[sha256.Size]byte]bool
}

// probed is the digest of a variable in a directory. No text holds a zero byte:
// check has refused it.
func probed(dir, kv string) [sha256.Size]byte { return sha256.Sum256([]byte(dir + "\x00" + kv)) }

// steering are prefixes of variables that choose which programs run, what they load
// or where they look: the zone's own stay.
var steering = []string{"PATH", "HOME", "SHELL", "PWD", "IFS", "ENV", "BASH", "LD_", "DYLD_", "GIT_", "SSH_", "NODE_", "NPM_", "PYTHON", "PERL", "RUBY", "JAVA", "JDK_", "MAVEN_", "CC", "CXX", "EDITOR", "VISUAL", "LESS", "PS4", "PROMPT_"}

// plain reports whether a variable's value is a short text that names no program and no
// path, and its name does not steer programs.
func plain(kv string) bool {
	name, value, _ := strings.Cut(kv, "=")
	return len(value) <= 64 && !strings.ContainsAny(value, "/`$();|&<>\"'\n") && !strings.HasPrefix(value, "-") &&
		!slices.ContainsFunc(steering, func(s string) bool { return strings.HasPrefix(strings.ToUpper(name), s) })
}

// free reports whether the policy lets a command line set the variable without
// asking anybody.
func (p *probe) free(ctx context.Context, decider bawn.Decider, a bawn.Action, kv string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := probed(a.Dir, kv)
	if ok, known := p.seen[key]; known {
		return ok
	}
	a.Kind, a.Operation, a.Resource, a.Args = bawn.Command, bawn.Exec, "export "+assignments([]string{kv}), nil
	d, err := decider.Decide(ctx, a)
	if p.seen == nil || len(p.seen) >= maxProbes {
		p.seen = map[[sha256.Size]byte]bool{}
	}
	p.seen[key] = err == nil && d.Verdict == bawn.Allow
	return p.seen[key]
}

// A carried environment is one on its way into the execution zone.
type carried struct {
	env  []string  // all of it, except what a decision adds
	vars variables // what differs from the zone's own and may be used by a line
	lost []string  // names that were left behind
}

// carry takes over the variables that the guest has set since it was started, if
// free permits them: a variable that needs no question, or one that the line sets
// by name, since the line's judge sees it. Variables that Never names are not taken
// over.
func (e *Environ) carry(guest []string, free func(kv string) bool) carried {
	own, began := parse(e.Execution), parse(e.Reasoning)
	c := carried{vars: variables{}}
	now := parse(guest)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		value := now[name]
		if old, had := began[name]; had && old == value || own[name] == value || name == "TERM" && value == "" {
			continue
		}
		kv := name + "=" + value
		switch {
		case e.Never == nil || e.Never(name, value) || slices.Contains(known, name) && name != "TERM" && name != "LANG":
			c.lost = append(c.lost, name)
		case !isName(name) || !free(kv):
			c.lost = append(c.lost, name)
		default:
			own[name], c.vars[name] = value, value
		}
	}
	for name, old := range began {
		if _, still := now[name]; !still && own[name] == old && !slices.Contains(known, name) {
			delete(own, name) // the guest has unset it
		}
	}
	c.env = list(own)
	return c
}

// parse makes a map of NAME=value, in which the first of a name counts.
func parse(env []string) map[string]string {
	out := make(map[string]string, len(env))
	for _, kv := range env {
		name, value, set := strings.Cut(kv, "=")
		if _, twice := out[name]; set && name != "" && !twice {
			out[name] = value
		}
	}
	return out
}

func list(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// with sets further variables, which win.
func with(env, more []string) []string {
	if len(more) == 0 {
		return env
	}
	all := parse(env)
	maps.Copy(all, parse(more))
	return list(all)
}

// ofShell are variables that a shell itself changes, and that move nothing.
var ofShell = []string{"PWD", "OLDPWD", "SHLVL"}

// kept is the environment that a statement leaves to its shell. It excludes
// what a decision added, and what the statement set without judgement (a
// function from a file, PATH from a file): the next statement is judged without
// those.
func kept(after, added, before []string, judged func(kv string) bool) []string {
	had, now := parse(before), parse(after)
	back := func(name string) {
		delete(now, name)
		if old, was := had[name]; was {
			now[name] = old
		}
	}
	for name, value := range now {
		if old, was := had[name]; was && old == value || slices.Contains(ofShell, name) {
			continue
		}
		if !isName(name) || !judged(name+"="+value) {
			back(name)
		}
	}
	for _, kv := range added {
		if name, value, _ := strings.Cut(kv, "="); now[name] == value {
			back(name)
		}
	}
	return list(now)
}

// changed are the variables of a statement's shell that differ from the zone's
// own.
func (e *Environ) changed(env []string) variables {
	own, out := parse(e.Execution), variables{}
	for name, value := range parse(env) {
		if old, had := own[name]; (!had || old != value) && !slices.Contains(known, name) {
			out[name] = value
		}
	}
	return out
}
