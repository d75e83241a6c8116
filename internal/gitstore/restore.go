package gitstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A RefChange is the change that a Restore makes to one ref, HEAD, the index
// ("index"), the stashes ("refs/stash"), or an open rebase, merge or bisect
// ("state"). The name of a submodule's begins with its directory.
type RefChange struct {
	Name     string `json:"name"`
	From     string `json:"from"` // object ID, "ref: " and a name, or "" for nothing; a number of paths for the index
	To       string `json:"to"`
	Conflict bool   `json:"conflict,omitempty"` // it stays as it is
	Why      string `json:"why,omitempty"`      // of a conflict
}

// A Restore takes a repository back to a snapshot.
type Restore struct {
	gitDir    string
	git       *hostGit
	pins      string // begins the names of refs that keep what would be lost
	units     []*restoring
	heads     []string // of worktrees that are restored too
	uncovered []string
}

// A restoring is the restoration of one git directory.
type restoring struct {
	unit    *unit
	now     *unitState
	tree    bool // a worktree: the refs are those of the repository, which moves them
	changes []RefChange
	refs    []move
	head    string   // the wanted HEAD, or "" to leave it
	stash   []string // the stack, if stashes is set
	stashes bool
	index   *indexPlan
	state   map[string]content // if states is set
	states  bool
	gone    bool       // a worktree that is removed
	again   *unitState // a worktree that is made as it was, or nil
}

const changedSince = "it was changed after the session"

// PlanRestore compares a repository with a snapshot that it is to return to. after is
// the snapshot of the session's end: later changes are the human's and stay. If after
// is nil, every difference is taken for the session's. git is looked for in the
// directories of programs (PATH) outside of the workspace. Nothing is written. Files
// of the workspace are to be restored before Apply.
func PlanRestore(gitDir, programs string, to, after json.RawMessage) (*Restore, error) {
	r, err := planRestore(gitDir, programs, to, after)
	if err != nil {
		return nil, fmt.Errorf("compare %q with a checkpoint: %w", gitDir, err)
	}
	return r, nil
}

func planRestore(gitDir, programs string, to, after json.RawMessage) (*Restore, error) {
	then, err := readSnapshot(to)
	if err != nil {
		return nil, fmt.Errorf("the checkpoint: %w", err)
	}
	now, err := takeSnapshot(gitDir)
	if err != nil {
		return nil, err
	}
	end := now
	if after != nil {
		if end, err = readSnapshot(after); err != nil {
			return nil, fmt.Errorf("the checkpoint of the session's end: %w", err)
		}
	}
	common, _, err := commonOf(gitDir)
	if err != nil {
		return nil, err
	}
	r := &Restore{gitDir: gitDir, pins: ownRefs + "undo-" + time.Now().UTC().Format("20060102T150405.000Z") + "/", uncovered: slices.Concat(then.Uncovered, now.Uncovered)}
	if r.git, err = findGit(programs, filepath.Dir(common)); err != nil {
		return nil, err
	}
	for _, t := range then.Units {
		if n := now.unitOf(t); t.Tree && n != nil {
			r.heads = append(r.heads, n.Head)
		}
	}
	trees, err := r.planTrees(common, then, end, now)
	if err != nil {
		return nil, err
	}
	for _, t := range then.Units {
		if t.Tree && len(r.units) > 0 && r.units[0].now != nil {
			t.Refs = then.Units[0].Refs
		}
		if err := r.plan(common, t, end.unitOf(t), now.unitOf(t)); err != nil {
			return nil, err
		}
	}
	r.units = append(r.units, trees...)
	return r, nil
}

// unitOf finds the state of the same git directory, or returns nil.
func (sn *snapshot) unitOf(like *unitState) *unitState {
	for _, u := range sn.Units {
		if u.Dir == like.Dir && u.Rel == like.Rel && u.Size == like.Size {
			return u
		}
	}
	return nil
}

// Changes lists what Apply does, and the conflicts.
func (r *Restore) Changes() []RefChange {
	var list []RefChange
	for _, p := range r.units {
		list = append(list, p.changes...)
	}
	return list
}

// Uncovered lists the parts that a snapshot does not hold, with the reason.
func (r *Restore) Uncovered() []string {
	return slices.Compact(slices.Sorted(slices.Values(r.uncovered)))
}

// plan compares one git directory.
func (r *Restore) plan(common string, to, after, now *unitState) error {
	if now == nil && to.Tree && after == nil && r.units[0].now != nil {
		r.planTree(common, to)
		return nil
	}
	if now == nil || to.Tree && r.units[0].now == nil {
		r.units = append(r.units, &restoring{changes: []RefChange{{Name: path.Join(to.Dir, to.Rel), Conflict: true, Why: "this git directory is missing now"}}})
		return nil
	}
	if after == nil {
		after = now
	}
	root, err := os.OpenRoot(filepath.Join(common, to.Dir))
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := formatAt(root)
	if err != nil {
		return err
	}
	u := &unit{Host: filepath.Join(common, to.Dir), Rel: to.Rel, Size: to.Size, Partial: f.partial, Sparse: f.sparse, host: root}
	p := &restoring{unit: u, now: now}
	defer func() { u.host = nil }()
	if to.Tree {
		p.tree, p.refs, now.Refs = true, r.units[0].refs, r.units[0].now.Refs
	} else {
		r.planRefs(p, to, after)
		p.planStash(to, after)
	}
	p.planHead(to, after)
	if err := r.planIndex(p, to, after); err != nil {
		return fmt.Errorf("the index: %w", err)
	}
	p.planState(to, after)
	if at := path.Join(to.Dir, to.Rel); to.Dir != "." || to.Tree {
		for i := range p.changes {
			p.changes[i].Name = at + "/" + p.changes[i].Name
		}
	}
	r.units = append(r.units, p)
	return nil
}

