package gitstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// carry does what collect has found.
func (c *changes) carry(ctx context.Context) error {
	s, u := c.store, c.unit
	built := c.beginIndex(ctx)
	defer func() {
		_ = built()
		s.dropIndex(u)
	}()
	if err := c.objects(ctx); err != nil {
		return err
	}
	if err := c.inspect(ctx); err != nil {
		return err
	}
	if c.besideOnly != "" {
		return errors.Join(c.publish(ctx), c.rest(ctx))
	}
	if err := built(); err != nil && c.index.toHost() {
		return fmt.Errorf("write the index: %w", err)
	}
	if err := c.pull(ctx); err != nil {
		return err
	}
	if err := s.stashIn(u, c.stack, u.Size); err != nil {
		return err
	}
	if err := c.locked(ctx); err != nil {
		return err
	}
	if err := s.installed(u, c.index); err != nil {
		return err
	}
	if err := c.remove(ctx); err != nil {
		return err
	}
	if err := s.stashOut(ctx, u, c.stack); err != nil {
		return err
	}
	return s.agreed(ctx, u, c.index)
}

// locked moves the refs, HEAD and the index of the host, as one where they belong
// together.
func (c *changes) locked(ctx context.Context) error {
	staged := c.index != nil
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.makeRoom(ctx); err != nil {
		return err
	}
	if err := c.publish(ctx); err != nil {
		return err
	}
	if err := c.headAndIndex(ctx); err != nil {
		return err
	}
	if c.finish && staged == (c.index != nil) {
		return c.close()
	}
	return nil
}

// rest keeps beside what is neither a branch nor a tag, if nothing can be
// published.
func (c *changes) rest(ctx context.Context) error {
	s, u := c.store, c.unit
	if branchOf(c.private.head) == "" && c.private.head != u.Head {
		why, err := c.why(ctx, c.private.head)
		if err != nil {
			why = "it can't be read"
		}
		if err := s.beside(ctx, u, "HEAD", c.private.head, "HEAD", both(c.besideOnly, why)); err != nil {
			return err
		}
	}
	st := c.stack
	st.beside, st.asks = true, nil
	if slices.Equal(stackIDs(st.now), stackIDs(u.Stash)) {
		return nil
	}
	return s.stashOut(ctx, u, st)
}

// lock holds the host's index while HEAD, its branch or the index change, so that
// no git of the human's sees one without the others.
func (c *changes) lock() (unlock func(), err error) {
	s, u := c.store, c.unit
	branch := branchOf(c.host.head)
	needs := c.finish || c.head == headOut || c.index.toHost() ||
		slices.ContainsFunc(c.out, func(m move) bool { return m.why == "" && m.name == branch })
	if !needs {
		return func() {}, nil
	}
	l, err := s.lockIndex(u)
	if err != nil {
		return nil, err
	}
	head, err := readHead(u.host, u.Rel, u.Size)
	if err != nil || head != c.host.head || c.index != nil && stampOf(u.host, u.at("index")) != c.index.stamps[0] {
		l.unlock()
		return nil, errBusy
	}
	return l.unlock, nil
}

// publish moves the host's refs, each from the value that it was seen at.
func (c *changes) publish(ctx context.Context) error {
	s, u := c.store, c.unit
	for _, m := range c.out {
		why := m.why
		if why == "" && m.ahead && !c.contains(ctx, m) {
			if err := ctx.Err(); err != nil {
				return err // nothing was compared
			}
			why = "it was changed on the host too"
			u.told["parted "+m.name+m.old+m.new] = true
		}
		if why == "" {
			old := m.old
			if old == "" {
				old = strings.Repeat("0", u.Size)
			}
			_, err := s.git.run(ctx, u, call{args: []string{"update-ref", "-m", "bawn " + short(s.Session) + ": " + c.said(m), m.name, m.new, old}})
			if err == nil {
				u.published(m)
				delete(u.Beside, m.name)
				c.host.tree.refs[m.name] = m.new
				s.report.Published++
				s.settled(m.name)
				continue
			}
			if ctx.Err() != nil {
				return err
			}
			why = "it was changed on the host too"
		}
		if err := s.beside(ctx, u, strings.TrimPrefix(m.name, "refs/"), m.new, m.name, why); err != nil {
			return err
		}
		u.Beside[m.name] = m.new
	}
	return nil
}

// published remembers a ref that the host has now, and whether the session made it.
func (u *unit) published(m move) {
	if m.old == "" || u.Made[m.name] == m.old {
		if u.Made == nil {
			u.Made = refs{}
		}
		u.Made[m.name] = m.new
	}
	u.Base[m.name] = m.new
}

// said is the message of the guest's reflog for a move.
func (c *changes) said(m move) string {
	for _, name := range []string{"logs/" + m.name, c.unit.at("logs/HEAD")} {
		text, err := readFile(c.unit.private, name, maxLog)
		if err != nil {
			continue
		}
		if list := parseLog(text, c.unit.Size); len(list) > 0 {
			if id, said, _ := strings.Cut(list[len(list)-1], " "); id == m.new && said != "" {
				return said[:min(len(said), 200)]
			}
		}
	}
	return "publish"
}

