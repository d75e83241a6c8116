package layout

import (
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/protect"
)

// Fold returns what a path may mean on a file system that is less exact about
// names than Linux.
func Fold(p string) string { return protect.Fold(p) }

// Parts returns the components of a path as they are ruled on.
func (p *Protector) Parts(rel string) []string {
	list := strings.Split(Fold(rel), "/")
	for i, n := range list {
		list[i] = p.Name(n)
	}
	return list
}

// longInGit are the names of git's that have a short form.
var longInGit = []string{".git", "commondir"}

// Name returns the protected name that a folded one may be the short form of, or
// else the name itself.
func (p *Protector) Name(n string) string {
	if !strings.Contains(n, "~") {
		return n
	}
	for _, long := range longInGit {
		if protect.IsShort(long, n) {
			return long
		}
	}
	return p.names.Long(n)
}

// named returns the rule by which the table of names refuses op on a path, or "".
// parts are the rest of the path. logins says whether dotfiles of logins count.
func (p *Protector) named(op Operation, parts []string, isDir, logins bool) string {
	m, name := p.names.At(parts, logins)
	switch m {
	case protect.Inside:
		return RuleProtected + name
	case protect.Pointer: // a directory, made in its place, and no file or link that leads elsewhere
		if op != OpMkdir && (op != OpRemove || !isDir) {
			return RuleProtected + name
		}
	case protect.Way: // or it would be made elsewhere, and moved here
		if parts[0] != ".git" && op != OpMkdir && op != OpOpen && op != OpRemove {
			return RuleProtected + name
		}
	}
	return ""
}

const (
	RuleProtected = "protected:"
	RulePlace     = "protected:place below the home directory"
)

// found holds a builder's findings about the names of the table.
type found struct {
	within     map[string][]string // directories in which only some names are protected, each with those
	pointers   map[string]bool     // those that are names themselves
	places     []string            // below the home directory, that the host executes or obeys
	straightTo map[string]bool     // places to hide that are absent, with no link on the way
}

// candidates are the names to look for directly below a writable place. It notes
// the directories among them in which only some names are protected.
func (b *builder) candidates() []string {
	names := slices.Concat(ProtectedNames(b.iso.Unprotected), b.req.Protected)
	b.within, b.pointers = protect.Ways(names), map[string]bool{}
	delete(b.within, ".git") // of which there is more to know
	for _, n := range names {
		if b.within[n] != nil {
			b.pointers[n] = true
		}
	}
	for dir := range b.within {
		if !b.pointers[dir] {
			names = append(names, dir)
		}
	}
	return append(names, ".git")
}

// straight returns a function that reports whether a directory has no link on the way
// to it; its missing names then have no link on their way either. Most places to hide are
// absent, and lie in a few directories.
func (b *builder) straight() func(dir string) bool {
	known := map[string]bool{}
	return func(dir string) bool {
		is, ok := known[dir]
		if !ok {
			links, _ := b.facts.Follow(dir)
			is = len(links) == 0
			known[dir] = is
		}
		return is
	}
}

// homePlaces are the places below the home directory that the host executes or
// obeys, and that lie within a writable place. Somebody who names exactly one
// of them as writable means it.
func (b *builder) homePlaces() []string {
	home := b.home()
	if f, ok := b.facts.Lookup(home); ok {
		home = f.Real
	}
	holds := func(w string) bool { return Below(home, w) || w == home || Below(w, home) }
	if home == "" || !slices.ContainsFunc(b.writable, holds) {
		return nil
	}
	var list []string
	entries := protect.Home()
	for i := range entries {
		e := &entries[i]
		if p := path.Join(home, e.Path()); e.Counts(runtime.GOOS) && b.writableAt(p) && !slices.Contains(b.writable, p) {
			list = append(list, p)
		}
	}
	return list
}

// ProtectedNames lists the names that are protected at any depth of a writable
// place, for providers that have no supervisor, without those that opened names.
// Those of git's own directory are not among them: its contents are judged part
// by part.
func ProtectedNames(opened []string) []string {
	var list []string
	entries := protect.Project()
	for i := range entries {
		e := &entries[i]
		if e.Class != protect.Credential && !(e.Opens() && slices.Contains(opened, e.Path())) {
			list = append(list, e.Path())
		}
	}
	slices.Sort(list)
	return list
}
