package gitstore

import (
	"bytes"
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

// A stack is what is to be done about stashes.
type stack struct {
	now    []string // the guest's
	pops   int      // of the session's own
	pushes []string // "ID message"
	asks   []string // IDs of the human's that the guest has dropped
	beside bool     // the human has changed the stack too
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
			st.pops++
		}
	}
	return st
}

// stashOut does on the host what the guest has done with stashes. Their objects
// are there.
func (s *Store) stashOut(ctx context.Context, u *unit, st stack) error {
	if slices.Equal(stackIDs(st.now), stackIDs(u.Stash)) {
		return nil
	}
	if len(st.asks) > 0 {
		u.Dropped = append(u.Dropped, st.asks...)
		s.tell(u, &s.report.Questions, fmt.Sprintf("the guest has dropped %d stashes of yours; they are still there (git stash list)", len(st.asks)))
	}
	if st.beside {
		for _, l := range st.pushes {
			id, _, _ := strings.Cut(l, " ")
			if err := s.beside(ctx, u, "refs/stash/"+id[:12], id, stashRef, "stashes were made on both sides"); err != nil {
				return err
			}
		}
		u.Stash = st.now
		return nil
	}
	for range st.pops {
		if _, err := s.git.run(ctx, u, call{args: []string{"reflog", "delete", "--updateref", "--rewrite", stashRef + "@{0}"}}); err != nil {
			return err
		}
		s.report.Published++
	}
	if st.pops > 0 && len(stashes(u.host, u.Size)) == 0 {
		if _, err := s.git.run(ctx, u, call{args: []string{"update-ref", "-d", stashRef}}); err != nil {
			return err
		}
	}
	for _, l := range st.pushes {
		id, said, _ := strings.Cut(l, " ")
		if said == "" {
			said = "bawn " + short(s.Session)
		}
		if _, err := s.git.run(ctx, u, call{args: []string{"update-ref", "--create-reflog", "-m", said, stashRef, id}}); err != nil {
			return err
		}
		s.report.Published++
	}
	u.Stash = st.now
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
		_ = u.private.Remove("logs/" + stashRef) // or it names what is gone
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
	u.Stash = st.pull
	return nil
}

// short is as much of a session's ID as people are shown.
func short(id string) string { return id[:min(len(id), 8)] }