// contains reports whether the guest's value contains the host's.
func (c *changes) contains(ctx context.Context, m move) bool {
	if m.old == "" || !strings.HasPrefix(m.name, "refs/heads/") {
		return false
	}
	_, err := c.store.git.run(ctx, c.unit, call{args: []string{"merge-base", "--is-ancestor", m.old, m.new}})
	return err == nil
}

// beside keeps a value of the guest's under a name of the session's.
func (s *Store) beside(ctx context.Context, u *unit, at, id, ref, why string) error {
	name := s.own(at)
	if !formatOK(name) || strings.HasPrefix(ref, "refs/") && nameOK(ref) != nil {
		sum := sha256.Sum256([]byte(ref))
		name = s.own(fmt.Sprintf("refused/%s-%x", id[:12], sum[:4]))
	}
	if _, err := s.git.run(ctx, u, call{args: []string{"update-ref", name, id}}); err != nil {
		if ctx.Err() != nil {
			return err // the next sync does it
		}
		s.tell(u, &s.report.Problems, fmt.Sprintf("%q of the guest's could not be kept: %v", ref, err))
		return nil
	}
	s.report.Kept = slices.DeleteFunc(s.report.Kept, func(k Kept) bool { return k.Beside == name })
	s.report.Kept = append(s.report.Kept, Kept{Ref: ref, Beside: name, Why: why})
	return nil
}

// settled removes the record of what was kept beside of a ref that is published
// now. The ref beside stays: it costs nothing, and the human may look for it.
func (s *Store) settled(ref string) {
	s.report.Kept = slices.DeleteFunc(s.report.Kept, func(k Kept) bool { return k.Ref == ref && ref != stashRef })
}

// makeRoom first deletes refs in the way of one that is published: a/b of a, and a of
// a/b.
func (c *changes) makeRoom(ctx context.Context) error {
	inTheWay := func(g move) bool {
		return slices.ContainsFunc(c.out, func(m move) bool {
			return m.why == "" && (strings.HasPrefix(m.name, g.name+"/") || strings.HasPrefix(g.name, m.name+"/"))
		})
	}
	all := c.gone
	c.gone = slices.DeleteFunc(slices.Clone(all), func(g move) bool { return !inTheWay(g) })
	if err := c.remove(ctx); err != nil {
		return err
	}
	c.gone = slices.DeleteFunc(all, inTheWay)
	return nil
}

// remove deletes refs that the session has made and the guest has deleted.
func (c *changes) remove(ctx context.Context) error {
	for _, m := range c.gone {
		if head, err := readHead(c.unit.host, c.unit.Rel, c.unit.Size); err != nil || branchOf(head) == m.name {
			c.store.lost(c.unit, m.name) // the human works on it
			continue
		}
		if _, err := c.store.git.run(ctx, c.unit, call{args: []string{"update-ref", "-d", m.name, m.old}}); err != nil {
			if ctx.Err() != nil {
				return err
			}
			c.store.lost(c.unit, m.name)
			continue
		}
		delete(c.unit.Base, m.name)
		delete(c.unit.Made, m.name)
		delete(c.host.tree.refs, m.name)
	}
	return nil
}

// headAndIndex lets HEAD and the index follow, on the side that has not changed
// them, once both sides agree on where HEAD leads.
func (c *changes) headAndIndex(ctx context.Context) error {
	s, u := c.store, c.unit
	head := c.host.head
	switch c.head {
	case headParted:
		c.index = nil
		return nil
	case headOut:
		head = c.private.head
		if ref := branchOf(head); ref != "" && (nameOK(ref) != nil || !strings.HasPrefix(ref, "refs/heads/") || u.taken()[ref]) {
			s.tell(u, &s.report.Problems, fmt.Sprintf("the guest's HEAD is at %q, where yours can't be", ref))
			c.index = nil
			return nil
		}
	}
	if c.host.value(head) != c.private.value(head) {
		c.index = nil
		return nil // what HEAD names has lost a race, and is kept beside
	}
	if err := c.moveHead(ctx, head); err != nil {
		return err
	}
	if !c.index.toHost() {
		return nil
	}
	s.report.Published++
	return s.installIndex(u, c.index)
}

// moveHead sets HEAD to the other side's.
func (c *changes) moveHead(ctx context.Context, head string) error {
	s, u := c.store, c.unit
	switch c.head {
	case headOut:
		args := []string{"update-ref", "--no-deref", "-m", "bawn " + short(s.Session), "HEAD", head}
		if ref := branchOf(head); ref != "" {
			args = []string{"symbolic-ref", "-m", "bawn " + short(s.Session) + ": " + c.said(move{name: ref, new: c.private.value(head)}), "HEAD", ref}
		}
		if _, err := s.git.run(ctx, u, call{args: args}); err != nil {
			return err
		}
		s.report.Published++
	case headIn:
		done, err := replace(u.private, u.at("HEAD"), []byte(head+"\n"), func() bool {
			now, err := readHead(u.private, u.Rel, u.Size)
			return err == nil && now == c.private.head
		})
		if err != nil || !done {
			return errBusy
		}
	}
	u.Head = head
	return nil
}
