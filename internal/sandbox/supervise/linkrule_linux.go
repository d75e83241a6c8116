package supervise

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// The reason for refusing a link.
const (
	linkHome     = "it leads into the home directory, outside of what this session may write"
	linkOwn      = "it leads to Bawn's own files"
	linkWritable = "it leads to a place that the user's programs can write and this session can't"
	linkProc     = "it leads through /proc to wherever the program that follows it stands"
	linkUnsure   = "it leads up again (\"..\") out of a directory that can be exchanged"
	linkElse     = "it leads to a directory below which the user's programs may write where this session can't"
	linkUnread   = "where it leads can't be looked at"
	linkHidden   = "it leads to what is hidden from this session"
	linkCache    = "it leads into a cache that the user's programs share, which holds files of any name"
	linkGuarded  = "it leads to a file that a program on the host would execute or obey later"
)

// mayLeadFrom is mayLead for a link in an open directory, which may lie in a private
// git directory: no program of the user's reaches those.
func (c *call) mayLeadFrom(p place, target string) error {
	if c.s.git.holds(p.dir) {
		return nil
	}
	return c.mayLead(p, target)
}

// mayLead errs if a link at p to target would lead the human's programs outside.
func (c *call) mayLead(p place, target string) error {
	why := c.leads(path.Dir(p.abs), target)
	if why == "" {
		return nil
	}
	c.s.onDenial(sandbox.Denial{
		Kind: bawn.Filesystem, Operation: bawn.Create, Resource: p.abs, Rule: RuleLink,
		Reason: "a program of the user that follows the link to " + clip(target) + " would write there: " + why,
		Remedy: "link to a place in the workspace or copy what is needed; the user can make this link outside of the session",
	})
	return unix.EACCES
}

// clip shortens a target for a message.
func clip(target string) string {
	const most = 200
	if len(target) > most {
		target = target[:most] + "…"
	}
	return `"` + strings.ToValidUTF8(target, "?") + `"`
}

// stillLeads looks again once the link at p is made: another session may have moved
// its directory meanwhile.
func (c *call) stillLeads(p place, target string) error {
	now, err := realPath(p.dir)
	if err != nil {
		_ = p.unlink()
		return err
	}
	if now == path.Dir(p.abs) {
		return nil
	}
	p.abs = path.Join(now, p.name)
	if err := c.mayLeadFrom(p, target); err != nil {
		_ = p.unlink()
		return err
	}
	return nil
}

// leads returns the error in a link in dir, a place of the guest, to target, or
// "".
func (c *call) leads(dir, target string) (why string) {
	r := c.s.links
	at := r.onHost(dir)
	if _, ok := r.inRoot(at); at == "" || !ok {
		return "" // of the session's own, or read-only
	}
	w := walker{rule: r, at: at}
	if path.IsAbs(target) {
		w.at = "/"
	}
	if why := w.walk(target); why != "" {
		return why
	}
	return c.endsAt(at, &w)
}

// endsAt returns the error in the target of a link in dir.
func (c *call) endsAt(dir string, w *walker) string {
	r := c.s.links
	switch root, ok := r.inRoot(w.at); {
	case ok && !r.isOwn(w.at):
		return c.endsInside(dir, w.at, root)
	case w.proc:
		return ""
	case r.isOwn(w.at):
		return linkOwn
	case r.inHome(w.at):
		switch {
		case r.hides(w.at):
		case r.isStore(w.at):
			return ""
		case r.isTool(w.at, dir) && w.executable():
			return ""
		}
		return linkHome
	case w.writable():
		return linkWritable
	case w.holdsMore():
		return linkElse
	}
	return ""
}

