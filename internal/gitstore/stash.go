package gitstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
)

// maxStashes bounds the stack.
const maxStashes = 10_000

// stashes lists the stack of stashes, the oldest first: "ID message".
func stashes(root *os.Root, size int) []string {
	text, err := readFile(root, "logs/"+stashRef, maxLog)
	if err != nil {
		return nil
	}
	return parseLog(text, size)
}

// parseLog reads a reflog: the object ID that each line led to, and its message.
func parseLog(text []byte, size int) []string {
	var list []string
	for line := range bytes.Lines(text) {
		if len(list) == maxStashes {
			break
		}
		words, said, _ := strings.Cut(strings.TrimRight(string(line), "\n"), "\t")
		if f := strings.SplitN(words, " ", 3); len(f) == 3 && isID(f[1], size) {
			list = append(list, strings.TrimRight(f[1]+" "+message([]byte(said)), " "))
		}
	}
	return list
}

// stackIDs are the object IDs of a stack.
func stackIDs(list []string) []string {
	out := make([]string, len(list))
	for i, l := range list {
		out[i], _, _ = strings.Cut(l, " ")
	}
	return out
}

// stackOf is the stack of one side; one without a reflog has the ref alone.
func stackOf(root *os.Root, t *refTree, size int) []string {
	id := t.refs[stashRef]
	if id == "" {
		return nil
	}
	list := stashes(root, size)
	if len(list) == 0 || !strings.HasPrefix(list[len(list)-1], id) {
		return []string{id}
	}
	return list
}

// A stack is the plan for stashes.
type stack struct {
	now    []string // the guest's
	pops   []string // IDs of the session's own that the guest has dropped, the newest first
	pushes []string // "ID message"
	asks   []string // IDs of the human's that the guest has dropped
	beside bool     // the host can do nothing with it
	why    string   // of beside, where the human has not changed the stack too
	pull   []string // the human's, where only that has changed
	pulled bool
}

// stack compares the stacks of both sides with the one that they had.
func (u *unit) stack(host, private *side) stack {
	st := stack{now: stackOf(u.private, private.tree, u.Size)}
	theirs := slices.DeleteFunc(stackOf(u.host, host.tree, u.Size), func(l string) bool { return slices.Contains(u.Dropped, stackIDs([]string{l})[0]) })
	mine := slices.Equal(stackIDs(st.now), stackIDs(u.Stash))
	switch {
	case slices.Equal(stackIDs(theirs), stackIDs(st.now)), mine && slices.Equal(stackIDs(theirs), stackIDs(u.Stash)):
		u.theirs(theirs)
		u.Stash = st.now
		return st
	case mine:
		st.pull, st.pulled = theirs, true
		return st
	}
	same := 0
	ids, old := stackIDs(st.now), stackIDs(u.Stash)
	for same < min(len(ids), len(old)) && ids[same] == old[same] {
		same++
	}
	st.pushes = st.now[same:]
	st.beside = !slices.Equal(stackIDs(theirs), old)
	for _, l := range u.Stash[same:] {
		if id := stackIDs([]string{l})[0]; slices.Contains(u.Stashed, id) {
			st.asks = append(st.asks, id)
		} else {
			st.pops = append([]string{id}, st.pops...)
		}
	}
	return st
}

// stashOut repeats the guest's stash operations on the host. Their objects are
// there.
func (s *Store) stashOut(ctx context.Context, u *unit, st stack) error {
	if st.pulled || slices.Equal(stackIDs(st.now), stackIDs(u.Stash)) {
		return nil
	}
	if len(st.asks) > 0 {
		u.Dropped = append(u.Dropped, st.asks...)
		s.tell(u, &s.report.Questions, fmt.Sprintf("the guest has dropped %d stashes of yours; they are still there (git stash list)", len(st.asks)))
	}
	if st.beside {
		for _, l := range st.pushes {
			id, _, _ := strings.Cut(l, " ")
			if err := s.beside(ctx, u, "refs/stash/"+id[:12], id, stashRef, cmp.Or(st.why, "stashes were made on both sides")); err != nil {
				return err
			}
		}
		u.Stash = st.now
		return nil
	}
	u.Stash = slices.DeleteFunc(slices.Clone(u.Stash), func(l string) bool { return slices.Contains(st.asks, stackIDs([]string{l})[0]) })
	for _, id := range st.pops {
		if err := s.pop(ctx, u, id); err != nil {
			return err
		}
	}
	for _, l := range st.pushes {
		if err := s.push(ctx, u, l); err != nil {
			return err
		}
	}
	u.Stash = st.now
	return nil
}

