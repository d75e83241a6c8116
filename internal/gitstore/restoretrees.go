package gitstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sameHead reports whether a worktree is at the commit, and the branch, at which the
// session has left it.
func sameHead(n *unitState, end, now *snapshot) bool {
	branch := branchOf(n.Head)
	return n.Head == end.unitOf(n).Head && (branch == "" || now.Units[0].Refs[branch] == end.Units[0].Refs[branch])
}

// planTrees plans to remove the linked worktrees in the workspace that the session has
// added: those that were there at its end and are not part of the snapshot. One in
// which the human has gone on stays, with its branch.
func (r *Restore) planTrees(common string, then, end, now *snapshot) (list []*restoring, err error) {
	for _, n := range now.Units {
		if !n.Tree || then.unitOf(n) != nil || end.unitOf(n) == nil {
			continue
		}
		u := &unit{Host: common, Rel: n.Rel, WorkTree: n.WorkTree, Tree: true, Size: n.Size}
		same, err := r.sameIndex(u, end.unitOf(n), n)
		if err != nil {
			return nil, err
		}
		why := ""
		if !same || !sameHead(n, end, now) {
			why = changedSince
		} else {
			r.heads = append(r.heads, n.Head)
		}
		p := &restoring{unit: u, now: n, tree: true, gone: true}
		p.change(n.Rel, n.Head, "", why)
		n.Refs = now.Units[0].Refs
		list = append(list, p)
	}
	return list, nil
}

// sameIndex reports whether two indexes have the same entries.
func (r *Restore) sameIndex(u *unit, a, b *unitState) (bool, error) {
	x, err1 := r.entries(u, a)
	y, err2 := r.entries(u, b)
	return x.same(y), errors.Join(err1, err2)
}

// GoneTrees are the directories of worktrees that Apply removes, where nothing else of
// them stays.
func (r *Restore) GoneTrees() (dirs []string) {
	for _, p := range r.units {
		if p.gone && !p.idle() {
			dirs = append(dirs, p.unit.WorkTree)
		}
	}
	return dirs
}

// removeTree removes a worktree's part of the git directory and its .git file. The
// caller has seen that it is as it was compared.
func (r *Restore) removeTree(p *restoring) error {
	u := p.unit
	lost := []move{{name: u.Rel, old: p.now.Head}}
	id, err := r.indexTree(u)
	if err != nil {
		return err
	}
	if err := r.keepLost(p, append(lost, move{name: u.Rel + "-index", old: id})); err != nil {
		return err
	}
	if back, err := pointer(filepath.Join(u.WorkTree, ".git"), "gitdir: ", u.WorkTree); err == nil && back == u.gitDir() {
		if err := os.Remove(filepath.Join(u.WorkTree, ".git")); err != nil {
			return err
		}
	}
	_ = os.Remove(u.WorkTree) // where files of the human's are in it, they stay
	return u.host.RemoveAll(u.Rel)
}

// planTree plans to make a worktree again that an undo has removed.
func (r *Restore) planTree(common string, to *unitState) {
	u := &unit{Host: filepath.Join(common, to.Dir), Rel: to.Rel, WorkTree: to.WorkTree, Tree: true, Size: to.Size}
	p := &restoring{unit: u, now: &unitState{Rel: to.Rel, Tree: true}, tree: true, again: to}
	p.change(to.Rel, "", to.Head, "")
	r.units = append(r.units, p)
}

// makeTree makes it, in a directory that the undo of the files has brought back.
func (r *Restore) makeTree(p *restoring) error {
	u, to := p.unit, p.again
	u.Head = to.Head
	if exists(u.host, u.Rel) || u.Head == "" {
		return errors.New("the repository has changed since it was compared; look at the changes again")
	}
	if branch := branchOf(u.Head); branch != "" && u.taken()[branch] {
		return fmt.Errorf("the worktree %q can't come back: %q is checked out elsewhere", u.WorkTree, branch)
	}
	dir, err := os.OpenRoot(u.WorkTree)
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := dir.OpenFile(".git", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("make the worktree %q again: %w", u.WorkTree, err)
	}
	_, err = f.WriteString("gitdir: " + u.gitDir() + "\n")
	if err = errors.Join(err, f.Close(), u.makeAdmin()); err != nil {
		return err
	}
	return r.putIndex(&restoring{unit: u, index: &indexPlan{whole: to}})
}

// keepLost makes refs for the objects among those lost to which nothing else will
// lead.
func (r *Restore) keepLost(p *restoring, lost []move) error {
	var text strings.Builder
	for _, m := range lost {
		if m.old == "" || branchOf(m.old) != "" || r.stays(p, m.old) {
			continue
		}
		fmt.Fprintf(&text, "create %s%s\x00%s\x00", r.pins, m.name, m.old)
	}
	return r.updateRefs(p.unit, strings.NewReader(text.String()))
}