// endsInside is endsAt for a writable place. A link there is as good as a write to
// its target.
func (c *call) endsInside(dir, at string, root hostPlace) string {
	r := c.s.links
	if from, _ := r.inRoot(dir); from != root && r.isShared(root) {
		return linkCache
	}
	guest := r.inGuest(at)
	if r.hides(guest) {
		return linkHidden
	}
	if at == root.host {
		return ""
	}
	if ruling, _ := c.s.names.Rule(layout.OpOpen, guest, false); ruling != layout.RulingAllow {
		return linkGuarded
	}
	if ruling, _ := c.s.names.ByName(layout.OpRenameFrom, guest, false); ruling != layout.RulingAllow {
		return linkGuarded
	}
	// A place in a git directory is judged by the directory's other contents, if it
	// exists.
	var st unix.Stat_t
	if unix.Stat(path.Dir(at), &st) == nil && c.rule(layout.OpOpen, place{dir: -1, abs: guest}, false).ruling != layout.RulingAllow {
		return linkGuarded
	}
	return ""
}

// A walker follows a link's target on the host as the kernel does, but goes on where
// nothing is.
type walker struct {
	rule    *linkRule
	at      string
	loose   bool   // a guest may put something else in the place of a part of the way
	proc    bool   // it ends in /proc
	outer   []bool // what loose was before each link whose text is being followed
	links   int
	there   bool
	status  unix.Stat_t // of what is there
	blocked bool        // the user can't look there
}

// linkEnd stands in a walker's way where the text of a link ends. No name has a slash.
const linkEnd = "/"

// walk follows target from w.at. It returns the error in the way. The text of a link on
// the way starts again with what is loose: ".." leads from where that link lies, and a
// replacement link is judged when it is made. After that text the way is as loose as
// the link was.
func (w *walker) walk(target string) string {
	for rest := strings.Split(target, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch {
		case name == linkEnd:
			last := len(w.outer) - 1
			w.loose, w.outer = w.loose || w.outer[last], w.outer[:last]
			continue
		case name == "" || name == ".":
			continue
		case name == ".." && w.loose:
			return linkUnsure
		case name == "..":
			w.at = path.Dir(w.at)
			continue
		}
		w.at = path.Join(w.at, name)
		if layout.Below(w.at, "/proc") {
			return w.inProc(rest)
		}
		to, why := w.look()
		if why != "" {
			return why
		}
		if to == "" {
			continue
		}
		if w.links++; w.links >= maxLinks {
			return w.endless()
		}
		if w.at = path.Dir(w.at); path.IsAbs(to) {
			w.at = "/"
		}
		rest = append(append(strings.Split(to, "/"), linkEnd), rest...)
		w.outer, w.loose = append(w.outer, w.loose), false
	}
	return ""
}

// look looks at the file at w.at, and returns the target if it is a link.
func (w *walker) look() (to, why string) {
	root, inside := w.rule.inRoot(w.at)
	inside = inside && w.at != root.host
	w.loose = w.loose || inside
	err := unix.Lstat(w.at, &w.status)
	w.there = err == nil
	switch {
	case err == unix.ENOENT || err == unix.ENOTDIR:
		w.loose = true // whatever is made there
		return "", ""
	case err != nil && inside:
		return "", linkUnread
	case err != nil:
		w.blocked = true
		return "", ""
	}
	id := layout.Identity{Dev: w.status.Dev, Ino: w.status.Ino}
	if id == w.rule.homeID && id != (layout.Identity{}) {
		w.at = w.rule.home // by whatever name
	}
	if w.status.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", ""
	}
	to, err = os.Readlink(w.at)
	if err != nil || to == "" {
		return "", linkUnread
	}
	return to, ""
}

// endless rules on a circle of links: one in the writable places leads nowhere,
// whatever replaces its links.
func (w *walker) endless() string {
	if _, ok := w.rule.inRoot(w.at); ok {
		return ""
	}
	return linkUnread
}

// inProc rules on places below /proc, whose links mean something else in each
// process.
func (w *walker) inProc(rest []string) string {
	full := path.Join(append([]string{w.at}, rest...)...)
	for _, part := range rest {
		if part == ".." {
			return linkProc
		}
	}
	parts := strings.Split(strings.TrimPrefix(full, "/proc/"), "/")
	for i, part := range parts {
		switch part {
		case "root", "cwd", "map_files":
			return linkProc
		case "fd": // the three that each program has, and not the directory
			if len(parts) != i+2 || !slices.Contains([]string{"0", "1", "2"}, parts[i+1]) {
				return linkProc
			}
		}
	}
	if isProcess(parts) {
		return linkProc
	}
	w.at, w.proc = full, true
	return ""
}

