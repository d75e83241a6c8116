package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// A hostLock is the one that git has while it writes an index.
type hostLock struct {
	own, lock string
	held      *os.File // of an undo's: open as long as the lock is held
}

// errBusy says that another git has a lock, or that something has changed
// meanwhile: it works a little later.
var errBusy = errors.New("another git is at work")

// lockIndex takes the host's. Its own name lets Recover know a lock of ours.
func (s *Store) lockIndex(u *unit) (*hostLock, error) {
	l := &hostLock{own: filepath.Join(u.gitDir(), "bawn-"+s.Session+".lock"), lock: filepath.Join(u.gitDir(), "index.lock")}
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
	if l.held != nil {
		l.held.Close()
	}
}

// newIndex is where the host's next index is made.
func (s *Store) newIndex(u *unit) string { return u.at("bawn-" + s.Session + ".index") }

// dropIndex removes it, where it is not installed, and a lock that a git of a killed
// session has left beside it.
func (s *Store) dropIndex(u *unit) {
	_ = u.host.Remove(s.newIndex(u))
	_ = u.host.Remove(s.newIndex(u) + ".lock")
}

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
func (x *indexes) toHost() bool { return x != nil && !x.merged.same(x.host) }

// beginIndex begins to make the merged index, while the objects are carried over and
// looked at: it names them, and is put in place once they have passed. The human does
// not wait for it, as no lock is held. The function that it returns waits.
func (c *changes) beginIndex(ctx context.Context) (built func() error) {
	if !c.index.toHost() {
		return func() error { return nil }
	}
	x, done := c.index, make(chan error, 1)
	go func() { done <- c.store.buildIndex(ctx, c.unit, x) }()
	return sync.OnceValue(func() error { return <-done })
}

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
	if err := s.git.skip(ctx, u, x.host, x.merged, env); err != nil {
		return err
	}
	s.refresh(ctx, u, x, env)
	return nil
}

// fewPaths are compared one by one with all of an index; of more, all files are looked
// at.
const fewPaths = 100

// refresh has git look at the new files of an index only. It already knows the others,
// and looking at each would take longer than everything else. A later change is no
// error.
func (s *Store) refresh(ctx context.Context, u *unit, x *indexes, env []string) {
	var list bytes.Buffer
	n := 0
	for p, now := range x.merged {
		if len(now) == 1 && now[0].mode != "160000" && !now[0].skip && !slices.Equal(now, x.host[p]) {
			list.WriteString(p + "\x00")
			n++
		}
	}
	if n == 0 || u.WorkTree == "" {
		return
	}
	args := append(s.noFilters(ctx, u), "--literal-pathspecs", "add", "--refresh", "--pathspec-from-file=-", "--pathspec-file-nul")
	if n > fewPaths {
		args = append(s.noFilters(ctx, u), "update-index", "-q", "--ignore-submodules", "--refresh")
	}
	_, _ = s.git.run(ctx, u, call{args: args, env: env, in: &list})
}

// skip marks the files that a sparse work tree does not have, in an index that
// was from.
func (g *hostGit) skip(ctx context.Context, u *unit, from, to index, env []string) error {
	if !u.Sparse {
		return nil
	}
	var list bytes.Buffer
	for p, now := range to {
		if len(now) == 1 && now[0].skip && !slices.Equal(now, from[p]) {
			list.WriteString(p + "\x00")
		}
	}
	if list.Len() == 0 {
		return nil
	}
	_, err := g.run(ctx, u, call{args: []string{"update-index", "-z", "--skip-worktree", "--stdin"}, env: env, in: &list})
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

// installed notes, as soon as the host's index is in place, what both sides have in
// common now. If the rest of a sync then fails, the guest's next change is not taken
// for one of the human's.
func (s *Store) installed(u *unit, x *indexes) error {
	if x == nil {
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
	err := s.common(u, x, x.private)
	if !x.inner.same(x.private) {
		u.seen[1] = stamp{} // agreed has to come, in this sync or the next
	}
	return err
}

// common stores the host's index as the common one, except at paths where the
// private one differs: those keep the last common entry.
func (s *Store) common(u *unit, x *indexes, private index) error {
	u.seen, u.Apart = [2]stamp{x.now, x.stamps[1]}, map[string]string{}
	change := map[string]string{}
	for _, side := range []index{x.base, x.host, x.merged, private} {
		for p := range side {
			change[p] = lines(p, x.merged[p])
			if !slices.Equal(x.merged[p], private[p]) {
				u.Apart[p] = lines(p, x.base[p])
				change[p] = u.Apart[p]
			}
		}
	}
	u.last = patchListing(x.listed[0], change)
	if len(u.Apart) > 0 { // without which the index would be taken for the guest's
		if err := s.save(); err != nil {
			return err
		}
	}
	next := s.basePath(u) + ".new"
	if err := os.WriteFile(next, x.text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.basePath(u))
}

// agreed gives the guest the human's staged files. Their objects are pinned
// first.
func (s *Store) agreed(ctx context.Context, u *unit, x *indexes) error {
	if x == nil || x.inner.same(x.private) {
		return nil
	}
	if err := s.toPrivate(ctx, u, x); err != nil {
		return err
	}
	return s.common(u, x, x.inner)
}

// lines are entries as git lists them.
func lines(p string, list []entry) string {
	var b strings.Builder
	for _, e := range list {
		tag := "H"
		switch {
		case e.skip:
			tag = "S"
		case e.stage != '0':
			tag = "M"
		}
		fmt.Fprintf(&b, "%s %s %s %c\t%s\x00", tag, e.mode, e.id, e.stage, p)
	}
	return b.String()
}

// toPrivate gives the guest the host's index, except for entries that lie
// apart.
func (s *Store) toPrivate(ctx context.Context, u *unit, x *indexes) error {
	if err := s.pinUnit(ctx, u, s.basePath(u)); err != nil {
		return err
	}
	text := x.text
	if len(x.apart) > 0 {
		file := s.basePath(u) + ".inner"
		defer os.Remove(file)
		if err := os.WriteFile(file, x.text, 0o600); err != nil {
			return err
		}
		change := difference(x.merged, x.inner, strings.Repeat("0", u.Size))
		if _, err := s.git.run(ctx, u, call{args: []string{"update-index", "-z", "--index-info"}, env: []string{"GIT_INDEX_FILE=" + file}, in: bytes.NewReader(change)}); err != nil {
			return err
		}
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return err
		}
	}
	done, err := replace(u.private, u.at("index"), text, func() bool { return stampOf(u.private, u.at("index")) == x.stamps[1] })
	if err != nil || !done {
		return errBusy // the guest's git is at work
	}
	return s.shared(u) // the next sync reads it again: the guest's git may have followed at once
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
