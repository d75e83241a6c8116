package sandboxtest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// An entry is a file as it was, and as it can be made again.
type entry struct {
	mode     uint32
	uid, gid uint32
	ino      uint64
	ctime    unix.Timespec // changes with contents, times, attributes, links
	text     []byte
	link     string
}

// A snapshot is the tree of the fixtures as it has to stay.
type snapshot struct {
	base    string
	entries map[string]entry // by path below base
}

// unwatched are places where Bawn itself writes, and sockets.
var unwatched = []string{"home/.local/state/bawn/", "home/.cache/", "out/run/", "bin/"}

func takeSnapshot(t testing.TB, base string) *snapshot {
	s := &snapshot{base: base}
	var err error
	s.entries, err = s.scan(true)
	check(t, err)
	return s
}

// scan looks at everything below base, at contents only for a first time.
func (s *snapshot) scan(contents bool) (map[string]entry, error) {
	found := map[string]entry{}
	err := filepath.WalkDir(s.base, func(p string, _ fs.DirEntry, err error) error {
		if p == s.base {
			return err
		}
		rel := p[len(s.base)+1:]
		if errors.Is(err, fs.ErrPermission) && ignored(rel) {
			return fs.SkipDir // a sealed directory of Bawn's
		}
		if err != nil {
			return err
		}
		e, err := look(p, contents)
		if err == nil {
			found[rel] = e
		}
		return err
	})
	return found, err
}

func look(p string, contents bool) (e entry, err error) {
	var st unix.Stat_t
	if err := unix.Lstat(p, &st); err != nil {
		return e, fmt.Errorf("%s: %w", p, err)
	}
	e = entry{mode: st.Mode, uid: st.Uid, gid: st.Gid, ino: st.Ino, ctime: st.Ctim}
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFLNK:
		e.link, err = os.Readlink(p)
	case contents && kind == unix.S_IFREG && st.Size < 1<<20:
		e.text, err = os.ReadFile(p)
	}
	return e, err
}

func (e entry) isDir() bool { return e.mode&unix.S_IFMT == unix.S_IFDIR }

// same compares; directories may get and lose entries.
func (e entry) same(now entry) bool {
	if e.mode != now.mode || e.uid != now.uid || e.gid != now.gid {
		return false
	}
	return e.isDir() || e.ino == now.ino && e.ctime == now.ctime
}

// changed lists what is no longer as it was: "+" for new, "-" for gone, "~"
// for changed.
func (s *snapshot) changed() ([]string, error) {
	now, err := s.scan(false)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, p := range slices.Sorted(maps.Keys(now)) {
		old, ok := s.entries[p]
		switch {
		case !ok && !ignored(p):
			list = append(list, "+"+p)
		case ok && !old.same(now[p]):
			list = append(list, "~"+p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(s.entries)) {
		if _, ok := now[p]; !ok {
			list = append(list, "-"+p)
		}
	}
	return list, nil
}

// names reports whether a change is one of the tree's.
func (s *snapshot) names(change string) bool {
	return strings.ContainsRune("+-~", rune(change[0])) && change[1] != '/'
}

func ignored(p string) bool {
	return slices.ContainsFunc(unwatched, func(prefix string) bool { return strings.HasPrefix(p, prefix) })
}

// restore undoes the changes that changed found.
func (s *snapshot) restore(changes []string) error {
	for _, c := range changes {
		if c[0] == '-' {
			continue
		}
		p := filepath.Join(s.base, c[1:])
		now, err := os.Lstat(p)
		if err == nil && now.IsDir() && s.entries[c[1:]].isDir() || s.held(c[1:]) {
			continue // remake puts right what is in it
		}
		if err := os.RemoveAll(p); err != nil {
			return err
		}
	}
	return s.remakeAll(changes)
}

// held reports whether the file is one that the process that starts the sandbox has
// open, and still the one it was: then it must stay that one.
func (s *snapshot) held(rel string) bool {
	now, err := look(filepath.Join(s.base, rel), false)
	return err == nil && rel == "out/leaked" && now.ino == s.entries[rel].ino
}

// remakeAll makes what changed and all below it.
func (s *snapshot) remakeAll(changes []string) error {
	below := func(p string) bool {
		return slices.ContainsFunc(changes, func(c string) bool { return p == c[1:] || strings.HasPrefix(p, c[1:]+"/") })
	}
	for _, p := range slices.Sorted(maps.Keys(s.entries)) {
		if !below(p) {
			continue
		}
		if err := s.remake(p); err != nil {
			return fmt.Errorf("make %s again: %w", p, err)
		}
	}
	return nil
}

// remake makes one entry as it was, unless it still is.
func (s *snapshot) remake(rel string) error {
	e, p := s.entries[rel], filepath.Join(s.base, rel)
	if now, err := look(p, false); err == nil && e.same(now) {
		return nil
	}
	if err := e.create(p); err != nil {
		return err
	}
	if err := os.Lchown(p, int(e.uid), int(e.gid)); err != nil {
		return err
	}
	if e.mode&unix.S_IFMT != unix.S_IFLNK {
		if err := unix.Chmod(p, e.mode&0o7777); err != nil {
			return err
		}
	}
	if strings.HasSuffix(rel, "canary") {
		_ = unix.Setxattr(p, "user.given", []byte("1"), 0) // a file system without attributes had none before
	}
	now, err := look(p, false)
	e.ino, e.ctime = now.ino, now.ctime
	s.entries[rel] = e
	return err
}

func (e entry) create(p string) error {
	switch e.mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if err := os.Mkdir(p, 0o755); err != nil && !os.IsExist(err) {
			return err
		}
		return nil
	case unix.S_IFLNK:
		return os.Symlink(e.link, p)
	case unix.S_IFREG:
		return os.WriteFile(p, e.text, 0o644)
	}
	return fmt.Errorf("%s can't be made again", p)
}
