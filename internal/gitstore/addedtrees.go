package gitstore

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// addTrees makes the host's part of worktrees that the guest has added: their branch
// is the repository's, and the sync that follows publishes HEAD and the index. Nothing
// of the guest's is taken over here but the names of the worktree and its branch. It
// returns what could not be done.
func (s *Store) addTrees() (failed []string) {
	for _, l := range s.madeLinks() {
		if !s.isTree(l) || s.treeAt(l.to) != nil {
			continue
		}
		if err := s.addTree(l); err != nil {
			failed = append(failed, fmt.Sprintf("the worktree %q could not be published: %v", l.dir, err))
		}
	}
	return failed
}

// treeAt is the unit of a worktree that the guest has added.
func (s *Store) treeAt(rel string) *unit {
	for _, u := range s.Units {
		if u.Tree && u.Added && u.Rel == rel {
			return u
		}
	}
	return nil
}

// isTree reports whether a link comes from a directory that is what its path says, and
// leads to a worktree that the host can have: under a name that it does not have yet,
// at a branch that no other of its worktrees is at. A sparse one is left out: its
// settings are the guest's.
func (s *Store) isTree(l madeLink) bool {
	top := s.Units[0]
	if path.Dir(l.to) != "worktrees" || !moduleName(path.Base(l.to)) || l.dir == s.Repo.Workspace || strings.ContainsFunc(l.dir, unicode.IsControl) {
		return false
	}
	for _, name := range []string{"worktrees", l.to} {
		if fi, err := top.private.Lstat(name); err != nil || !fi.IsDir() {
			return false
		}
	}
	real, err := filepath.EvalSymlinks(l.dir)
	if err != nil || real != l.dir || exists(top.private, path.Join(l.to, "info/sparse-checkout")) {
		return false
	}
	taken, _ := readDir(top.host, "worktrees") // there may be none
	if slices.ContainsFunc(taken, func(e os.DirEntry) bool { return strings.EqualFold(e.Name(), path.Base(l.to)) }) {
		return false
	}
	head, err := readHead(top.private, l.to, top.Size)
	return err == nil && s.canBe(head)
}

// canBe reports whether a worktree of the host's can be at the guest's HEAD.
func (s *Store) canBe(head string) bool {
	branch := branchOf(head)
	if branch == "" {
		return true
	}
	u := &unit{Host: s.Units[0].Host, host: s.Units[0].host, Rel: "worktrees/.", Size: s.Units[0].Size}
	return strings.HasPrefix(branch, "refs/heads/") && nameOK(branch) == nil && !u.taken()[branch]
}

// addTree makes one: with the guest's branch, or at the repository's commit where the
// guest's HEAD is detached.
func (s *Store) addTree(l madeLink) (err error) {
	top := s.Units[0]
	if len(s.Units) > maxUnits {
		return errTooMuch
	}
	u := &unit{Host: top.Host, Private: top.Private, Rel: l.to, WorkTree: l.dir, Tree: true, Added: true, Size: top.Size, Partial: top.Partial, Fold: top.Fold, told: map[string]bool{}, n: len(s.Units)}
	u.shares(top)
	if u.Head, err = readHead(top.private, l.to, top.Size); err != nil {
		return err
	}
	if branchOf(u.Head) == "" {
		host, err := look(top.host, top.Rel, top.Size)
		if err != nil {
			return err
		}
		if u.Head = host.value(host.head); u.Head == "" {
			return nil // the host has no commit yet
		}
	}
	if u.private, err = top.private.OpenRoot("."); err != nil {
		return err
	}
	if u.host, err = top.host.OpenRoot("."); err != nil {
		return errors.Join(err, u.private.Close())
	}
	s.Units = append(s.Units, u)
	if err := s.save(); err != nil { // so that a kill leaves nothing that is not known
		return err
	}
	return u.makeAdmin()
}

// makeAdmin makes the files by which git knows a worktree; see gitrepository-layout(5).
// It errs where there is one of the name.
func (u *unit) makeAdmin() error {
	if err := u.host.MkdirAll("worktrees", 0o755); err != nil {
		return err
	}
	if err := u.host.Mkdir(u.Rel, 0o755); err != nil {
		return err
	}
	for _, file := range [][2]string{{"gitdir", filepath.Join(u.WorkTree, ".git")}, {"commondir", "../.."}, {"HEAD", u.Head}} {
		if err := u.host.WriteFile(u.at(file[0]), []byte(file[1]+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ownAdmin reports whether makeAdmin has made the host's part: the human's git may have
// made one under the same name.
func (u *unit) ownAdmin() bool {
	text, err := readFile(u.host, u.at("gitdir"), maxSmall)
	return err == nil && string(text) == filepath.Join(u.WorkTree, ".git")+"\n"
}

// dropAdmin removes what makeAdmin has made.
func (u *unit) dropAdmin() error {
	if !u.ownAdmin() {
		return nil
	}
	return u.host.RemoveAll(u.Rel)
}

// endTree has the .git file of a worktree that the guest has added lead to the host's
// part of it. Where the branch or the index could not be published, that part is
// removed, and done is false.
func (s *Store) endTree(u *unit, l madeLink) (done bool, err error) {
	if u.WorkTree != l.dir || u.dropped() || !u.complete() {
		return false, u.dropAdmin()
	}
	dir, err := os.OpenRoot(l.dir)
	if err != nil {
		return false, errors.Join(err, u.dropAdmin())
	}
	defer dir.Close()
	done, err = replace(dir, ".git", []byte("gitdir: "+u.gitDir()+"\n"), func() bool {
		fi, err := dir.Lstat(".git")
		return err == nil && fi.Mode().IsRegular() && fi.Size() == 0
	})
	if err != nil || !done {
		return false, errors.Join(err, u.dropAdmin())
	}
	return true, s.guest.drop(l.made)
}

// complete reports whether the host has of a worktree what the guest has.
func (u *unit) complete() bool {
	host, err := look(u.host, u.Rel, u.Size)
	if err != nil || !exists(u.host, u.at("index")) {
		return false
	}
	private, err := look(u.private, u.Rel, u.Size)
	return err == nil && host.head == private.head && host.value(host.head) != "" && host.value(host.head) == private.value(private.head)
}
