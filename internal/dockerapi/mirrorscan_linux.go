package dockerapi

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/dockerapi/writeback"
)

// A scanner looks at a guest's directory, from outside.
type scanner struct {
	old   map[string]seen
	found map[string]seen
	take  func(more load) error
	skips func(name string) bool
	began time.Time
	text  int // bytes in all names and targets of links
}

// coarse is by how much times of files may lag behind.
const coarse = 200 * time.Millisecond

// openDir opens a directory of the guest's, as copyIn does.
func (v View) openDir(guest string) (*os.File, error) {
	if err := v.covers(guest); err != nil {
		return nil, err
	}
	root, err := v.Open()
	if err != nil {
		return nil, fmt.Errorf("see what the guest sees: %w", err)
	}
	defer root.Close()
	fd, err := unix.Openat2(int(root.Fd()), guest, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if err != nil {
		return nil, refuse(RuleMount, "mount what exists", "%.200q can't be opened: %v", guest, err)
	}
	f := os.NewFile(uintptr(fd), guest)
	if err := v.within(root, f, guest); err != nil {
		f.Close()
		return nil, err
	}
	dir, err := reopen(fd, unix.O_DIRECTORY)
	f.Close()
	if errors.Is(err, unix.ENOTDIR) {
		return nil, refuse(RuleMount, "mount it read-only, or the directory that it is in", "%.200q is a file, and a container writes only to directories of the workspace", guest)
	}
	return dir, err
}

// look returns all that is in the guest's directory. Of files that are as they were the
// contents are not read again.
func (m *mirror) look(dir *os.File, take func(more load) error) (map[string]seen, error) {
	s := &scanner{old: m.seen, found: map[string]seen{}, take: take, skips: m.skips, began: time.Now()}
	return s.found, s.entry(dir, "", ".", 0)
}

const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// entry looks at one name of a directory; "" is the directory itself.
func (s *scanner) entry(dir *os.File, name, rel string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return err
	}
	if err := errors.Join(s.take(load{entries: 1}), s.named(rel)); err != nil {
		return err
	}
	e := seen{
		state: fileState{mode: st.Mode & 0o777}, uid: st.Uid, gid: st.Gid, size: st.Size, modified: time.Unix(st.Mtim.Sec, st.Mtim.Nsec), inode: st.Ino, changed: st.Ctim.Nano(),
	}
	defer func() { s.found[rel] = e }()
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		e.state.kind, e.was = kindDir, writeback.Stamp(0, e.modified, os.ModeDir)
		return s.directory(dir, name, rel, depth)
	case unix.S_IFLNK:
		target := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(int(dir.Fd()), name, target)
		if err != nil {
			e.state = fileState{kind: kindOther}
			return nil
		}
		e.state, e.was = fileState{kind: kindLink, link: string(target[:n])}, writeback.Stamp(e.size, e.modified, os.ModeSymlink)
		return s.named(e.state.link)
	case unix.S_IFREG:
		e.was = writeback.Stamp(e.size, e.modified, 0)
		return s.file(dir, name, rel, &e)
	default:
		e.state = fileState{kind: kindOther}
	}
	return nil
}

// named counts a name or the target of a link.
func (s *scanner) named(text string) error {
	if s.text += len(text); s.text > mirrorText {
		return refuse(RuleLimit, "mount something below", "the names in a mount have more than %d MiB", mirrorText>>20)
	}
	return nil
}

func (s *scanner) directory(parent *os.File, name, rel string, depth int) error {
	if depth >= maxCopyDepth {
		return refuse(RuleLimit, "mount something below", "a mount holds more than %d directories within each other", maxCopyDepth)
	}
	dir := parent
	if name != "" {
		fd, err := unix.Openat2(int(parent.Fd()), name, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: beneath})
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			return nil
		}
		if err != nil {
			return err
		}
		dir = os.NewFile(uintptr(fd), name)
		defer dir.Close()
	}
	for {
		names, err := dir.Readdirnames(256)
		for _, n := range names {
			if strings.HasPrefix(n, writeback.Beside) || s.skips(path.Join(rel, n)) {
				continue
			}
			if err := s.entry(dir, n, path.Join(rel, n), depth+1); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// file reads a file, unless it is as it was.
func (s *scanner) file(dir *os.File, name, rel string, e *seen) error {
	if err := s.take(load{bytes: e.size}); err != nil {
		return err
	}
	if o, ok := s.old[rel]; ok && o.changed != 0 && o.changed == e.changed && o.inode == e.inode && o.size == e.size && o.modified.Equal(e.modified) {
		e.state = o.state
		return nil
	}
	if time.Unix(0, e.changed).After(s.began.Add(-coarse)) {
		e.changed = 0
	}
	e.state.kind = kindFile
	f, err := openBelow(dir, name)
	if err != nil {
		e.state = fileState{kind: kindOther}
		return nil
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(f, e.size)); err != nil {
		return err
	}
	sum.Sum(e.state.sum[:0])
	return nil
}

// openBelow opens a file of a directory of the guest's, through no link.
func openBelow(dir *os.File, rel string) (*os.File, error) {
	fd, err := unix.Openat2(int(dir.Fd()), rel, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: beneath})
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), rel)
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("it is no file"), err, f.Close())
	}
	return f, nil
}
