package supervise

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/protect"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// check asks the protector about a file's name in an open directory, and reports
// and refuses a protected one.
func (c *call) check(op layout.Operation, p place) (verdict, error) {
	v := c.ruleAt(op, p, false)
	if v.ruling != layout.RulingAllow {
		return v, c.denied(op, p.abs, v.rule)
	}
	return v, nil
}

// ruleAt is rule for a name in an open directory, or for an open file.
func (c *call) ruleAt(op layout.Operation, p place, isDir bool) verdict {
	if c.s.git.holds(p.dir) {
		return verdict{ruling: layout.RulingAllow}
	}
	return c.rule(op, p, isDir)
}

// denied reports a refusal that is the supervisor's own.
func (c *call) denied(op layout.Operation, abs, rule string) error {
	kind := bawn.Write
	if op == layout.OpRemove {
		kind = bawn.Delete
	}
	if op == layout.OpMkdir || op == layout.OpSymlink || op == layout.OpMknod || op == layout.OpBind || op == layout.OpLinkTo || op == layout.OpRenameTo {
		kind = bawn.Create
	}
	if rule == layout.RuleReadOnly {
		return c.outside(abs)
	}
	d := sandbox.Denial{
		Kind: bawn.Filesystem, Operation: kind, Resource: abs, Rule: rule,
		Reason: "a program on the host would execute or obey this file later",
		Remedy: remedy(rule),
	}
	switch rule {
	case layout.RuleGit:
		d.Reason, d.Remedy = "git on the host would obey this git directory", gitRemedy
		if op == layout.OpRemove {
			d.Remedy = removedRemedy
		}
	case RuleHidden:
		d.Reason = "the session is denied this name, so that nothing of the host's is read under it"
	case layout.RuleBare:
		d.Reason, d.Remedy = "git on the host would take this for a git directory, and obey it", bareRemedy
	}
	if op == layout.OpLinkTo && rule == layout.RuleGit {
		defer c.s.onDenial(d)
		return unix.EPERM // git renames then
	}
	c.s.onDenial(d)
	return unix.EACCES
}

const (
	gitRemedy = "run the session in that repository, where it gets a git directory of its own; make a new repository in /tmp; or change this one from outside"
	// removedRemedy is for "git submodule deinit" and "git worktree remove", which remove .git.
	removedRemedy = "a submodule or worktree of the user's is removed outside of the session: \"git submodule deinit\", \"git worktree remove\""
	bareRemedy    = "make a bare repository in /tmp, or one that is not bare; or change it from outside the session"
)

// ofMounts reports a write that failed, and returns err, if the session's mounts are why.
func (c *call) ofMounts(abs string, err error) error {
	switch {
	case err == unix.EROFS:
		c.readOnly(abs)
	case err == unix.EACCES && c.hidden(path.Clean(abs)):
		c.s.onDenial(sandbox.Denial{
			Kind: bawn.Filesystem, Operation: bawn.Write, Resource: path.Clean(abs), Rule: RuleHidden,
			Reason: "the place is hidden from the session", Remedy: "write in the workspace or in /tmp",
		})
	}
	return err
}

// hidden reports whether a path lies in a directory that is covered: nobody may enter
// what covers it.
func (c *call) hidden(abs string) bool {
	at := ""
	for _, t := range c.s.targets {
		if len(t) > len(at) && layout.Below(abs, t) {
			at = t
		}
	}
	if at == "" {
		return false
	}
	fd, err := c.openPath(at, unix.O_NOFOLLOW)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode == unix.S_IFDIR
}

// readOnly reports a write that failed on a read-only mount, which only Bawn
// has made read-only if the host's own mount is writable.
func (c *call) readOnly(abs string) {
	var fs unix.Statfs_t
	if unix.Statfs(existing(abs), &fs) != nil || fs.Flags&unix.ST_RDONLY != 0 {
		return
	}
	_ = c.outside(abs)
}

// outside reports a write outside the writable places.
func (c *call) outside(abs string) error {
	d := sandbox.Denial{
		Kind: bawn.Filesystem, Operation: bawn.Write, Resource: abs, Rule: layout.RuleReadOnly,
		Reason: "outside the places this session may write",
		Remedy: "write in the workspace or in /tmp",
	}
	switch {
	case slices.Contains(c.s.names.Parts(abs), ".git"):
		d.Remedy = gitRemedy
	case c.s.names.Beside(abs):
		d.Remedy += "; a worktree of git's can be added in the workspace, such as \"git worktree add .trees/NAME\""
	}
	c.s.onDenial(d)
	return unix.EACCES
}

// existing returns abs or its closest ancestor that the host has.
func existing(abs string) string {
	for abs != "/" {
		if unix.Access(abs, unix.F_OK) == nil {
			return abs
		}
		abs = path.Dir(abs)
	}
	return abs
}

// openedBy is the name by which isolation.unprotect lifts a rule, or "" if
// nothing does.
func openedBy(rule string) string {
	name, ok := strings.CutPrefix(rule, layout.RuleProtected)
	if !ok {
		return ""
	}
	key, err := protect.Key(name)
	if err != nil {
		return ""
	}
	return key
}

// remedy is what helps against a refusal by a rule.
func remedy(rule string) string {
	if name := openedBy(rule); name != "" {
		return "change it from outside the session, or have the user open it for this project: --unprotect " + quoted(name) + ", or isolation.unprotect in the configuration"
	}
	if rule == layout.RulePlace {
		return "change it from outside the session, or have the user name exactly this place with --rw"
	}
	return "change it from outside the session, or ask the user to"
}

// quoted is a name as a shell takes it.
func quoted(name string) string {
	if strings.Contains(name, "*") {
		return "'" + name + "'"
	}
	return name
}
