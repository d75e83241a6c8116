package native

import (
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// gitInner are directories of a git directory below which names are ruled on
// by that directory alone.
var gitInner = map[string]bool{"hooks": true, "modules": true, "worktrees": true}

// A verdict is what becomes of a name in the place where it is, with the git
// directory that decided, or that the name may make of a directory.
type verdict struct {
	ruling ruling
	rule   string
	git    string // real path, or ""
	state  layout
}

// A layout is how a directory looks that git might take for its own without
// its being called .git (gitrepository-layout(5)). Git goes by what it holds:
// a HEAD, which is a file or a link, and objects and refs, which may be
// anything, in it or elsewhere. So HEAD is what counts here.
type layout uint8

const (
	layoutPlain    layout = iota // nothing that git or the name concerns
	layoutAlmost                 // no HEAD, but the name is one git would obey beside it
	layoutComplete               // no HEAD, and the name is HEAD
	layoutGit
	layoutUnknown // it can't be looked at, if only for a moment
)

// rule rules on a name by its spelling, and then by where it lies: bare
// repositories, the directories that a .git file points at, and whatever else
// git would take for a git directory.
func (c *call) rule(op operation, abs string, isDir bool) verdict {
	r, rule := c.s.names.rule(op, abs, isDir)
	v := verdict{ruling: r, rule: rule}
	rel, ok := c.s.names.relative(abs)
	if r == rulingDeny || !ok || c.s.names.open {
		return v
	}
	at := len(abs) - len(rel) // where the name starts that is looked at
	inGit := at > 1 && c.s.names.first(path.Base(abs[:at])) == ".git"
	branches := false
	for part := range strings.SplitSeq(rel, "/") {
		name, dir := c.s.names.first(part), abs[:max(at-1, 1)]
		switch {
		case inGit:
			v.git, branches = dir, gitBranches[name]
			if r != rulingAllow || gitInner[name] {
				return v // ruled on by its name
			}
		case gitNames[name]:
			parts := c.s.names.parts(abs[at:])
			state := c.layout(dir, parts, op, branches)
			if state >= v.state {
				v.state, v.git = state, dir
			}
			switch state {
			case layoutUnknown:
				return verdict{ruling: rulingDeny, rule: "protected:bare repository"}
			case layoutGit:
				v.ruling, v.rule = gitRule(op, parts, isDir)
				if v.ruling != rulingAllow || len(parts) == 1 || !gitData[name] {
					return v
				}
				v.state, branches = layoutPlain, gitBranches[name] // data: what lies in it counts by itself
			}
		}
		inGit = name == ".git"
		at += len(part) + 1
	}
	if v.state == layoutComplete && (branches || path.Base(abs) == "HEAD" && !isDir) && op != opLinkFrom {
		return c.completing(v)
	}
	return v
}

// first is the first of the parts that one component stands for: a backslash
// may make several of it.
func (p *protector) first(component string) string {
	n, _, _ := strings.Cut(fold(component), "/")
	return p.name(n)
}

// completing refuses to make a git directory of one that holds what git would
// execute or obey.
func (c *call) completing(v verdict) verdict {
	fd, err := c.openReal(v.git)
	if err != nil {
		return verdict{ruling: rulingDeny, rule: "protected:bare repository"}
	}
	defer unix.Close(fd)
	if what := c.active(fd); what != "" {
		return verdict{ruling: rulingDeny, rule: "protected:bare repository:" + what}
	}
	return v
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

// layout looks at a directory in which op is about to happen to a name that
// git knows, folded and in parts.
func (c *call) layout(dir string, parts []string, op operation, branches bool) layout {
	fd, err := c.openReal(dir)
	if err != nil {
		return layoutUnknown
	}
	defer unix.Close(fd)
	head, err := hasHead(fd)
	itself := len(parts) == 1 && (gitParts[parts[0]] || branches && parts[0] == "commondir")
	makes := op != opRemove && op != opRenameFrom && op != opLinkFrom
	switch {
	case err != nil:
		return layoutUnknown
	case branches && itself && makes && isRepository(fd, parts[0]) && !c.made(fd):
		return layoutComplete
	case branches && isRepository(fd, ""):
		return layoutGit
	case branches && itself:
		return layoutPlain
	case branches:
		return layoutAlmost
	case itself && (op == opRemove || op == opRenameFrom || parts[0] != "head"):
		if isRepository(fd, "") {
			return layoutGit
		}
		return layoutPlain
	case head:
		return layoutGit
	case itself:
		return layoutComplete
	}
	return layoutAlmost
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

// made reports whether this session made an open git directory.
func (c *call) made(dir int) bool {
	id, _, err := identify(dir, "")
	return err == nil && c.s.repos.made[id]
}

// active returns what there is in a directory that git would execute or obey
// once it is a git directory, or "". What can't be looked at counts.
func (c *call) active(dir int) string {
	for _, name := range []string{"commondir", "config.worktree", "modules", "worktrees"} {
		var st unix.Stat_t
		if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != unix.ENOENT {
			return name
		}
	}
	if _, err := inertConfig(dir); err != nil {
		return "config"
	}
	inert := func(name string) bool { return strings.HasSuffix(name, ".sample") }
	if !holdsOnly(dir, "hooks", inert) {
		return "hooks"
	}
	if !holdsOnly(dir, "info", func(name string) bool { return foldName(name) != "attributes" }) {
		return "info/attributes"
	}
	return ""
}

// inertConfig reads the configuration in an open directory; it is empty where
// there is none, and an error if git would execute or obey anything in it.
func inertConfig(dir int) (string, error) {
	text, err := readAt(place{dir: dir, name: "config"})
	if err == unix.ENOENT {
		return "", nil
	}
	if err == nil && activeKey(string(text)) != "" {
		err = unix.EACCES
	}
	return string(text), err
}

// maxListed is how many entries of a directory are looked at; more are refused.
const maxListed = 1000

// holdsOnly reports whether all that a directory of dir holds is fine, or it
// is not there.
func holdsOnly(dir int, name string, fine func(string) bool) bool {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err == unix.ENOENT
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	names, _ := f.Readdirnames(maxListed)
	for _, n := range names {
		if !fine(n) {
			return false
		}
	}
	return len(names) < maxListed
}

// settle looks again once a name is there: another session, which this one's
// supervisor does not hold up, may have done its part of a git directory in
// between. Whoever comes second undoes what it did.
func (c *call) settle(v verdict, op operation, abs string, undo func() error) error {
	if v.state != layoutAlmost && v.state != layoutComplete {
		return nil
	}
	again := c.rule(op, abs, false)
	switch {
	case v.state == layoutComplete && c.adopt(v.git) == nil:
		return nil
	case v.state == layoutAlmost && again.state != layoutGit:
		return nil
	}
	_ = undo() // refused in any case
	return c.denied(op, abs, "protected:bare repository")
}

// adopt takes a directory that has just become a git directory, if it has, for
// one of the session's own. Its configuration is written anew, since somebody may still
// have the old one open.
func (c *call) adopt(dir string) error {
	fd, err := c.openReal(dir)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	err = unix.Fstatat(fd, "HEAD", &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == unix.ENOENT || st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return nil // in other letters, or nothing that git reads
	}
	if head, err := hasHead(fd); err != nil || !head {
		return unix.EACCES // a FIFO, on which git hangs
	}
	text, err := inertConfig(fd)
	if err != nil || c.active(fd) != "" {
		return unix.EACCES
	}
	id, _, err := identify(fd, "")
	if err != nil || !c.s.repos.made.add(id) {
		return unix.EDQUOT
	}
	if err := unix.Fstatat(fd, "config", &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil // none
	}
	return c.replaceConfig(place{dir: fd, name: "config", abs: path.Join(dir, "config")}, text, st.Mode)
}
