package native

import (
	"path"
	"slices"
	"strings"

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
	rulingDeny    ruling = iota
	rulingAllow          // go on
	rulingGitfile        // .git of a worktree: the supervisor writes it itself
	rulingCommon         // commondir of a worktree: likewise
	rulingNewLock        // config.lock: only in a repository that has no config of the host's
	rulingNewFile        // config: likewise, and only with inert contents
	rulingOwn            // may be removed if the session made the git directory
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
	if touches(p.absent, op, path.Clean(abs)) {
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
	if !ok || slices.ContainsFunc(p.caches, func(dir string) bool { return below(path.Clean(abs), dir) }) {
		return rulingAllow, ""
	}
	parts := p.parts(rel)
	for i, name := range parts {
		if rule := p.named(op, parts[i:], isDir); rule != "" {
			return rulingDeny, rule
		}
		if name == ".git" {
			return gitRule(op, parts[i+1:], isDir)
		}
	}
	return rulingAllow, ""
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

// gitData are the parts of a git directory in which names are data: objects,
// branches called "hooks", reflogs.
var gitData = map[string]bool{"objects": true, "refs": true, "logs": true, "lfs": true, "annex": true}

// gitStructure are directories of a git directory that hold what git executes
// or obeys.
var gitStructure = map[string]bool{"hooks": true, "info": true, "modules": true, "worktrees": true}

// gitNames are the names below a git directory that are ruled on.
var gitNames = map[string]bool{
	"hooks": true, "config": true, "config.lock": true, freshConfig: true, "config.worktree": true, "config.worktree.lock": true,
	"commondir": true, "info": true, "modules": true, "worktrees": true, "head": true, "objects": true, "refs": true, "logs": true,
}

// gitBranches are directories of a git directory whose entries bear the names
// of branches: there is a HEAD in refs/remotes/origin, and a branch may be
// called config. Below them it takes more than a HEAD to be a git directory.
var gitBranches = map[string]bool{"refs": true, "logs": true}

// gitRule rules on a path below a directory called .git; rest is empty for
// .git itself. Git must keep working: it may write what is data, and never
// what the next git command on the host would execute or obey.
func gitRule(op operation, rest []string, isDir bool) (ruling, string) {
	const rule = "protected:.git"
	if len(rest) == 0 {
		switch op {
		case opMkdir, opRemove:
			return rulingAllow, ""
		case opOpen:
			return rulingGitfile, rule
		}
		return rulingDeny, rule
	}
	if len(rest) == 1 && gitParts[rest[0]] {
		return partRule(op, rest[0], isDir)
	}
	if gitData[rest[0]] {
		return rulingAllow, ""
	}
	if isDir && (op == opRenameFrom || op == opRenameTo) || op == opSymlink && len(rest) > 1 {
		return rulingDeny, rule + "/" + rest[0]
	}
	if gitStructure[rest[0]] && len(rest) == 1 && op != opMkdir && op != opRemove {
		return rulingDeny, rule + "/" + rest[0] // only ever a real directory, made in its place
	}
	switch rest[0] {
	case "modules":
		return moduleRule(op, rest[1:])
	case "worktrees":
		return worktreeRule(op, rest[1:])
	}
	return gitDirRule(op, rest)
}

// gitParts are what a directory needs to be a git directory. Without one of
// them git obeys another repository, around or beside this one.
var gitParts = map[string]bool{"head": true, "objects": true, "refs": true}

// partRule rules on those themselves. HEAD is replaced by a rename.
func partRule(op operation, name string, isDir bool) (ruling, string) {
	switch {
	case op == opRemove:
		return rulingOwn, "protected:.git/" + name
	case op == opRenameFrom, op == opRenameTo && (isDir || name != "head"):
		return rulingDeny, "protected:.git/" + name
	}
	return rulingAllow, ""
}

// gitObeyed are files of a git directory that say what git executes or where
// it looks.
var gitObeyed = map[string]bool{"config": true, "config.lock": true, "config.worktree": true, "config.worktree.lock": true, "commondir": true, freshConfig: true}

// freshConfig is the name under which the supervisor writes a configuration
// before it puts it in its place.
const freshConfig = "config.lock.bawn"

// gitDirRule rules on the entries of one git directory.
func gitDirRule(op operation, rest []string) (ruling, string) {
	name := rest[0]
	rule := "protected:.git/" + name
	sample := name == "hooks" && (op == opOpen || op == opRemove) && len(rest) == 2 && strings.HasSuffix(rest[1], ".sample")
	if op == opRemove && !sample && (name == "hooks" && len(rest) > 1 || gitObeyed[name]) {
		return rulingOwn, rule
	}
	switch name {
	case "hooks":
		if sample || len(rest) == 1 && (op == opMkdir || op == opRemove) {
			return rulingAllow, "" // git never runs a .sample; git init wants them
		}
		return rulingDeny, rule
	case "config.lock":
		if op == opOpen || op == opRenameFrom {
			return rulingNewLock, rule
		}
		return rulingDeny, rule
	case "config":
		if op == opRenameTo {
			return rulingNewFile, rule
		}
		return rulingDeny, rule
	case "config.worktree", "config.worktree.lock", "commondir", freshConfig:
		return rulingDeny, rule
	case "info":
		if len(rest) > 1 && rest[1] == "attributes" {
			return rulingDeny, rule + "/attributes"
		}
	}
	return rulingAllow, ""
}

// moduleRule rules on .git/modules: a submodule's name may hold slashes, so
// any component could be the start of a git directory.
func moduleRule(op operation, rest []string) (ruling, string) {
	for i, name := range rest {
		switch name {
		case "hooks", "config", "config.lock", "config.worktree", "config.worktree.lock", "commondir", freshConfig:
			return rulingDeny, "protected:.git/modules/" + name
		case "info":
			if i+1 < len(rest) && rest[i+1] == "attributes" {
				return rulingDeny, "protected:.git/modules/info/attributes"
			}
		}
	}
	return rulingAllow, ""
}

// worktreeRule rules on .git/worktrees/ID.
func worktreeRule(op operation, rest []string) (ruling, string) {
	if len(rest) == 1 && op != opMkdir && op != opRemove {
		return rulingDeny, "protected:.git/worktrees"
	}
	if len(rest) < 2 {
		return rulingAllow, ""
	}
	if rest[1] == "commondir" && len(rest) == 2 {
		switch op {
		case opOpen:
			return rulingCommon, "protected:.git/worktrees/commondir"
		case opRemove:
			return rulingAllow, ""
		}
	}
	if rest[1] == "modules" {
		return moduleRule(op, rest[2:])
	}
	if rest[1] == "logs" || rest[1] == "refs" {
		return rulingAllow, ""
	}
	return gitDirRule(opRulingForWorktree(op), rest[1:])
}

// opRulingForWorktree keeps a worktree's git directory from ever having a
// config of its own: it shares the repository's.
func opRulingForWorktree(op operation) operation {
	if op == opRenameTo {
		return opLinkTo
	}
	return op
}
