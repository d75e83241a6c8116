package supervise

import (
	"errors"
	"io"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// RuleHardLink is the rule by which a write fails to a file that has another name,
// perhaps outside of the session, where the file can't be replaced by a copy.
const RuleHardLink = "isolation:hard-link"

// maxCopied bounds the bytes of a file that is copied while other calls wait.
const maxCopied = 256 << 20

// onlyHere reports whether this session knows every name of an open file: it has
// a single one, or the guest has made the others.
func (c *call) onlyHere(fd int, abs string) bool {
	p, err := c.place(abs)
	if err != nil {
		return false
	}
	defer p.close()
	id, _, err := identify(fd, "")
	here, _, herr := identify(p.dir, p.name)
	st, serr := p.stat()
	if err != nil || herr != nil || serr != nil || id != here {
		return false // the name that is left may be outside
	}
	return st.Nlink == 1 || c.s.linked[id]
}

// remember notes that a file whose names were all known has got another.
func (s *supervisor) remember(fd int) {
	if id, _, err := identify(fd, ""); err == nil && (id.sec != 0 || id.nsec != 0) {
		s.linked.add(id)
	}
}

// apart gives an open file a copy of its own at its place if the file has names that
// the session does not know. Package managers hard-link files of a store in the home
// into the workspace. It returns the copy as O_PATH, or fd itself. The caller may
// have no right to write the file: that is looked at first.
func (c *call) apart(fd int, abs string, st *unix.Stat_t, r openRequest) (int, error) {
	writes := r.flags&unix.O_ACCMODE != unix.O_RDONLY || r.flags&unix.O_TRUNC != 0
	if !writes || r.own || st.Nlink <= 1 || !path.IsAbs(abs) || c.s.sockets.private[st.Dev] || c.isPlace(abs) {
		return fd, nil
	}
	if id, _, err := identify(fd, ""); err == nil && c.s.linked[id] {
		return fd, nil
	}
	held, err := reopen(fd, unix.O_WRONLY, 0)
	if err != nil {
		return -1, err
	}
	unix.Close(held)
	p, err := c.place(abs)
	if err != nil {
		return -1, err
	}
	defer p.close()
	own, err := c.copyOver(fd, p, st, r.flags&unix.O_TRUNC != 0)
	if err != nil {
		c.s.onDenial(sandbox.Denial{
			Kind: bawn.Filesystem, Operation: bawn.Write, Resource: abs, Rule: RuleHardLink,
			Reason: "the file has another name, perhaps outside of this session (hard link), and could not be replaced by a copy: " + err.Error(),
			Remedy: "remove the file and write it anew",
		})
		return -1, unix.EACCES
	}
	return own, nil
}

// isPlace reports whether a place is writable by its own name, which the human gave.
func (c *call) isPlace(abs string) bool {
	at := c.s.links.onHost(abs)
	root, ok := c.s.links.inRoot(at)
	return ok && root.host == at
}

// copyOver replaces the file at p, to which fd refers, by a copy.
func (c *call) copyOver(fd int, p place, st *unix.Stat_t, empty bool) (int, error) {
	if here, err := p.stat(); err != nil || here.Dev != st.Dev || here.Ino != st.Ino || p.mounted() {
		return -1, unix.EBUSY
	}
	if !empty && st.Size > maxCopied {
		return -1, unix.EFBIG
	}
	tmp := p
	tmp.name = ".bawn-copy-" + strconv.FormatUint(c.ID, 16)
	to, err := unix.Openat(tmp.dir, tmp.name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return -1, err
	}
	file := os.NewFile(uintptr(to), tmp.name)
	defer file.Close()
	if err := fill(file, fd, st, empty); err != nil {
		_ = tmp.unlink()
		return -1, err
	}
	if err := unix.Renameat(tmp.dir, tmp.name, p.dir, p.name); err != nil {
		_ = tmp.unlink()
		return -1, err
	}
	var own unix.Stat_t
	here, err := p.stat()
	if err != nil || unix.Fstat(to, &own) != nil || here.Dev != own.Dev || here.Ino != own.Ino {
		return -1, errors.Join(unix.EBUSY, p.unlink()) // another session has exchanged it
	}
	return reopen(to, unix.O_PATH, 0)
}

// fill makes a new file like the one that fd refers to.
func fill(file *os.File, fd int, st *unix.Stat_t, empty bool) error {
	to := int(file.Fd())
	from, err := reopen(fd, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	source := os.NewFile(uintptr(from), "source")
	defer source.Close()
	if !empty && unix.IoctlFileClone(to, from) != nil {
		if _, err := io.Copy(file, io.LimitReader(source, maxCopied)); err != nil {
			return err
		}
	}
	var now unix.Stat_t
	if err := unix.Fstat(to, &now); err != nil {
		return err
	}
	if now.Uid != st.Uid || now.Gid != st.Gid {
		if err := unix.Fchown(to, int(st.Uid), int(st.Gid)); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(to, st.Mode&0o777); err != nil {
		return err
	}
	times := []unix.Timespec{st.Atim, st.Mtim}
	return unix.UtimesNanoAt(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(to), times, 0)
}