// differs compares the three values. It returns no change if they are the same or the
// session has not changed the value, a change, or a conflict.
func differs(to, after, now string) (change, conflict bool) {
	return now != to && to != after, now != after
}

// planRefs compares the refs, but for the stack of stashes.
func (r *Restore) planRefs(p *restoring, to, after *unitState) {
	taken := p.unit.taken()
	for _, head := range r.heads {
		delete(taken, branchOf(head))
	}
	names := maps.Clone(to.Refs)
	maps.Copy(names, p.now.Refs)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		m := move{name: name, old: p.now.Refs[name], new: to.Refs[name]}
		change, conflict := differs(m.new, after.Refs[name], m.old)
		if !change || name == stashRef {
			continue
		}
		switch {
		case conflict:
			m.why = changedSince
		case taken[name]:
			m.why = "another worktree has it checked out"
		case m.new != "" && !r.complete(p.unit, m.new):
			m.why = "objects of it are gone"
		default:
			p.refs = append(p.refs, m)
		}
		p.change(name, m.old, m.new, m.why)
	}
}

func (p *restoring) change(name, from, to, why string) {
	p.changes = append(p.changes, RefChange{Name: name, From: from, To: to, Conflict: why != "", Why: why})
}

// complete reports whether everything is there that an object leads to.
func (r *Restore) complete(u *unit, id string) bool {
	if branchOf(id) != "" {
		return true // a ref that names another
	}
	args := []string{"rev-list", "--objects", "--quiet", id, "--not", "--all"}
	if u.Partial {
		args = append(args, "--exclude-promisor-objects")
	}
	_, err := r.git.run(context.Background(), u, call{args: args})
	return err == nil
}

// planHead compares HEAD.
func (p *restoring) planHead(to, after *unitState) {
	change, conflict := differs(to.Head, after.Head, p.now.Head)
	if !change {
		return
	}
	why := ""
	if conflict {
		why = changedSince
	} else {
		p.head = to.Head
	}
	p.change("HEAD", p.now.Head, to.Head, why)
}

// follows reports whether HEAD will lead to the commit to which it led then: the
// index and an open merge belong to that.
func (p *restoring) follows(to *unitState) bool {
	after := maps.Clone(p.now.Refs)
	for _, m := range p.refs {
		after[m.name] = m.new
	}
	value := func(head string, in refs) string {
		if ref := branchOf(head); ref != "" {
			return in[ref]
		}
		return head
	}
	return value(cmp.Or(p.head, p.now.Head), after) == value(to.Head, to.Refs)
}

// planStash compares the stacks of stashes. Later ones of the human stay on top.
func (p *restoring) planStash(to, after *unitState) {
	then, end, now := to.stack(), after.stack(), p.now.stack()
	ids := func(list []string) string { return strings.Join(stackIDs(list), " ") }
	change, conflict := differs(ids(then), ids(end), ids(now))
	if !change {
		return
	}
	why := ""
	if conflict {
		if len(now) < len(end) || ids(now[:len(end)]) != ids(end) {
			why = changedSince
		} else {
			then = slices.Concat(then, now[len(end):])
		}
	}
	if why == "" {
		p.stash, p.stashes = then, true
	}
	p.change(stashRef, p.now.Refs[stashRef], to.Refs[stashRef], why)
}

// stack is the stack of stashes, the oldest first, as lines of a reflog.
func (u *unitState) stack() []string {
	id := u.Refs[stashRef]
	if id == "" {
		return nil
	}
	var list []string
	for line := range strings.Lines(u.Stash) {
		if f := strings.SplitN(line, " ", 3); len(f) == 3 && isID(f[1], u.Size) {
			list = append(list, f[1]+" "+strings.TrimRight(f[2], "\n"))
		}
	}
	if len(list) == 0 || !strings.HasPrefix(list[len(list)-1], id) {
		return []string{id + " bawn <bawn@localhost> 0 +0000\tstash"}
	}
	return list
}

// planState compares what git has open.
func (p *restoring) planState(to, after *unitState) {
	same := func(a, b map[string]content) bool {
		return maps.EqualFunc(a, b, func(x, y content) bool { return string(x) == string(y) })
	}
	if same(p.now.State, to.State) || same(to.State, after.State) {
		return
	}
	why := ""
	switch {
	case !same(p.now.State, after.State):
		why = changedSince
	case !p.follows(to):
		why = "HEAD leads elsewhere"
	default:
		p.state, p.states = to.State, true
	}
	open := func(s map[string]content) string { return slices.Min(append(slices.Collect(maps.Keys(s)), "~")) }
	p.change("state", strings.Trim(open(p.now.State), "~"), strings.Trim(open(to.State), "~"), why)
}
