package gitstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pinRef is the session's hold on the host's former objects.
func (s *Store) pinRef() string { return s.own(pinName) }

// pinName ends the name of every pin.
const pinName = "pin"

// isPin reports whether a ref is the pin of a session.
func isPin(ref string) bool {
	rest, own := strings.CutPrefix(ref, ownRefs)
	_, name, _ := strings.Cut(rest, "/")
	return own && name == pinName
}

// Pin protects objects that the session may need from the human's gc.
func (s *Store) Pin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pin(ctx)
}

func (s *Store) pin(ctx context.Context) error {
	if s.pinned {
		return nil
	}
	for _, u := range s.Units {
		if u.dropped() || u.Added {
			continue
		}
		if err := s.pinUnit(ctx, u, s.basePath(u)); err != nil {
			return fmt.Errorf("pin what the session uses: %w", err)
		}
	}
	s.pinned = true
	return nil
}

// pinUnit makes one commit that leads to everything: its parents are the refs'
// commits, its tree is the index.
func (s *Store) pinUnit(ctx context.Context, u *unit, index string) error {
	ids := slices.Collect(maps.Values(u.Base))
	ids = append(append(ids, u.Stashed...), stackIDs(u.Stash)...)
	if branchOf(u.Head) == "" {
		ids = append(ids, u.Head)
	}
	parents, err := s.commits(ctx, u, ids)
	if err != nil {
		return err
	}
	top := s.top(u)
	if top.Pin != "" {
		parents = append(parents, top.Pin)
	}
	slices.Sort(parents)
	parents = slices.Compact(parents)
	tree, err := s.treeOf(ctx, u, index)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&text, "parent %s\n", p)
	}
	who := fmt.Sprintf("bawn <bawn@localhost> %d +0000", s.Started.Unix())
	fmt.Fprintf(&text, "author %s\ncommitter %s\n\n%s\n", who, who, pinSubject(s.Session))
	out, err := s.git.run(ctx, u, call{args: []string{"hash-object", "-t", "commit", "-w", "--stdin"}, in: strings.NewReader(text.String())})
	if err != nil {
		return err
	}
	id := strings.TrimSpace(string(out))
	if _, err := s.git.run(ctx, u, call{args: []string{"update-ref", s.pinRef(), id}}); err != nil {
		return err
	}
	top.Pin, top.Pins = id, append(top.Pins, id)
	return nil
}

// commits are those that objects are, or lead to as tags.
func (s *Store) commits(ctx context.Context, u *unit, ids []string) ([]string, error) {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 0 {
		return nil, nil
	}
	out, err := s.git.run(ctx, u, call{args: []string{"cat-file", "--batch-check=%(objecttype) %(objectname)"}, in: strings.NewReader(strings.Join(ids, "^{commit}\n") + "^{commit}\n")})
	if err != nil {
		return nil, err
	}
	var list []string
	for line := range strings.Lines(string(out)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "commit "); ok && isID(id, u.Size) {
			list = append(list, id)
		}
	}
	return list, nil
}

// treeOf writes the index as a tree: the empty one where it can't be, as in the
// middle of a merge.
func (s *Store) treeOf(ctx context.Context, u *unit, index string) (string, error) {
	if _, err := os.Lstat(index); err == nil {
		out, err := s.git.run(ctx, u, call{args: []string{"write-tree"}, env: []string{"GIT_INDEX_FILE=" + index}})
		if id := strings.TrimSpace(string(out)); err == nil && isID(id, u.Size) {
			return id, nil
		}
	}
	out, err := s.git.run(ctx, u, call{args: []string{"mktree"}})
	return strings.TrimSpace(string(out)), err
}

// unpin lets go, as cheaply as it can.
func (s *Store) unpin(ctx context.Context) error {
	var errs []error
	for _, u := range s.Units {
		if u.Pin == "" {
			continue
		}
		lost := s.loses(ctx, u)
		if lost {
			_, err := s.git.run(ctx, u, call{args: []string{"update-ref", s.own(undoName), u.Pin}})
			errs = append(errs, err)
		}
		_, err := s.git.run(ctx, u, call{args: []string{"update-ref", "-d", s.pinRef()}})
		errs = append(errs, err)
		if err == nil && !lost {
			u.dropPins()
		}
		for _, dir := range []string{s.pinRef(), ownRefs} { // git leaves empty directories
			_ = os.Remove(filepath.Join(u.Host, filepath.Dir(dir)))
		}
		u.Pin = ""
	}
	s.pinned = false
	return errors.Join(errs...)
}

// dropPins removes the commits that were pins, to which nothing leads any more. A
// ref that a gc has packed stays until the next.
func (u *unit) dropPins() {
	for _, id := range u.Pins {
		dir := "objects/" + id[:2]
		_ = u.host.Remove(dir + "/" + id[2:])
		_ = u.host.Remove(dir) // if it is empty
	}
	u.Pins = nil
}

// undoName ends the name of the ref that keeps, after a session, the host's former
// commits to which no other ref leads: an undo needs them.
const undoName = "undo"

// loses reports whether the pin has commits, or files that were staged, to which
// nothing else of the host's leads. Without it they last until the human's gc.
func (s *Store) loses(ctx context.Context, u *unit) bool {
	if s.report.Published == 0 && !s.again {
		return false
	}
	not := []string{u.Pin, "--not", "--exclude=" + ownRefs + "*", "--all"}
	if u.Partial {
		not = append(not, "--exclude-promisor-objects")
	}
	for _, args := range [][]string{
		{"rev-list", "-n", "1", "--invert-grep", "--grep=^" + pinSubject(s.Session)},
		{"rev-list", "--objects", "--filter=object:type=blob", "--filter-provided-objects"},
	} {
		out, err := s.git.run(ctx, u, call{args: append(append(args, not...), "--indexed-objects")})
		if err == nil && len(out) > 0 {
			return true
		}
	}
	return false
}

// pinSubject is the message of the commit that pins a session's objects.
func pinSubject(session string) string {
	return "what session " + session + " uses, kept from git gc until it ends"
}
