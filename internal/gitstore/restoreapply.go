package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Apply does what Changes lists, and no conflict. Commits to which nothing else
// will lead stay at a ref below refs/bawn/. If the repository has changed since
// PlanRestore, or another git is at work, Apply errs and writes nothing in that git
// directory. After any error a new PlanRestore leads on to the same end.
func (r *Restore) Apply() error {
	for _, p := range r.units {
		if p.unit == nil || p.idle() {
			continue
		}
		if err := r.apply(p); err != nil {
			return fmt.Errorf("restore %q: %w", p.unit.Host, err)
		}
	}
	return nil
}

// idle reports whether there is nothing to do.
func (p *restoring) idle() bool {
	return !slices.ContainsFunc(p.changes, func(c RefChange) bool { return !c.Conflict })
}

func (r *Restore) apply(p *restoring) (err error) {
	u := p.unit
	if u.host, err = os.OpenRoot(u.Host); err != nil {
		return err
	}
	defer u.host.Close()
	if p.again != nil {
		return r.makeTree(p)
	}
	l, err := lockUndo(u)
	if err != nil {
		return err
	}
	defer l.unlock()
	sn := &snapshot{}
	if err := sn.unit(u.Host, p.now.Dir, u.Rel, p.tree); err != nil {
		return err
	}
	if len(sn.Units) != 1 || !r.unchanged(p, sn.Units[0]) {
		return errors.New("the repository has changed since it was compared; look at the changes again")
	}
	if p.gone {
		return r.removeTree(p)
	}
	for _, step := range []func(*restoring) error{r.pinLost, r.putHead, r.putRefs, r.putStash, r.putState, r.putIndex} {
		if err := step(p); err != nil {
			return err
		}
	}
	return nil
}

// unchanged reports whether a git directory is as it was compared. An index that git
// has written again is, if its entries are the same.
func (r *Restore) unchanged(p *restoring, now *unitState) bool {
	was := *p.now
	if !reflect.DeepEqual(now.Index, was.Index) {
		x, err1 := r.entries(p.unit, now)
		y, err2 := r.entries(p.unit, &was)
		if err1 != nil || err2 != nil || !x.same(y) {
			return false
		}
	}
	was.Index, was.IndexTime = now.Index, now.IndexTime
	if p.tree {
		was.Refs, was.WorkTree = now.Refs, now.WorkTree
	}
	return reflect.DeepEqual(now, &was)
}

// lockUndo takes the lock of the index. A lock left by a killed undo is recognised
// by the second name of its file, which no process holds.
func lockUndo(u *unit) (*hostLock, error) {
	l := &hostLock{own: filepath.Join(u.gitDir(), "bawn-undo.lock"), lock: filepath.Join(u.gitDir(), "index.lock")}
	f, err := os.OpenFile(l.own, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the index: %w", err)
	}
	l.held = f
	if err := flock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the index: another undo is at work: %w", err), f.Close())
	}
	mine, err := f.Stat()
	if old, err2 := os.Lstat(l.lock); err == nil && err2 == nil && os.SameFile(mine, old) {
		err = os.Remove(l.lock)
	}
	if err = errors.Join(err, os.Link(l.own, l.lock)); err != nil {
		l.lock = ""
		l.unlock()
		if errors.Is(err, os.ErrExist) {
			return nil, errBusy
		}
		return nil, fmt.Errorf("lock the index: %w", err)
	}
	return l, nil
}

// moves are the refs that are moved here.
func (p *restoring) moves() []move {
	if p.tree {
		return nil
	}
	return p.refs
}

// pinLost keeps the present targets of refs and index to which nothing else
// will lead.
func (r *Restore) pinLost(p *restoring) error {
	var lost []move
	for _, m := range p.moves() {
		lost = append(lost, move{name: strings.TrimPrefix(m.name, "refs/"), old: m.old})
	}
	if p.stashes {
		for _, id := range stackIDs(p.now.stack()) {
			lost = append(lost, move{name: "stash/" + id[:12], old: id})
		}
	}
	if p.head != "" {
		lost = append(lost, move{name: "HEAD", old: p.now.Head})
	}
	if p.index != nil {
		id, err := r.indexTree(p.unit)
		if err != nil {
			return err
		}
		lost = append(lost, move{name: "index", old: id})
	}
	return r.keepLost(p, lost)
}

// indexTree writes the tree of the present index, or returns "" for one with
// conflicts, which has no tree. git takes a lock for that: the index is a copy.
func (r *Restore) indexTree(u *unit) (string, error) {
	if err := copyAs(u.host, u.at("index"), u.host, u.at(undoIndex)); err != nil {
		return "", err
	}
	defer func() { _ = u.host.Remove(u.at(undoIndex)) }()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(u.gitDir(), undoIndex)}
	out, err := r.git.run(context.Background(), u, call{args: []string{"write-tree"}, env: env})
	if id := strings.TrimSpace(string(out)); err == nil && isID(id, u.Size) {
		return id, nil
	}
	return "", nil
}

