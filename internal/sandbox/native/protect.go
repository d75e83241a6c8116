package native

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/fspath"
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

// protectedNames are files and directories which programs on the host execute
// or obey when somebody merely works in the directory that holds them (K6).
// Everything with such a name is protected, at any depth, with all below it.
var protectedNames = []string{
	// Editors: tasks, debug configurations, settings that name programs.
	".vscode", ".idea", ".zed", ".fleet", ".devcontainer", ".devcontainer.json", ".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".gdbinit", ".lldbinit",
	// Agents: hooks, MCP servers, permissions.
	".claude", ".claude.json", ".codex", ".gemini", ".cursor", ".opencode", ".qwen", ".copilot", ".cline", ".windsurf", ".kiro", ".roo", ".continue", ".aider.conf.yml", ".mcp.json", ".bawn",
	".pi", ".amp", ".crush.json", "crush.json", ".opencode.json", "opencode.json", "opencode.jsonc", ".clinerules", ".agents",
	// Programs that run on entering a directory or on a commit.
	".envrc", ".husky", ".githooks",
	// Shells and git.
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".gitconfig", ".inputrc", ".tmux.conf",
	// Logins.
	".ssh", ".pam_environment", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc",
}

// protectedBelow are directories of which only some entries are protected.
var protectedBelow = map[string][]string{
	".koda":   {"agents", "skills"},
	".github": {"hooks"},
	".config": {"fish", "git", "nvim", "systemd", "autostart", "environment.d"},
	".local":  {"bin"},
}

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
	names   map[string]bool
	below   map[string]map[string]bool
}

// newProtector protects the built-in names and extra ones below roots.
func newProtector(roots, extra []string) *protector {
	p := &protector{names: map[string]bool{}, below: map[string]map[string]bool{}}
	for _, root := range roots {
		p.roots = append(p.roots, protectedBase(root))
	}
	for _, n := range append(append([]string(nil), protectedNames...), extra...) {
		if dir, entry, ok := strings.Cut(fold(n), "/"); ok {
			entry, _, _ = strings.Cut(entry, "/")
			p.addBelow(dir, entry)
		} else {
			p.names[dir] = true
		}
	}
	for dir, entries := range protectedBelow {
		for _, e := range entries {
			p.addBelow(dir, e)
		}
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

func (p *protector) addBelow(dir, entry string) {
	if p.below[dir] == nil {
		p.below[dir] = map[string]bool{}
	}
	p.below[dir][entry] = true
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
	if touches(p.guarded, op, path.Clean(abs)) {
		return rulingDeny, RuleGuarded
	}
	if slices.Contains(p.owned, path.Clean(abs)) && !isDir && op != opSymlink {
		return rulingAllow, ""
	}
	return p.byName(op, abs)
}

// RuleGuarded is the rule by which what an agent obeys stays as it is.
const RuleGuarded = "protected:agent"

// byName is rule as far as it goes by how the path is spelled.
func (p *protector) byName(op operation, abs string) (ruling, string) {
	rel, ok := p.relative(abs)
	if p.open || !ok || p.inCache(abs) {
		return rulingAllow, ""
	}
	parts := p.parts(rel)
	for i, name := range parts {
		last := i == len(parts)-1
		switch {
		case p.names[name]:
			return rulingDeny, "protected:" + name
		case p.below[name] != nil && last && op != opMkdir && op != opOpen && op != opRemove:
			return rulingDeny, "protected:" + name
		case p.below[name] != nil && !last && p.below[name][parts[i+1]]:
			return rulingDeny, fmt.Sprintf("protected:%s/%s", name, parts[i+1])
		case name == ".git":
			return gitRule(op, parts[i+1:])
		}
	}
	return rulingAllow, ""
}

// inCache reports whether a path lies in one of the caches.
func (p *protector) inCache(abs string) bool {
	return slices.ContainsFunc(p.caches, func(dir string) bool { return below(path.Clean(abs), dir) })
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

// gitParts are the names by which git takes a directory for a git directory.
var gitParts = map[string]bool{"head": true, "objects": true, "refs": true, "commondir": true}

// gitRule rules on a path below an entry called .git of the host, where no guest
// writes anything; rest is empty for .git itself.
func gitRule(op operation, rest []string) (ruling, string) {
	if len(rest) == 0 && (op == opMkdir || op == opOpen) {
		return rulingGit, RuleGit
	}
	return rulingDeny, RuleGit
}

// ProtectedNames lists the built-in names of K6, for providers that have no
// supervisor: a name at any depth of a writable place, or one below another,
// such as ".github/hooks". That of git's own directory is not among them.
func ProtectedNames() []string {
	list := slices.Clone(protectedNames)
	for dir, entries := range protectedBelow {
		for _, e := range entries {
			list = append(list, dir+"/"+e)
		}
	}
	slices.Sort(list)
	return list
}
