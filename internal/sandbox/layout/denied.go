package layout

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Bounds of looking for what patterns deny: names that are read for one plan, and
// places that are covered.
const (
	maxWalked = 500_000
	maxDenied = 1_000
)

// A Listed is one entry of a directory.
type Listed struct {
	Name      string
	Dir, Link bool
}

// A denied is a pattern of names that the guest neither reads nor makes.
type denied struct {
	place   bawn.Mount // as it was asked for
	pattern fspath.Pattern
}

func isPattern(m bawn.Mount) bool { return sandbox.IsPattern(m) }

// A DenyError says why a pattern can't be denied.
type DenyError struct{ Why, Pattern, Problem, Hint string }

func (e *DenyError) Error() string {
	return fmt.Sprintf("%s: pattern %q: %s", e.Why, e.Pattern, e.Problem)
}

// Remedy is what to do.
func (e *DenyError) Remedy() string { return e.Hint }

func denyError(m bawn.Mount, hint, problem string, args ...any) error {
	return &DenyError{m.Why, m.Path, fmt.Sprintf(problem, args...), hint}
}

// deny takes a pattern, with the directory below which it matches as links lead
// to it.
func (b *builder) deny(m bawn.Mount) error {
	p, err := fspath.ParsePattern(m.Path)
	if err != nil {
		return denyError(m, "", "%v", err)
	}
	base := p.Base()
	if base == "/" || slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(d string) bool { return fspath.Below(base, d) }) {
		return denyError(m, `write "**/NAME" for the workspace and the places of rw and ro, or begin with a directory such as ~/work`,
			"it would have all of %q looked through", base)
	}
	if _, _, err := b.resolve(m.Why, base); err != nil {
		return err
	}
	at, _ := b.settled(base)
	if at.Real != base {
		if p, err = fspath.ParsePattern(at.Real + m.Path[len(base):]); err != nil {
			return denyError(m, "", "%v", err)
		}
	}
	b.denied = append(b.denied, denied{m, p})
	return nil
}

// hideNamed hides one place. A missing name with brackets or braces was probably
// meant as a pattern.
func (b *builder) hideNamed(m bawn.Mount, there bool) error {
	if !there && strings.ContainsAny(path.Base(m.Path), "[{") {
		return denyError(m, `write one entry for each name, or use "*" and "?"`, "it does not exist, and brackets and braces match nothing but themselves")
	}
	b.hide(&b.mounts, m.Path, m.Why)
	return nil
}

// denyAll hides what patterns match now. A file that a host program makes later
// under such a name is visible; the supervisor keeps the guest from making one.
func (b *builder) denyAll() error {
	if len(b.denied) == 0 {
		return nil
	}
	if err := b.undenied(); err != nil {
		return err
	}
	w := &deniedWalk{builder: b, left: maxWalked}
	for i, d := range b.denied {
		base := d.pattern.Base()
		if slices.ContainsFunc(b.denied[:i], func(o denied) bool { return o.pattern.Base() == base }) {
			continue // looked through together
		}
		var states []fspath.State
		for _, o := range b.denied {
			s := fspath.State(0)
			if o.pattern.Base() == base {
				s, _ = o.pattern.Walk(base)
			}
			states = append(states, s)
		}
		if err := w.dir(base, states, d.place); err != nil {
			return err
		}
	}
	return w.cover()
}

// undenied errs if a pattern denies a requested place: one of both would be
// ignored. Caches give way.
func (b *builder) undenied() error {
	for _, d := range b.denied {
		for _, m := range b.iso.Mounts {
			f, ok := b.facts.Lookup(m.Path)
			if ok && m.Access != bawn.Hidden && (d.pattern.Below(f.Real) || d.pattern.Below(path.Clean(m.Path))) {
				return denyError(d.place, "leave one of both out, or write a pattern that does not match it", "it denies %q, which is given as %v (%s)", m.Path, m.Access, m.Why)
			}
		}
		b.mounts = slices.DeleteFunc(b.mounts, func(m Mount) bool { return m.IsCache() && d.pattern.Below(m.Target) })
	}
	return nil
}

