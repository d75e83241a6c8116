package undo

import (
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/checkpoint"
)

// A Piece is what a plan does at one path.
type Piece struct {
	Steps  []Step
	Lines  *Change // what differs; its hunks can be chosen one by one
	Chosen []bool  // of each hunk, or of a change as a whole: set by the caller

	path          string
	changes       []*checkpoint.Change
	makes, clears bool // a directory
	follows       bool // a directory, about which those decide that lie in it
}

// Pieces returns what a human can choose from, and with it what follows from the choice.
func (p *Plan) Pieces() (ask, follow []*Piece) {
	var all []*Piece
	d := &Diff{store: p.store}
	steps, _ := p.Steps()
	for i := range p.Files.Changes {
		c := &p.Files.Changes[i]
		k := slices.IndexFunc(all, func(x *Piece) bool { return x.path == c.Path })
		if k < 0 {
			k, all = len(all), append(all, &Piece{path: c.Path})
		}
		x, s := all[k], c.Sides()
		x.Steps, x.changes = append(x.Steps, steps[i]), append(x.changes, c)
		x.clears = x.clears || c.Op == checkpoint.Remove && s.Old.Kind == checkpoint.Directory
		x.makes = x.makes || c.Op == checkpoint.Create && s.New.Kind == checkpoint.Directory
	}
	for _, x := range all {
		x.Lines = d.Change(x.changes[len(x.changes)-1].Sides())
		hunks := 1
		if x.divided() {
			hunks = len(x.Lines.Hunks)
		}
		x.Chosen = make([]bool, hunks)
		x.follows = len(x.changes) == 1 && (x.makes || x.clears) && slices.ContainsFunc(all, x.holds)
		if x.follows {
			follow = append(follow, x)
		} else {
			ask = append(ask, x)
		}
	}
	return ask, follow
}

// divided reports whether hunks of the piece can be taken over one by one.
func (x *Piece) divided() bool {
	s := x.changes[0].Sides()
	return len(x.changes) == 1 && s.Old != nil && s.New != nil && s.Old.Kind == checkpoint.File && s.New.Kind == checkpoint.File && len(x.Lines.Hunks) > 0
}

// holds reports whether another piece lies below.
func (x *Piece) holds(o *Piece) bool { return strings.HasPrefix(o.path, x.path+"/") }

func (x *Piece) chosen() bool { return slices.Contains(x.Chosen, true) }

// Narrow has the plan do what was chosen. A directory is made for what comes into it, and
// goes when all goes that was in it.
func (p *Plan) Narrow(ask, follow []*Piece) error {
	all := slices.Concat(ask, follow)
	slices.SortFunc(all, func(a, b *Piece) int { return strings.Count(a.path, "/") - strings.Count(b.path, "/") })
	refuse := func(x *Piece) { x.Chosen = make([]bool, len(x.Chosen)) }
	for _, x := range all {
		if slices.ContainsFunc(all, func(up *Piece) bool { return up.makes && !up.follows && !up.chosen() && up.holds(x) }) {
			refuse(x)
		}
	}
	for _, x := range slices.Backward(all) {
		in := slices.DeleteFunc(slices.Clone(all), func(o *Piece) bool { return !x.holds(o) })
		switch {
		case x.clears && slices.ContainsFunc(in, func(o *Piece) bool { return !o.chosen() }):
			refuse(x)
		case x.follows:
			x.Chosen[0] = x.clears || slices.ContainsFunc(in, (*Piece).chosen)
		}
	}
	keep := map[string]bool{}
	for _, x := range all {
		keep[x.path] = x.chosen()
		if !x.chosen() || !slices.Contains(x.Chosen, false) {
			continue
		}
		c := x.changes[0]
		old, err := p.store.Content(c.Sides().Old, maxShown)
		if err == nil {
			err = p.Files.Partly(c, Take(old, x.Lines.Hunks, x.Chosen))
		}
		if err != nil {
			return err
		}
	}
	p.Files.Changes = slices.DeleteFunc(p.Files.Changes, func(c checkpoint.Change) bool { return !keep[c.Path] })
	return nil
}