// stays reports whether an object is still reached when the refs are restored.
func (r *Restore) stays(p *restoring, id string) bool {
	final := maps.Clone(p.now.Refs)
	for _, m := range p.refs {
		final[m.name] = m.new
	}
	delete(final, stashRef)
	var in strings.Builder
	for _, l := range p.kept() {
		final["stash "+l] = l
	}
	for _, to := range final {
		if to != "" && branchOf(to) == "" {
			in.WriteString("^" + to + "\n")
		}
	}
	in.WriteString(id + "\n")
	args := []string{"rev-list", "--objects", "--stdin", "-n", "1"}
	if p.unit.Partial {
		args = append(args, "--exclude-promisor-objects")
	}
	out, err := r.git.run(context.Background(), p.unit, call{args: args, in: strings.NewReader(in.String())})
	return err == nil && len(bytes.TrimSpace(out)) == 0
}

// kept are the IDs of the stashes that will be there.
func (p *restoring) kept() []string {
	if p.stashes {
		return stackIDs(p.stash)
	}
	return stackIDs(p.now.stack())
}

// updateRefs applies update-ref's input, all of it or nothing.
func (r *Restore) updateRefs(u *unit, text io.Reader) error {
	_, err := r.git.run(context.Background(), u, call{args: []string{"update-ref", "--stdin", "-z", "--no-deref", "-m", "bawn undo"}, in: text})
	return err
}

// putHead moves HEAD.
func (r *Restore) putHead(p *restoring) error {
	if p.head == "" {
		return nil
	}
	args := []string{"update-ref", "--no-deref", "-m", "bawn undo", "HEAD", p.head}
	if ref := branchOf(p.head); ref != "" {
		args = []string{"symbolic-ref", "-m", "bawn undo", "HEAD", ref}
	}
	_, err := r.git.run(context.Background(), p.unit, call{args: args})
	return err
}

// putRefs moves the refs, each from the value that was compared. Deleted refs
// make room first: refs/heads/a for refs/heads/a/b.
func (r *Restore) putRefs(p *restoring) error {
	var gone, come bytes.Buffer
	for _, m := range p.moves() {
		switch {
		case m.new == "" && branchOf(m.old) == "":
			fmt.Fprintf(&gone, "delete %s\x00%s\x00", m.name, m.old)
		case m.new == "":
			fmt.Fprintf(&gone, "delete %s\x00\x00", m.name)
		case branchOf(m.new) != "":
			if _, err := r.git.run(context.Background(), p.unit, call{args: []string{"symbolic-ref", m.name, branchOf(m.new)}}); err != nil {
				return err
			}
		case m.old == "":
			fmt.Fprintf(&come, "create %s\x00%s\x00", m.name, m.new)
		default:
			old := m.old
			if branchOf(old) != "" {
				old = ""
			}
			fmt.Fprintf(&come, "update %s\x00%s\x00%s\x00", m.name, m.new, old)
		}
	}
	return errors.Join(r.updateRefs(p.unit, &gone), r.updateRefs(p.unit, &come))
}

// putStash writes the stack of stashes: the ref by git, and the reflog, which is the
// stack, under git's lock for it.
func (r *Restore) putStash(p *restoring) error {
	if !p.stashes {
		return nil
	}
	u, now := p.unit, p.now.Refs[stashRef]
	if len(p.stash) == 0 {
		return r.updateRefs(u, strings.NewReader("delete "+stashRef+"\x00"+now+"\x00"))
	}
	top := stackIDs(p.stash)[len(p.stash)-1]
	if err := r.updateRefs(u, strings.NewReader("update "+stashRef+"\x00"+top+"\x00"+now+"\x00")); err != nil {
		return err
	}
	old, text := strings.Repeat("0", u.Size), strings.Builder{}
	for _, l := range p.stash {
		id, _, _ := strings.Cut(l, " ")
		text.WriteString(old + " " + l + "\n")
		old = id
	}
	done, err := replace(u.host, "logs/"+stashRef, []byte(text.String()), func() bool {
		t, err := readRefs(u.host, u.Size)
		return err == nil && t.refs[stashRef] == top
	})
	if err == nil && !done {
		err = errBusy
	}
	return err
}

// putState restores git's open operation.
func (r *Restore) putState(p *restoring) error {
	if !p.states {
		return nil
	}
	u := p.unit
	for name := range p.now.State {
		if _, stays := p.state[name]; !stays {
			if err := u.host.Remove(u.at(name)); err != nil && !missing(err) {
				return err
			}
		}
	}
	for name, text := range p.state {
		at := u.at(name)
		if err := u.host.MkdirAll(path.Dir(at), 0o755); err != nil {
			return err
		}
		if err := u.host.Remove(at); err != nil && !missing(err) {
			return err
		}
		if err := putFile(u.host, at, text, u.at("HEAD")); err != nil {
			return err
		}
	}
	for _, dir := range openDirs {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(p.state)), func(name string) bool { return strings.HasPrefix(name, dir+"/") }) {
			if err := u.host.RemoveAll(u.at(dir)); err != nil {
				return err
			}
		}
	}
	return nil
}