// A deniedWalk looks through directories for what patterns match.
type deniedWalk struct {
	*builder
	left  int // names
	found []match
}

// A match is a name that a pattern matches.
type match struct {
	path string
	link bool
	by   bawn.Mount
}

// dir looks through a directory; states are those of the patterns in it.
func (w *deniedWalk) dir(dir string, states []fspath.State, by bawn.Mount) error {
	if slices.ContainsFunc(w.req.Git, func(g bawn.GitDir) bool { return g.Path == dir }) {
		return nil // the guest has another one in its place
	}
	list, err := w.facts.List(dir)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil // what this user can't read, no guest reads
	}
	if err != nil {
		return denyError(by, "", "look through %q: %v", dir, err)
	}
	if w.left -= len(list); w.left < 0 {
		return denyError(by, "name the directories that hold such files, for example \"config/**/.env\"", "below %q are more than %d names to look through", by.Path, maxWalked)
	}
	next := make([]fspath.State, len(states))
	for _, e := range list {
		p, deeper, matched := path.Join(dir, e.Name), false, -1
		for i, d := range w.denied {
			if states[i] == 0 {
				next[i] = 0
				continue
			}
			next[i] = d.pattern.Step(states[i], e.Name)
			deeper = deeper || next[i] != 0
			if d.pattern.Matched(next[i]) {
				matched = i
			}
		}
		switch {
		case matched >= 0:
			w.found = append(w.found, match{p, e.Link, w.denied[matched].place})
		case e.Dir && deeper:
			err = w.dir(p, slices.Clone(next), by)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cover hides what was found.
func (w *deniedWalk) cover() error {
	if len(w.found) > maxDenied {
		by := w.found[0].by
		return denyError(by, "write a pattern that matches the directory that holds them", "patterns match %d names; at most %d can be hidden", len(w.found), maxDenied)
	}
	for _, m := range w.found {
		f, ok := w.facts.Lookup(m.path)
		switch {
		case !ok: // gone, or a link that leads nowhere
			w.hidden = append(w.hidden, m.path)
			continue
		case m.link:
			if err := w.linked(m, f); err != nil {
				return err
			}
		case f.Real != m.path:
			return denyError(m.by, "start the session again", "%q leads to %q a moment later", m.path, f.Real)
		}
		w.hidden = append(w.hidden, m.path)
		hideFile(&w.mounts, f, m.by.Why)
	}
	return nil
}

// linked errs if a link of a denied name leads to a place that must not be
// hidden because a guest's link says so.
func (w *deniedWalk) linked(m match, f File) error {
	inside := slices.ContainsFunc(w.guestPlaces(), func(dir string) bool { return Below(f.Real, dir) })
	if inside || slices.ContainsFunc(w.denied, func(d denied) bool { return d.pattern.Below(f.Real) }) {
		return nil
	}
	return denyError(m.by, fmt.Sprintf("deny %q by its own name and remove the link, or write a pattern that does not match the link", f.Real),
		"%q is a symbolic link and leads to %q, outside of the places that the session writes", m.path, f.Real)
}

// deniedPatterns are the patterns as they are ruled on.
func (b *builder) deniedPatterns() []string {
	var list []string
	for _, d := range b.denied {
		list = append(list, d.pattern.String())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Patterns reads those of a plan; each was read before.
func Patterns(list []string) []fspath.Pattern {
	var out []fspath.Pattern
	for _, text := range list {
		if p, err := fspath.ParsePattern(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// denies reports whether a pattern denies an absolute path.
func (p *Protector) denies(abs string) bool {
	abs = path.Clean(abs)
	return slices.ContainsFunc(p.Denied, func(d fspath.Pattern) bool { return d.Below(abs) || d.Below(Fold(abs)) })
}

// Brings reports whether a directory, under another name, could hold names that
// a pattern denies and did not deny before.
func (p *Protector) Brings(from, to string) bool {
	return slices.ContainsFunc(p.Denied, func(d fspath.Pattern) bool {
		was, _ := d.Walk(path.Clean(from))
		is, _ := d.Walk(path.Clean(to))
		return is&^was != 0
	})
}
