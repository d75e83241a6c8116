package native

import (
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/protect"
)

// operation is what a supervised call wants to do with a name.
type operation uint8

const (
	opOpen operation = iota // create a file or open one for writing
	opMkdir
	opRenameFrom
	opRenameTo
	opLinkFrom
	opLinkTo
	opSymlink
	opMknod
	opTruncate
	opBind
	opRemove
)

// ruling is what becomes of a name. The zero ruling denies.
type ruling uint8

const (
	rulingDeny  ruling = iota
	rulingAllow        // go on
	rulingGit          // .git comes into being: as a private one, or not at all
)

// protector rules on names below the writable parts of the host.
type protector struct {
	roots []string // absolute, clean
	// absent are hidden places that were not there at the start, absolute:
	// no mount can cover them, so they must not come into being.
	absent []string
	// targets are where protected names lead that are links, absolute, be
	// they there or not.
	targets []string
	guarded []string // what the agent obeys, absolute, be it there or not
	owned   []string // files, absolute, whose names are not protected
	denied  []fspath.Pattern
	open    bool     // no name is protected: isolation.protect is false
	caches  []string // absolute, mounts of their own: no host's program works in there, and nothing is moved out
	only    []string // where nothing else confines writes: the places they may go
	places  []string // below the home directory, absolute, that the host executes or obeys
	names   *protect.Set
}

// newProtector protects the names of the table, without those that opened names,
// and extra ones below roots.
func newProtector(roots, extra, opened []string) *protector {
	p := &protector{names: protect.NewSet(extra, opened)}
	for _, root := range roots {
		p.roots = append(p.roots, protectedBase(root))
	}
	return p
}

// protectedBase is where names below a writable root are counted from: a git
// directory that is writable by itself is still called .git.
func protectedBase(root string) string {
	if path.Base(root) == ".git" {
		return path.Dir(root)
	}
	return root
}

// rule returns what becomes of op on the absolute path, and the rule's name.
func (p *protector) rule(op operation, abs string, isDir bool) (ruling, string) {
	if p.only != nil && !p.writable(abs) {
		return rulingDeny, RuleReadOnly
	}
	if touches(p.absent, op, path.Clean(abs)) || p.denies(abs) {
		return rulingDeny, "isolation:hidden"
	}
	if touches(p.targets, op, path.Clean(abs)) {
		return rulingDeny, "protected:target of a link"
	}
	if touches(p.places, op, path.Clean(abs)) {
		return rulingDeny, rulePlace
	}
	if touches(p.guarded, op, path.Clean(abs)) {
		return rulingDeny, RuleGuarded
	}
	if slices.Contains(p.owned, path.Clean(abs)) && !isDir && op != opSymlink {
		return rulingAllow, ""
	}
	return p.byName(op, abs, isDir)
}

// RuleGuarded is the rule by which what an agent obeys stays as it is.
const RuleGuarded = "protected:agent"

// byName is rule as far as it goes by how the path is spelled.
func (p *protector) byName(op operation, abs string, isDir bool) (ruling, string) {
	rel, ok := p.relative(abs)
	if p.open || !ok || p.inCache(abs) {
		return rulingAllow, ""
	}
	parts := p.parts(rel)
	for i, name := range parts {
		if rule := p.named(op, parts[i:], isDir); rule != "" {
			return rulingDeny, rule
		}
		if name == ".git" {
			return gitRule(op, parts[i+1:])
		}
	}
	return rulingAllow, ""
}

// inCache reports whether a path lies in one of the caches, and not in a root below
// it, such as a workspace below a /tmp in memory.
func (p *protector) inCache(abs string) bool {
	abs = path.Clean(abs)
	root := p.innermost(abs)
	return slices.ContainsFunc(p.caches, func(dir string) bool { return below(abs, dir) && len(dir) >= len(root) })
}

// touches reports whether op would bring one of places about or change it: by
// its own name, by one below it, or with a directory above it.
func touches(places []string, op operation, abs string) bool {
	return slices.ContainsFunc(places, func(p string) bool {
		if abs == p || below(abs, p) {
			return true
		}
		whole := op == opRenameTo || op == opRenameFrom || op == opSymlink || op == opLinkTo
		return whole && below(p, abs)
	})
}

// RuleReadOnly is the rule by which a write outside the writable places fails.
const RuleReadOnly = "isolation:read-only"

func (p *protector) writable(abs string) bool {
	abs = path.Clean(abs)
	return slices.ContainsFunc(p.only, func(dir string) bool { return abs == dir || below(abs, dir) })
}

// relative returns abs relative to the innermost root that holds it: who names
// a protected directory with --rw means it.
func (p *protector) relative(abs string) (string, bool) {
	abs = path.Clean(abs)
	inner := p.innermost(abs)
	return strings.TrimPrefix(abs, strings.TrimSuffix(inner, "/")+"/"), inner != ""
}

// innermost returns the root that holds abs, or "".
func (p *protector) innermost(abs string) (inner string) {
	for _, root := range p.roots {
		if below(abs, root) && len(root) > len(inner) {
			inner = root
		}
	}
	return inner
}

// Rules on git directories of the host: those called .git, and others, which git
// knows by what they hold.
const (
	RuleGit  = "protected:.git"
	RuleBare = "protected:bare repository"
)

// gitRule rules on a path below an entry called .git of the host, where no guest
// writes anything; rest is empty for .git itself.
func gitRule(op operation, rest []string) (ruling, string) {
	if len(rest) == 0 && (op == opMkdir || op == opOpen) {
		return rulingGit, RuleGit
	}
	return rulingDeny, RuleGit
}
