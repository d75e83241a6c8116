package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxEntries bounds an index.
const maxEntries = 4_000_000

// An entry is one of an index; it has three where a path is in conflict.
type entry struct {
	mode, id string
	stage    byte
	skip     bool // not in a sparse work tree
}

// An index has the entries of each path, by stage.
type index map[string][]entry

// parseIndex reads what git ls-files -s -t -z writes. A path that git must not
// write makes the whole of it an error.
func parseIndex(text []byte, size int) (index, error) {
	list := index{}
	n := 0
	for len(text) > 0 {
		line, rest, ok := bytes.Cut(text, []byte{0})
		if !ok {
			return nil, errors.New("the index: its last entry has no end")
		}
		text = rest
		head, p, ok := strings.Cut(string(line), "\t")
		f := strings.Split(head, " ")
		if !ok || len(f) != 4 || len(f[0]) != 1 || len(f[3]) != 1 || f[3][0] < '0' || f[3][0] > '3' {
			return nil, fmt.Errorf("the index: %q is no entry", head[:min(len(head), 100)])
		}
		e := entry{mode: f[1], id: f[2], stage: f[3][0], skip: f[0] == "S"}
		switch {
		case !slices.Contains([]string{"100644", "100755", "120000", "160000"}, e.mode):
			return nil, fmt.Errorf("the index: %q has mode %q", p, e.mode)
		case !isID(e.id, size):
			return nil, fmt.Errorf("the index: %q has no object", p)
		case !pathOK(p):
			return nil, fmt.Errorf("the index: %q is a path that git must not write", p)
		case slices.ContainsFunc(list[p], func(o entry) bool { return o.stage == e.stage }):
			return nil, fmt.Errorf("the index: %q is there twice", p)
		}
		if n++; n > maxEntries {
			return nil, fmt.Errorf("the index: %w", errTooMuch)
		}
		list[p] = append(list[p], e)
	}
	return list, nil
}

// pathOK accepts paths that lie below the work tree and in no git directory, also
// where file systems take other spellings for the same name.
func pathOK(p string) bool {
	if p == "" || len(p) > 4096 || strings.ContainsRune(p, 0) {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." || likeGit(part) {
			return false
		}
	}
	return true
}

// likeGit reports names that some file system takes for ".git".
func likeGit(name string) bool {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff, r == utf8.RuneError:
			continue // HFS+ ignores them
		case r == ':' || r == '\\': // of NTFS: a stream, a directory
			return likeGit(b.String()) || r == '\\' && likeGit(name[strings.IndexByte(name, '\\')+1:])
		}
		b.WriteRune(r)
	}
	plain := strings.ToLower(strings.TrimRight(b.String(), ". "))
	return plain == ".git" || plain == "git~1"
}

// merge3 joins what both sides have changed. It returns a path that both have
// changed in different ways, or "".
func merge3(base, host, private index) (merged index, conflict string) {
	merged = maps.Clone(host)
	for p, b := range base {
		if now, there := private[p]; !there || !slices.Equal(now, b) {
			if c := take3(merged, p, b, host[p], now); c {
				return nil, p
			}
		}
	}
	for p, now := range private {
		if _, known := base[p]; !known {
			if c := take3(merged, p, nil, host[p], now); c {
				return nil, p
			}
		}
	}
	return merged, ""
}

// take3 takes the private side's change of one path, unless the host has another.
func take3(merged index, p string, base, host, private []entry) (conflict bool) {
	switch {
	case slices.Equal(host, private):
	case !slices.Equal(host, base):
		return true
	case private == nil:
		delete(merged, p)
	default:
		merged[p] = private
	}
	return false
}

