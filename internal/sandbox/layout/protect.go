package layout

import (
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/protect"
)

// An Operation is a supervised call's operation on a name.
type Operation uint8

const (
	OpOpen Operation = iota // create a file or open one for writing
	OpMkdir
	OpRenameFrom
	OpRenameTo
	OpLinkFrom
	OpLinkTo
	OpSymlink
	OpMknod
	opTruncate
	OpBind
	OpRemove
)

// A Ruling is what becomes of a name. The zero ruling denies.
type Ruling uint8

const (
	RulingDeny  Ruling = iota
	RulingAllow        // go on
	RulingGit          // .git comes into being: as a private one, or not at all
)

// A Protector rules on names below the writable parts of the host.
type Protector struct {
	roots []string // absolute, clean
	// Absent are hidden places that were not there at the start, absolute:
	// no mount can cover them, so they must not come into being.
	Absent []string
	// Targets are where protected names lead that are links, absolute, be
	// they there or not.
	Targets []string
	Guarded []string // files that the agent obeys, absolute, existing or not
	Owned   []string // files, absolute, whose names are not protected
	Denied  []fspath.Pattern
	Open    bool     // no name is protected: isolation.protect is false
	Caches  []string // absolute, mounts of their own: no host's program works in there, and nothing is moved out
	Only    []string // where nothing else confines writes: the places they may go
	Places  []string // below the home directory, absolute, that the host executes or obeys
	// Projects are roots that hold no home directory: names of logins count at their
	// top alone (protect.Login).
	Projects []string
	names    *protect.Set
}

// NewProtector protects the names of the table, without those that opened names,
// and extra ones below roots.
func NewProtector(roots, extra, opened []string) *Protector {
	p := &Protector{names: protect.NewSet(extra, opened)}
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

// Rule returns what becomes of op on the absolute path, and the rule's name.
func (p *Protector) Rule(op Operation, abs string, isDir bool) (Ruling, string) {
	abs = path.Clean(abs)
	if p.Only != nil && !p.writable(abs) {
		return RulingDeny, RuleReadOnly
	}
	if touches(p.Absent, op, abs) || p.denies(abs) {
		return RulingDeny, "isolation:hidden"
	}
	if touches(p.Targets, op, abs) {
		return RulingDeny, "protected:target of a link"
	}
	if touches(p.Places, op, abs) {
		return RulingDeny, RulePlace
	}
	if touches(p.Guarded, op, abs) {
		return RulingDeny, RuleGuarded
	}
	if slices.Contains(p.Owned, abs) && !isDir && op != OpSymlink {
		return RulingAllow, ""
	}
	return p.ByName(op, abs, isDir)
}

// RuleGuarded is the rule by which files that an agent obeys stay unchanged.
const RuleGuarded = "protected:agent"

// ByName is Rule as far as it goes by how the path is spelled.
func (p *Protector) ByName(op Operation, abs string, isDir bool) (Ruling, string) {
	rel, ok := p.Relative(abs)
	if p.Open || !ok || p.InCache(abs) {
		return RulingAllow, ""
	}
	parts := p.Parts(rel)
	project := slices.Contains(p.Projects, p.Innermost(abs))
	for i, name := range parts {
		if rule := p.named(op, parts[i:], isDir, i == 0 || !project); rule != "" {
			return RulingDeny, rule
		}
		if name == ".git" {
			return gitRule(op, parts[i+1:])
		}
	}
	return RulingAllow, ""
}

// InCache reports whether a path lies in one of the caches, and not in a root below
// it, such as a workspace below a /tmp in memory.
func (p *Protector) InCache(abs string) bool {
	abs = path.Clean(abs)
	root := p.Innermost(abs)
	return slices.ContainsFunc(p.Caches, func(dir string) bool { return Below(abs, dir) && len(dir) >= len(root) })
}

// touches reports whether op would bring one of places about or change it: by
// its own name, by one below it, or with a directory above it.
func touches(places []string, op Operation, abs string) bool {
	return slices.ContainsFunc(places, func(p string) bool {
		if abs == p || Below(abs, p) {
			return true
		}
		whole := op == OpRenameTo || op == OpRenameFrom || op == OpSymlink || op == OpLinkTo
		return whole && Below(p, abs)
	})
}

// RuleReadOnly is the rule by which a write outside the writable places fails.
const RuleReadOnly = "isolation:read-only"

func (p *Protector) writable(abs string) bool {
	abs = path.Clean(abs)
	return slices.ContainsFunc(p.Only, func(dir string) bool { return abs == dir || Below(abs, dir) })
}

// Relative returns abs relative to the innermost root that holds it: somebody
// who names a protected directory with --rw means it.
func (p *Protector) Relative(abs string) (string, bool) {
	abs = path.Clean(abs)
	inner := p.Innermost(abs)
	return strings.TrimPrefix(abs, strings.TrimSuffix(inner, "/")+"/"), inner != ""
}

// Innermost returns the root that holds abs, or "".
func (p *Protector) Innermost(abs string) (inner string) {
	for _, root := range p.roots {
		if Below(abs, root) && len(root) > len(inner) {
			inner = root
		}
	}
	return inner
}

// Beside reports whether abs lies directly beside a writable place.
func (p *Protector) Beside(abs string) bool {
	return slices.ContainsFunc(p.roots, func(root string) bool { return root != "/" && path.Dir(root) == path.Dir(abs) })
}

// Rules on git directories of the host: those called .git, and others, which git
// knows by their contents.
const (
	RuleGit  = "protected:.git"
	RuleBare = "protected:bare repository"
)

// gitRule rules on a path below an entry called .git of the host, where no guest
// writes anything; rest is empty for .git itself.
func gitRule(op Operation, rest []string) (Ruling, string) {
	if len(rest) == 0 && (op == OpMkdir || op == OpOpen) {
		return RulingGit, RuleGit
	}
	return RulingDeny, RuleGit
}
