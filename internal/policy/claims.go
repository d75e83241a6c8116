package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/hostname"
)

// A verb is what a part does to a path.
type verb uint8

const (
	_          verb = iota
	looks           // a path's name or metadata
	reads           // a file's content
	readsBelow      // the content of everything below a path
	writes          // creates or changes a file
	deletes         // removes a path
	executes        // runs a file
)

var verbNames = []string{"", "look at", "read", "read below", "write", "delete", "execute"}

// String returns the verb in words.
func (v verb) String() string { return verbNames[v] }

// UseIn reads the path or host that a step of a trace is about, and what is done to it.
func UseIn(s bawn.Step) (target string, kind bawn.Kind, op bawn.Operation, ok bool) {
	said, isUse := strings.CutPrefix(s.Why, "to ")
	if !isUse || s.Stage != stageClaim {
		return "", 0, 0, false
	}
	said, _, _ = strings.Cut(said, ": ")
	if host, found := strings.CutPrefix(said, "connect to "); found {
		return host, bawn.Network, bawn.Connect, true
	}
	for v := readsBelow; v <= executes; v++ {
		if target, ok = strings.CutPrefix(said, v.String()+" "); ok {
			return target, bawn.Filesystem, operationOf(v), true
		}
	}
	for v := looks; v <= reads; v++ {
		if target, ok = strings.CutPrefix(said, v.String()+" "); ok {
			return target, bawn.Filesystem, bawn.Read, true
		}
	}
	return "", 0, 0, false
}

// A use is one thing that a part does to a path.
type use struct {
	verb    verb
	path    string // clean and absolute, or a pattern of such paths
	pattern bool
}

// usePath judges a use of a path by the same rules as a file tool's path, and
// lowers the judgement of its part.
func (p *Policy) usePath(q *Question, j *judgement, u use) {
	p.eachName(u, func(name string) {
		u.path = name
		p.usePathAs(q, j, u)
	})
}

// eachName calls f with the path as written and, where links lead elsewhere, with where
// it is.
func (p *Policy) eachName(u use, f func(name string)) {
	f(u.path)
	if p.resolve == nil || u.pattern {
		return
	}
	if real := p.resolve(u.path); real != u.path {
		f(real)
	}
}

func (p *Policy) usePathAs(q *Question, j *judgement, u use) {
	op := operationOf(u.verb)
	inner := &judgement{quiet: true}
	v, why := q.pathDefault(u)
	inside := q.Action.Kind == bawn.Command && Change.Contains(q.Contained)
	if v == bawn.Ask && inside {
		v, why = bawn.Allow, why+": the kernel decides"
	}
	inner.set(stageDefault, v, RulePath, bawn.Builtin, why)
	if u.verb != looks {
		rules := p.rulesFor(q, op, u)
		rules.decide(inner)
	}
	if pr, ok := p.known().protectedBy(q, opFor(u.verb, op), u.path, u.pattern); ok && !harmlessLook(u.verb, pr) && !(inside && pr.verdict(u) == bawn.Ask) {
		inner.lower(stageProtected, pr.verdict(u), "builtin:protected:"+pr.pattern, bawn.Builtin, pr.remedy())
		j.fixed = true
	}
	if reachesProtected(q, u) && !Read.Contains(q.Contained) {
		inner.lower(stageProtected, bawn.Ask, "builtin:protected-below", bawn.Builtin, "it reaches protected paths below "+u.path)
		j.fixed = true
	}
	j.fixed = j.fixed || inner.verdict < bawn.Allow // only what a command is, not what it is done to, is learned
	j.lower(stageClaim, inner.verdict, inner.rule, inner.source, "to "+u.verb.String()+" "+u.path+": "+inner.reason)
}

// opFor is the operation that a protection is asked about: looking at a name
// counts as reading.
func opFor(v verb, op bawn.Operation) bawn.Operation {
	if v == looks {
		return bawn.Read
	}
	return op
}

// harmlessLook: what is protected against writing, or readable system
// configuration, may be looked at.
func harmlessLook(v verb, pr *protection) bool {
	return v == looks && !pr.reads
}