// theirs records new entries of the host's stack as the human's.
func (u *unit) theirs(list []string) {
	known := append(stackIDs(u.Stash), u.Stashed...)
	for _, id := range stackIDs(list) {
		if !slices.Contains(known, id) {
			u.Stashed = append(u.Stashed, id)
		}
	}
}

// hostStack reads the host's stack again. It errs with errBusy where the human has
// changed it since it was compared: to bring objects may have taken minutes.
func (s *Store) hostStack(u *unit) ([]string, error) {
	t, err := readRefs(u.host, u.Size)
	if err != nil {
		return nil, err
	}
	all := stackIDs(stackOf(u.host, t, u.Size))
	left := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(u.Dropped, id) })
	if !slices.Equal(left, stackIDs(u.Stash)) {
		return nil, errBusy
	}
	return all, nil
}

// pop drops one stash of the session's on the host.
func (s *Store) pop(ctx context.Context, u *unit, id string) error {
	all, err := s.hostStack(u)
	if err != nil {
		return err
	}
	at := len(all) - 1
	for at >= 0 && all[at] != id {
		at--
	}
	if at < 0 {
		return errBusy
	}
	args := []string{"reflog", "delete", "--updateref", "--rewrite", fmt.Sprintf("%s@{%d}", stashRef, len(all)-1-at)}
	if len(all) == 1 {
		args = []string{"update-ref", "-d", stashRef, id}
	}
	if _, err := s.git.run(ctx, u, call{args: args}); err != nil {
		return err
	}
	s.report.Published++
	for i := len(u.Stash) - 1; i >= 0; i-- {
		if stackIDs(u.Stash[i : i+1])[0] == id {
			u.Stash = slices.Delete(slices.Clone(u.Stash), i, i+1)
			break
		}
	}
	return nil
}

// push puts one stash of the guest's on the host's stack. An entry that the
// guest has dropped before is still there.
func (s *Store) push(ctx context.Context, u *unit, line string) error {
	id, said, _ := strings.Cut(line, " ")
	if slices.Contains(u.Dropped, id) {
		return nil
	}
	all, err := s.hostStack(u)
	if err != nil {
		return err
	}
	if said == "" {
		said = "bawn " + short(s.Session)
	}
	old := strings.Repeat("0", u.Size)
	if len(all) > 0 {
		old = all[len(all)-1]
	}
	if _, err := s.git.run(ctx, u, call{args: []string{"update-ref", "--create-reflog", "-m", said, stashRef, id, old}}); err != nil {
		return err
	}
	s.report.Published++
	u.Stash = append(slices.Clone(u.Stash), line)
	return nil
}

// stashIn gives the guest the human's stack.
func (s *Store) stashIn(u *unit, st stack, size int) error {
	if !st.pulled {
		return nil
	}
	if len(st.pull) == 0 {
		if err := dropRef(u.private, stashRef); err != nil {
			return err
		}
		_ = u.private.Remove("logs/" + stashRef) // or it names a removed file
		u.Stash = nil
		return nil
	}
	text, err := readFile(u.host, "logs/"+stashRef, maxLog)
	if err != nil && !missing(err) {
		return err
	}
	top := stackIDs(st.pull)[len(st.pull)-1]
	if ids := stackIDs(parseLog(text, size)); len(ids) > 0 && ids[len(ids)-1] != top {
		return errBusy
	}
	if err := u.private.MkdirAll("logs/refs", 0o755); err != nil {
		return err
	}
	if err := u.private.WriteFile("logs/"+stashRef, text, 0o644); err != nil {
		return err
	}
	if _, err := replace(u.private, stashRef, []byte(top+"\n"), nil); err != nil {
		return errBusy
	}
	u.theirs(st.pull)
	u.Stash = st.pull
	return nil
}

// short is as much of a session's ID as people are shown.
func short(id string) string { return id[:min(len(id), 8)] }
