package checkpoint

// conflict plans for a name that both sides have changed, as name does. It returns false
// where the session's is to replace the human's.
func (p *planner) conflict(rel string, b, a *Entry, n *item) (planned bool) {
	merged, why := p.merge(b, a, n)
	switch {
	case merged != nil && equal(merged, &n.Entry): // it was merged before
	case merged != nil:
		p.change(Merged, rel, merged, n)
	case p.u.Theirs:
		return false
	case n != nil && (b != nil || a != nil):
		p.keep(rel, b, n, why)
	case b != nil:
		p.keep(rel, b, n, whyRemoved)
	}
	return true
}

// merge returns a file with the changes of both sides, or says why it can't. Mode,
// owner and attributes are the human's where the session has not changed them.
func (p *planner) merge(b, a *Entry, n *item) (merged *Entry, why string) {
	if p.u.Merge == nil || b == nil || n == nil || b.Kind != File || n.Kind != File || a != nil && a.Kind != File {
		return nil, whyChanged
	}
	e := n.Entry
	if a != nil && a.Mode != b.Mode {
		e.Mode = b.Mode
	}
	if a != nil && (!a.sameOwner(b) || a.Mode != b.Mode && a.Mode != n.Mode && b.Mode != n.Mode) {
		return nil, whyChanged
	}
	var texts [3][]byte
	for i, side := range []*Entry{a, b, &n.Entry} {
		var err error
		if texts[i], err = p.s.Content(side, pieceSize); err != nil {
			return nil, whyChanged + ", and it can't be merged: " + err.Error()
		}
	}
	text, why := p.u.Merge(texts[0], texts[1], texts[2])
	if why != "" {
		return nil, why
	}
	if err := p.s.rewrite(&e, text); err != nil {
		return nil, whyChanged + ", and it can't be merged: " + err.Error()
	}
	return &e, ""
}

// rewrite gives an entry another content, which lasts until the store is pruned.
func (s *Store) rewrite(e *Entry, content []byte) error {
	if len(content) > pieceSize {
		return ErrTooLarge
	}
	w := s.packer(s.has)
	b, err := w.block()
	if err != nil {
		return err
	}
	e.Kind, e.Sparse, e.Link, e.Size, e.Object = File, false, 0, int64(len(content)), b.put(content)
	b.flush()
	p, err := w.close()
	s.add(p)
	return err
}

// Sides returns what a change finds and what it makes of that; nil for nothing.
func (c *Change) Sides() Difference { return Difference{c.Path, c.now.entry(), c.entry} }

// Partly has a change of a file give it another content, and leave all else.
func (u *Undo) Partly(c *Change, content []byte) error {
	e := c.now.Entry
	c.entry, c.Size = &e, int64(len(content))
	return u.taking.s.rewrite(c.entry, content)
}