// difference is what update-index --index-info reads to make one index another.
// Removals come first: a directory may become a file.
func difference(from, to index, zero string) []byte {
	var gone, come bytes.Buffer
	for p, old := range from {
		if now, there := to[p]; !there || !slices.Equal(now, old) {
			fmt.Fprintf(&gone, "0 %s\t%s\x00", zero, p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(to)) {
		if now := to[p]; !slices.Equal(now, from[p]) {
			for _, e := range now {
				fmt.Fprintf(&come, "%s %s %c\t%s\x00", e.mode, e.id, e.stage, p)
			}
		}
	}
	return append(gone.Bytes(), come.Bytes()...)
}

// same reports whether two indexes have the same entries.
func (x index) same(y index) bool {
	return maps.EqualFunc(x, y, func(a, b []entry) bool { return slices.Equal(a, b) })
}

// blobs are the objects that an index has more than another.
func (x index) blobs(than index) []string {
	var list []string
	for p, now := range x {
		for _, e := range now {
			if e.mode != "160000" && !slices.Contains(than[p], e) {
				list = append(list, e.id)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// listArgs make git write an index as parseIndex reads it.
var listArgs = []string{"ls-files", "-s", "-t", "-z"}

// hostIndex lists an index of the host's: its own for "".
func (s *Store) hostIndex(ctx context.Context, u *unit, file string) (index, error) {
	c := call{args: listArgs}
	if file != "" {
		if _, err := os.Lstat(file); missing(err) {
			return index{}, nil
		}
		c.env = []string{"GIT_INDEX_FILE=" + file}
	}
	text, err := s.git.run(ctx, u, c)
	if err != nil {
		return nil, err
	}
	return parseIndex(text, u.Size)
}

// privateIndex lists the guest's.
func (s *Store) privateIndex(ctx context.Context, u *unit) (index, error) {
	out := &bounded{}
	if err := s.read(ctx, u, nil, out, listArgs...); err != nil {
		return nil, err
	}
	return parseIndex(out.Bytes(), u.Size)
}

// indexes are those of one unit.
type indexes struct {
	base, host, private, merged index
	stamps                      [2]stamp // of host and private, before they were read
	text                        []byte   // the host's in the end, and its stamp
	now                         stamp
}

// lists reads the three indexes and joins them. It returns nil where nothing has
// changed.
func (s *Store) lists(ctx context.Context, u *unit) (*indexes, error) {
	x := &indexes{stamps: [2]stamp{stampOf(u.host, u.at("index")), stampOf(u.private, u.at("index"))}}
	if x.stamps == u.seen {
		return nil, nil
	}
	var err error
	if x.base = u.last; x.base == nil {
		if x.base, err = s.hostIndex(ctx, u, s.basePath(u)); err != nil {
			return nil, err
		}
		u.last = x.base
	}
	x.host, x.private = x.base, x.base
	if x.stamps[0] != u.seen[0] {
		if x.host, err = s.hostIndex(ctx, u, ""); err != nil {
			return nil, err
		}
	}
	if x.stamps[1] != u.seen[1] {
		if x.private, err = s.privateIndex(ctx, u); err != nil {
			return nil, err
		}
	}
	if x.base.same(x.host) && x.base.same(x.private) {
		u.seen = x.stamps
		return nil, nil
	}
	var conflict string
	if x.merged, conflict = merge3(x.base, x.host, x.private); conflict != "" {
		s.tell(u, &s.report.Questions, fmt.Sprintf("%q was staged on both sides: the session has an index of its own until they agree", conflict))
	}
	return x, nil
}

// at is a file of the unit's git directory, from the common one on.
func (u *unit) at(name string) string { return path.Join(u.Rel, name) }

// stamps remembers the indexes as they are, which are the same.
func (u *unit) stamps() {
	u.seen = [2]stamp{stampOf(u.host, u.at("index")), stampOf(u.private, u.at("index"))}
}

// A hostLock is the one that git has while it writes an index.
type hostLock struct{ own, lock string }

// errBusy says that another git has a lock, or that something has changed
// meanwhile: it works a little later.
var errBusy = errors.New("another git is at work")

// lockIndex takes the host's. Its own name lets Recover know a lock of ours.
func (s *Store) lockIndex(u *unit) (*hostLock, error) {
	l := &hostLock{filepath.Join(u.gitDir(), "bawn-"+s.Session+".lock"), filepath.Join(u.gitDir(), "index.lock")}
	f, err := os.OpenFile(l.own, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the index: %w", err)
	}
	f.Close()
	if err := os.Link(l.own, l.lock); err != nil {
		os.Remove(l.own)
		if errors.Is(err, os.ErrExist) {
			return nil, errBusy
		}
		return nil, fmt.Errorf("lock the index: %w", err)
	}
	return l, nil
}

func (l *hostLock) unlock() {
	os.Remove(l.lock)
	os.Remove(l.own)
}

// newIndex is where the host's next index is made.
func (s *Store) newIndex(u *unit) string { return u.at("bawn-" + s.Session + ".index") }

func (s *Store) dropIndex(u *unit) { _ = u.host.Remove(s.newIndex(u)) } // it may be installed

// installIndex puts it in place. The lock is held.
func (s *Store) installIndex(u *unit, x *indexes) (err error) {
	if x.text, err = readFile(u.host, s.newIndex(u), maxIndex); err != nil {
		return err
	}
	err = u.host.Rename(s.newIndex(u), u.at("index"))
	x.now = stampOf(u.host, u.at("index"))
	return err
}

// toHost reports whether the host's index is to change.
func (x *indexes) toHost() bool { return x != nil && x.merged != nil && !x.merged.same(x.host) }

// buildIndex makes the merged index beside the host's.
func (s *Store) buildIndex(ctx context.Context, u *unit, x *indexes) error {
	name := s.newIndex(u)
	file := filepath.Join(u.Host, name)
	if err := copyAs(u.host, u.at("index"), u.host, name); err != nil {
		return err
	}
	env := []string{"GIT_INDEX_FILE=" + file}
	change := difference(x.host, x.merged, strings.Repeat("0", u.Size))
	if _, err := s.git.run(ctx, u, call{args: []string{"update-index", "-z", "--index-info"}, env: env, in: bytes.NewReader(change)}); err != nil {
		return err
	}
	if err := s.skip(ctx, u, x, env); err != nil {
		return err
	}
	refresh := append(s.noFilters(ctx, u), "update-index", "-q", "--ignore-submodules", "--refresh")
	_, _ = s.git.run(ctx, u, call{args: refresh, env: env}) // what has changed since is no error
	return nil
}

// skip marks what a sparse work tree does not have.
func (s *Store) skip(ctx context.Context, u *unit, x *indexes, env []string) error {
	if !u.Sparse {
		return nil
	}
	var list bytes.Buffer
	for p, now := range x.merged {
		if len(now) == 1 && now[0].skip && !slices.Equal(now, x.host[p]) {
			list.WriteString(p + "\x00")
		}
	}
	if list.Len() == 0 {
		return nil
	}
	_, err := s.git.run(ctx, u, call{args: []string{"update-index", "-z", "--skip-worktree", "--stdin"}, env: env, in: &list})
	return err
}

// noFilters are arguments by which git runs no filter that the host's
// configuration has: files that a guest has written are no input for them.
func (s *Store) noFilters(ctx context.Context, u *unit) []string {
	if now := stampOf(u.host, "config"); now != u.config || now == (stamp{}) {
		u.config, u.filters = now, nil
		text, _ := s.git.run(ctx, u, call{args: []string{"config", "-z", "--name-only", "--get-regexp", `^filter\.`}}) // there may be none
		for key := range bytes.SplitSeq(text, []byte{0}) {
			if dot := bytes.LastIndexByte(key, '.'); dot > 0 {
				u.filters = append(u.filters, string(key[:dot]))
			}
		}
		slices.Sort(u.filters)
		u.filters = slices.Compact(u.filters)
	}
	var args []string
	for _, f := range u.filters {
		args = append(args, "-c", f+".clean=", "-c", f+".process=", "-c", f+".required=false")
	}
	return args
}

// agreed keeps the host's index as what both sides have, and gives it to the
// private one. What is in it is pinned first.
func (s *Store) agreed(ctx context.Context, u *unit, x *indexes) error {
	if x == nil || x.merged == nil {
		return nil
	}
	if x.text == nil {
		text, err := readFile(u.host, u.at("index"), maxIndex)
		if err != nil && !missing(err) {
			return err
		}
		if x.text, x.now = text, stampOf(u.host, u.at("index")); x.now != x.stamps[0] {
			return errBusy // the human's git is at work
		}
	}
	next := s.basePath(u) + ".new"
	if err := os.WriteFile(next, x.text, 0o600); err != nil {
		return err
	}
	if !x.merged.same(x.private) {
		if err := s.pinUnit(ctx, u, next); err != nil {
			return err
		}
		done, err := replace(u.private, u.at("index"), x.text, func() bool { return stampOf(u.private, u.at("index")) == x.stamps[1] })
		if err != nil || !done {
			return errBusy // the guest's git is at work
		}
		if err := s.shared(u); err != nil {
			return err
		}
		x.stamps[1] = stampOf(u.private, u.at("index"))
	}
	u.seen, u.last = [2]stamp{x.now, x.stamps[1]}, x.merged
	return os.Rename(next, s.basePath(u))
}

// shared copies the parts of a split index that the private side does not have.
func (s *Store) shared(u *unit) error {
	list, err := readDir(u.host, u.Rel)
	if err != nil {
		return err
	}
	for _, e := range list {
		if name := u.at(e.Name()); strings.HasPrefix(e.Name(), "sharedindex.") && !exists(u.private, name) {
			if _, err := copyFile(u.host, u.private, name, maxIndex); err != nil {
				return err
			}
		}
	}
	return nil
}