// rulesFor finds the rules about a path, or about what a pattern of paths
// could match. A file system that ignores the case of letters may hold what
// the built-in rules warn of under another spelling.
func (p *Policy) rulesFor(q *Question, op bawn.Operation, u use) verdicts {
	var w verdicts
	lower := strings.ToLower(u.path)
	for _, name := range slices.Compact([]string{u.path, lower}) {
		p.table.paths.each(name, func(r *rule) bool {
			folded := r.Source == bawn.Builtin && len(r.Operations) == 0
			if r.counts(q) && r.speaksOf(op) && (name == u.path || folded) && r.matchesPath(q, name) {
				w.add(r)
			}
			return true
		})
	}
	if u.pattern {
		for _, r := range p.table.paths.list {
			if r.counts(q) && r.speaksOf(op) && r.couldMatch(u.path) {
				w.add(r)
			}
		}
	}
	return w
}

func operationOf(v verb) bawn.Operation {
	switch v {
	case looks, reads, readsBelow:
		return bawn.Read
	case deletes:
		return bawn.Delete
	case executes:
		return bawn.Exec
	}
	return bawn.Write
}

// devices that a redirection may name.
var devices = map[string]bool{
	"/dev/null": true, "/dev/stdin": true, "/dev/stdout": true, "/dev/stderr": true, "/dev/tty": true,
}

// pathDefault is the verdict on a use of a path where no rule speaks.
func (q *Question) pathDefault(u use) (bawn.Verdict, string) {
	device := strings.HasPrefix(u.path, "/dev/")
	switch {
	case devices[u.path] || u.path == "/dev/fd" || strings.HasPrefix(u.path, "/dev/fd/"):
		return bawn.Allow, "a standard stream"
	case device && u.verb != looks && u.path != "/dev":
		return bawn.Ask, "a device"
	case u.verb == looks, u.verb == reads, u.verb == readsBelow:
		return bawn.Allow, "reading"
	case q.inWorkspace(u.path):
		return bawn.Allow, "in the workspace"
	case scratch(u.path) && u.verb != executes:
		return bawn.Allow, "a place for temporary files"
	}
	return bawn.Ask, "outside the workspace"
}

// inWorkspace reports whether p lies in the workspace. A workspace that holds the
// home directory, or is the root, does not count.
func (q *Question) inWorkspace(p string) bool {
	w := q.Workspace
	return w != "" && w != "/" && !fspath.Below(q.Home, w) && fspath.Below(p, w)
}

// scratch reports whether p lies below a directory for temporary files.
func scratch(p string) bool {
	return (fspath.Below(p, "/tmp") && p != "/tmp") || (fspath.Below(p, "/var/tmp") && p != "/var/tmp")
}

// reachesProtected reports whether reading everything below a path reads a
// home directory or the system's configuration.
func reachesProtected(q *Question, u use) bool {
	if u.verb != readsBelow {
		return false
	}
	p := u.path
	if q.Workspace != "" && q.inWorkspace(p) {
		return false
	}
	for _, h := range []string{q.Home, "/root", "/etc", "/proc", "/home", "/Users", "/run", "/var/run"} {
		if h != "" && h != "/" && fspath.Below(h, p) {
			return true
		}
	}
	dir := path.Dir(p)
	return dir == "/home" || dir == "/Users"
}

// useHost judges a connection.
func (p *Policy) useHost(q *Question, j *judgement, target string) {
	inner := begin(target)
	host, _, port, err := hostname.Split(target)
	if err != nil {
		j.lower(stageClaim, bawn.Ask, "builtin:host", bawn.Builtin, err.Error())
		j.fixed = true
		return
	}
	p.judgeHost(q, inner, host, port)
	j.fixed = j.fixed || inner.verdict < bawn.Allow
	j.lower(stageClaim, inner.verdict, inner.rule, inner.source, "to connect to "+host+": "+inner.reason)
}

// judgeHost judges a host in normal form by the table and the rules.
func (p *Policy) judgeHost(q *Question, j *judgement, host string, port string) {
	v, why := q.base(part{effect: NewHost, sends: true})
	if v > bawn.Deny || q.Autonomy > bawn.AutonomyNone {
		why = "no rule names the host " + host
	}
	j.set(stageDefault, v, "builtin:host", bawn.Builtin, why)
	rules := p.rulesForHost(q, host, port)
	rules.decide(j)
}

// rulesForHost finds the rules about a host in normal form.
func (p *Policy) rulesForHost(q *Question, host, port string) verdicts {
	lists := [2][]*rule{p.table.hosts[domain(host)], p.table.hosts[""]}
	return winner(q, lists, bawn.Connect, func(r *rule) bool {
		return hostname.Match(r.host, host) && (r.port == "" || r.port == port)
	})
}