// isProcess reports whether a path below /proc is a directory that holds the links of
// a process or a thread: a link made earlier may go on from there.
func isProcess(parts []string) bool {
	_, err := strconv.Atoi(parts[0])
	if err != nil && parts[0] != "self" && parts[0] != "thread-self" {
		return false
	}
	return len(parts) == 1 || parts[1] == "task" && len(parts) <= 3
}

// executable reports whether the way ends at a program.
func (w *walker) executable() bool {
	return w.there && w.status.Mode&unix.S_IFMT == unix.S_IFREG && w.status.Mode&0o111 != 0
}

// systemPlaces are left to links of root's guests: their programs are linked to
// everywhere.
var systemPlaces = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix", "/snap", "/gnu", "/sys", "/etc/alternatives"}

// writable reports whether the human's programs could write at the end of the way,
// or make or replace the file there. Files that may be made directly in /tmp and
// its like do not count, as anybody may make them.
func (w *walker) writable() bool {
	if w.blocked {
		return false
	}
	if w.there && (w.status.Mode&unix.S_IFMT == unix.S_IFCHR || w.status.Mode&unix.S_IFMT == unix.S_IFBLK) {
		return false
	}
	for _, dir := range systemPlaces {
		if w.rule.root && w.there && (w.at == dir || layout.Below(w.at, dir)) {
			return false
		}
	}
	at := w.at
	if !w.there {
		at = existingParent(at)
	} else if canWrite(at) {
		return true
	} else if w.status.Mode&unix.S_IFMT != unix.S_IFDIR {
		at = path.Dir(at)
	}
	return canWrite(at)
}

// rootsDirs hold directories below which only root writes. Links to places below
// them are common, and to them without a slash at the end.
var rootsDirs = []string{"/usr/", "/opt/", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/nix/", "/gnu/", "/snap/", "/sys", "/boot"}

// holdsMore reports whether the way ends at a directory that may hold places of the
// human's. Another link that the guest has made may go on from there: its target was
// absent then, and this link supplies the start.
func (w *walker) holdsMore() bool {
	if w.at != "/" && (w.blocked || !w.there || w.status.Mode&unix.S_IFMT != unix.S_IFDIR) {
		return false
	}
	return w.at == "/usr/local" || !slices.ContainsFunc(rootsDirs, func(dir string) bool {
		return layout.Below(w.at, strings.TrimSuffix(dir, "/")) || w.at == dir
	})
}

// existingParent returns the closest directory above p that is there.
func existingParent(p string) string {
	for p = path.Dir(p); p != "/"; p = path.Dir(p) {
		var st unix.Stat_t
		if unix.Stat(p, &st) == nil {
			return p
		}
	}
	return p
}

// canWrite reports whether the calling thread's user may write to p, and not
// everybody by turns.
func canWrite(p string) bool {
	var st unix.Stat_t
	if unix.Stat(p, &st) != nil {
		return false
	}
	const sticky = unix.S_ISVTX | 0o002
	if st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Mode&sticky == sticky {
		return false
	}
	return unix.Faccessat(unix.AT_FDCWD, p, unix.W_OK, unix.AT_EACCESS) == nil || int(st.Uid) == unix.Geteuid()
}

// mayShare errs if source is a link to which to, as another name for it, must not
// lead.
func (c *call) mayShare(source int, to place) error {
	target, ok := linkAt(source, "")
	if !ok {
		return nil
	}
	return c.mayLeadFrom(to, target)
}

// linkAt reads the link that an open directory holds under name, or that dir itself
// is if name is "".
func linkAt(dir int, name string) (string, bool) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	return string(buf[:max(n, 0)]), err == nil && n > 0
}
