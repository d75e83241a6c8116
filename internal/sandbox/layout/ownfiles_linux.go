package layout

import (
	"path"
	"slices"

	"github.com/bawn-dev/bawn/internal/linux/landlock"
)

// OwnNames leaves names of files to the kernel in a session on a copy, where everything
// that the guest can write is the session's own: no program of the host executes or obeys
// what lies there, follows a link there, or reads a git directory there. It is for guests
// with the mounts and the Landlock rules of the plan, and does nothing to others.
//
// Landlock then stands where the supervisor stood. It keeps a guest from writing to a FIFO
// of the host behind a read-only mount. It also keeps a guest from opening a descriptor
// anew with more rights, which the kernel judges by the mount through which the descriptor
// was opened. A file that the host hands over on purpose could not be opened anew at all,
// so that a session which gets one has its calls held. So has one that could move a
// directory above a hidden place: the refresher would look for that where it no longer is.
// Other sessions keep their calls held, too, even those that write nothing of the host:
// what the kernel refuses is not explained.
func (p *Plan) OwnNames(noFiles bool) {
	copied := slices.ContainsFunc(p.Mounts, func(m Mount) bool { return m.Kind == KindCopy })
	named := len(p.Protected) + len(p.Absent) + len(p.Targets) + len(p.Guarded) + len(p.InHome) + len(p.Denied)
	if !copied || !noFiles || named > 0 || slices.ContainsFunc(p.Kept, p.movable) || p.Rung != RungNamespaces || p.Programs || p.Landlock.ABI < landlock.TruncateABI {
		return
	}
	p.OwnFiles, p.Seccomp = true, "guest, supervised but for names of its own files"
	p.Landlock.Writable = append(p.Landlock.Writable, "/dev/null") // the host's, of which it gets descriptors
}

// movable reports whether a guest whose renames go to the kernel could move a directory
// above a place of the host. It can't move mount points, nor, on a copy, directories that
// were there.
func (p *Plan) movable(place string) bool {
	if m := p.mountAbove(place); m.Kind == KindTmpfs || m.Why == WhyPrivateCache || m.IsPrivateGit() {
		return false // of the session's own: nothing of the host's shows there
	}
	for dir := path.Dir(place); dir != "/"; dir = path.Dir(dir) {
		mounted := slices.ContainsFunc(p.Mounts, func(m Mount) bool { return m.Target == dir })
		if m := p.mountAbove(dir); !mounted && (m.Kind == KindTmpfs || m.Kind == KindBind) {
			return true
		}
	}
	return false
}

// mountAbove is the innermost mount below which a place lies.
func (p *Plan) mountAbove(place string) (inner Mount) {
	for _, m := range p.Mounts {
		if Below(place, m.Target) && len(m.Target) >= len(inner.Target) {
			inner = m
		}
	}
	return inner
}
