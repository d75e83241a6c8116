package supervise

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// A verdict is what becomes of a name in the place where it is.
type verdict struct {
	ruling layout.Ruling
	rule   string
	part   bool // the name is one that may make a git directory of its directory
}

// gitDirs are the directories of a git directory.
var gitDirs = map[string]bool{
	"hooks": true, "info": true, "objects": true, "refs": true, "logs": true, "modules": true, "worktrees": true, "branches": true, "remotes": true,
	"rebase-merge": true, "rebase-apply": true, "sequencer": true, "rr-cache": true, "lfs": true, "annex": true,
}

// rule rules on a name by its spelling, and then by where it lies. Git
// recognises a git directory by its contents, whatever it is called
// (gitrepository-layout(5)). So an existing one can't be changed, and the name
// that would complete one can't be made. A guest makes no directory in one
// either, so that only those that git makes need a look.
func (c *call) rule(op layout.Operation, p place, isDir bool) verdict {
	abs := p.abs
	r, rule := c.s.names.Rule(op, abs, isDir)
	v := verdict{ruling: r, rule: rule}
	rel, ok := c.s.names.Relative(abs)
	if r != layout.RulingAllow || !ok || c.s.names.Open || c.s.names.InCache(abs) {
		return v
	}
	at, parts := len(abs)-len(rel), strings.Split(rel, "/")
	for i, part := range parts {
		name, last := firstPart(c.s.names, part), i == len(parts)-1
		if last || gitDirs[name] {
			v.part = last && isPart(op, name)
			if c.isGit(p, abs[:max(at-1, 1)], name, v.part) {
				return verdict{ruling: layout.RulingDeny, rule: layout.RuleBare}
			}
		}
		at += len(part) + 1
	}
	return v
}

// isPart reports whether op may make a git directory of the one that holds a name.
func isPart(op layout.Operation, name string) bool {
	return gitParts[name] && op != layout.OpRemove && op != layout.OpRenameFrom && op != layout.OpLinkFrom
}

// isGit reports whether dir, a directory above p, is one for git, or would be with
// one more name in it. One that can't be read, if only for a moment, counts.
func (c *call) isGit(p place, dir, name string, more bool) bool {
	fd := p.dir
	if p.name == "" || len(dir)+len("/")+len(p.name) != len(p.abs) { // not the one that is open
		var err error
		if fd, err = c.openReal(dir); err != nil {
			return true
		}
		defer unix.Close(fd)
	}
	return isRepository(fd, "") || more && isRepository(fd, name)
}

// firstPart is the first of the parts that one component stands for: a backslash
// may make several of it.
func firstPart(p *layout.Protector, component string) string {
	n, _, _ := strings.Cut(layout.Fold(component), "/")
	return p.Name(n)
}

// openReal opens a directory of the guest by a path without links.
func (c *call) openReal(dir string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_DIRECTORY, Resolve: resolveGuest | unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(c.s.root, dir, &how)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		return fd, err
	}
}

// hasHead reports whether an open directory holds a HEAD that git may obey.
func hasHead(dir int) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, "HEAD", &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == unix.ENOENT {
		return false, nil
	}
	return st.Mode&unix.S_IFMT == unix.S_IFREG || st.Mode&unix.S_IFMT == unix.S_IFLNK, err
}

// isRepository reports whether git would take an open directory for a git
// directory if it held one more name, folded.
func isRepository(dir int, more string) bool {
	has := func(name string) bool {
		return strings.ToLower(name) == more || unix.Faccessat2(dir, name, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) != unix.ENOENT
	}
	head, err := hasHead(dir)
	return (head || err != nil || more == "head") && (has("commondir") || has("objects") && has("refs"))
}

// settle looks again once a name is there: another session, which this one's
// supervisor does not hold up, may have done its part of a git directory in
// between. The second one undoes its own change. A HEAD on whose opening git
// would wait is undone as well.
func (c *call) settle(v verdict, op layout.Operation, abs string, undo func() error) error {
	if !v.part {
		return nil
	}
	dir := path.Dir(abs)
	fd, err := c.openReal(dir)
	if err == nil {
		defer unix.Close(fd)
		var st unix.Stat_t
		special := unix.Fstatat(fd, "HEAD", &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR
		if head, err := hasHead(fd); err == nil && (head || !special) && !isRepository(fd, "") {
			return nil
		}
	}
	_ = undo() // refused in any case
	return c.denied(op, abs, layout.RuleBare)
}

// gitParts are the names by which git takes a directory for a git directory.
var gitParts = map[string]bool{"head": true, "objects": true, "refs": true, "commondir": true}
