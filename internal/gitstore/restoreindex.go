package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An indexPlan is what becomes of an index: the one of the snapshot, or the present
// one with changes.
type indexPlan struct {
	whole    *unitState // the snapshot that holds it, or nil
	now, new index
}

// planIndex compares the entries of three indexes: git also writes an index where it
// has only looked at files.
func (r *Restore) planIndex(p *restoring, to, after *unitState) error {
	if to.Large || after.Large || p.now.Large {
		p.change("index", "", "", "it is too large for a checkpoint")
		return nil
	}
	var three [3]index
	for i, u := range []*unitState{to, after, p.now} {
		var err error
		if three[i], err = r.entries(p.unit, u); err != nil {
			return err
		}
	}
	then, end, now := three[0], three[1], three[2]
	if then.same(now) || then.same(end) {
		return nil
	}
	next, _, apart := merge3(end, now, then)
	count := func(x index) string {
		if n := x.differs(now); n > 0 {
			return strconv.Itoa(n)
		}
		return ""
	}
	switch {
	case !p.follows(to):
		p.change("index", "", count(next), "HEAD leads elsewhere")
		return nil
	case now.same(end):
		p.index = &indexPlan{whole: to}
	case !next.same(now):
		p.index = &indexPlan{now: now, new: next}
	}
	if p.index != nil {
		p.change("index", "", count(next), "")
	}
	if len(apart) > 0 {
		p.change("index", "", strconv.Itoa(len(apart)), fmt.Sprintf("%q was staged after the session", apart[0]))
	}
	return nil
}

// differs counts the paths in which two indexes differ.
func (x index) differs(y index) (n int) {
	for p, list := range x {
		if old, there := y[p]; !there || !slices.Equal(old, list) {
			n++
		}
	}
	for p := range y {
		if _, there := x[p]; !there {
			n++
		}
	}
	return n
}

// entries lists an index of a snapshot. git reads it in a git directory of its own,
// which borrows the objects: a sparse index needs them.
func (r *Restore) entries(u *unit, of *unitState) (_ index, err error) {
	if len(of.Index["index"]) == 0 {
		return index{}, nil
	}
	dir, err := os.MkdirTemp("", "bawn-index-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files := map[string]content{"HEAD": content("ref: refs/heads/none\n"), "config": content("[core]\n\trepositoryformatversion = 0\n")}
	if u.Size == 64 {
		files["config"] = content("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n")
	}
	for _, name := range []string{"refs", "objects"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	for _, list := range []map[string]content{files, of.Index} {
		for name, text := range list {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				return nil, err
			}
		}
	}
	env := []string{"GIT_OBJECT_DIRECTORY=" + filepath.Join(u.Host, "objects")}
	text, err := r.git.run(context.Background(), &unit{Host: dir, Rel: "."}, call{args: listArgs, env: env})
	if err != nil {
		return nil, err
	}
	return parseIndex(text, u.Size)
}

// undoIndex is where the next index is made, beside the present one.
const undoIndex = "bawn-undo.index"

// putIndex writes the index. Its lock is held.
func (r *Restore) putIndex(p *restoring) error {
	u, x := p.unit, p.index
	if x == nil {
		return nil
	}
	name := u.at(undoIndex)
	_ = u.host.Remove(name) // of an undo that was killed
	if x.whole == nil {
		if err := r.mergeIndex(u, x, name); err != nil {
			return err
		}
		return u.host.Rename(name, u.at("index"))
	}
	for part, text := range x.whole.Index {
		if part != "index" && !exists(u.host, u.at(part)) {
			if err := putFile(u.host, u.at(part), text, u.at("HEAD")); err != nil {
				return err
			}
		}
	}
	text, there := x.whole.Index["index"]
	if !there {
		return u.host.Remove(u.at("index"))
	}
	if err := putFile(u.host, name, text, u.at("HEAD")); err != nil {
		return err
	}
	when := time.Unix(0, x.whole.IndexTime) // what git takes for changed at the same moment depends on it
	if err := u.host.Chtimes(name, when, when); err != nil {
		return err
	}
	return u.host.Rename(name, u.at("index"))
}

// mergeIndex makes the joined index of the present one.
func (r *Restore) mergeIndex(u *unit, x *indexPlan, name string) error {
	if err := copyAs(u.host, u.at("index"), u.host, name); err != nil {
		return err
	}
	ctx, env := context.Background(), []string{"GIT_INDEX_FILE=" + filepath.Join(u.Host, name)}
	change := difference(x.now, x.new, strings.Repeat("0", u.Size))
	if _, err := r.git.run(ctx, u, call{args: []string{"update-index", "-z", "--index-info"}, env: env, in: bytes.NewReader(change)}); err != nil {
		return err
	}
	if err := r.git.skip(ctx, u, x.now, x.new, env); err != nil {
		return err
	}
	fi, err := u.host.Stat(u.at("HEAD"))
	if err != nil {
		return err
	}
	return u.host.Chmod(name, fi.Mode().Perm())
}

// putFile makes a new file with the mode of another.
func putFile(root *os.Root, name string, text []byte, like string) error {
	fi, err := root.Stat(like)
	if err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Chmod(fi.Mode().Perm()), f.Close())
}
