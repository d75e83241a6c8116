package layout

import (
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// inGit are the entries of a git directory that are protected by a mount.
var inGit = []string{"hooks", "config", "config.worktree", "info", "commondir", "HEAD", "objects", "refs", "packed-refs", "shallow", "index", "modules", "worktrees", "logs"}

// maxFollowed bounds how many links and settings of a repository are followed.
const maxFollowed = 256

// maxIncluded bounds how deep files of configuration include one another, as in git.
const maxIncluded = 10

// maxTargets bounds where they lead: every place to hide may be one.
const maxTargets = 1024

// there is Present without links that lead nowhere.
func (b *builder) there(dir string, names []string) []Entry {
	return slices.DeleteFunc(b.facts.Present(dir, names), func(e Entry) bool { return e.Real == "" })
}

// present protects by a mount of its own what exists now directly below a
// writable place: the supervisor covers everything else, and this covers it a
// second time. Names that lead elsewhere are noted for both.
func (b *builder) present(byTarget map[string]Mount) []Mount {
	candidates := b.candidates()
	var list []Mount
	owned := b.owned()
	b.places = b.homePlaces()
	b.note(b.req.Linked...)
	for _, root := range b.writable {
		base := protectedBase(root)
		for _, e := range b.facts.Present(base, candidates) {
			if p := path.Join(base, e.Name); e.Real == p && slices.Contains(owned, p) {
				continue
			}
			list = append(list, b.protect(base, e)...)
		}
		for _, git := range b.gitDirs(base) {
			list = append(list, b.presentIn(base, git)...)
		}
		b.nested(base)
	}
	b.followIn(list)
	for _, target := range slices.Concat(b.targets, b.places) {
		if f, ok := b.facts.Lookup(target); ok && f.Real == target {
			list = append(list, protecting(f))
		}
	}
	return b.needed(byTarget, list)
}

// presentIn protects a git directory of the host. Its targets elsewhere are
// protected also if the session has a private one: the host obeys them.
func (b *builder) presentIn(base, git string) []Mount {
	var inner []Mount
	for _, e := range b.facts.Present(git, inGit) {
		inner = append(inner, b.protect(git, e)...)
	}
	b.followIn(inner)
	b.configured(base, git)
	f, ok := b.facts.Lookup(git)
	switch {
	case b.inPrivateGit(git) || !ok:
		return nil
	case git == base: // a bare repository: its entries, since the place itself was asked for
		return inner
	}
	return []Mount{hostGit(f)}
}

// followIn notes where the links in protected directories lead.
func (b *builder) followIn(list []Mount) {
	for _, m := range list {
		if !m.File {
			for _, name := range first(b.facts.Links(m.Target), maxFollowed) {
				b.follow(path.Join(m.Target, name))
			}
		}
	}
}

// protect returns the mount for a protected entry of dir that is one by itself,
// and follows links.
func (b *builder) protect(dir string, e Entry) []Mount {
	p := path.Join(dir, e.Name)
	switch {
	case e.Real != p && e.Name == ".git": // its target is written, but it is not led elsewhere
		links, _ := b.facts.Follow(p)
		b.note(links...)
	case e.Real != p && b.within[e.Name] != nil:
		for _, entry := range b.within[e.Name] {
			b.follow(path.Join(p, entry))
		}
	case e.Real != p:
		b.follow(p)
	case e.Name == ".git" && e.Dir || b.within[e.Name] != nil && (e.Dir || !b.pointers[e.Name]):
	default:
		return []Mount{protecting(e.File)}
	}
	return nil
}

func protecting(f File) Mount {
	return Mount{Kind: KindBindRO, Source: f.Real, Target: f.Real, Why: WhyProtected, File: !f.Dir, ID: f.ID}
}

// needed sorts mounts, and leaves out those outside the writable places, those
// that another one replaces, and those in hidden places.
func (b *builder) needed(byTarget map[string]Mount, list []Mount) []Mount {
	slices.SortStableFunc(list, func(x, y Mount) int { return strings.Compare(x.Target, y.Target) })
	list = slices.CompactFunc(list, func(x, y Mount) bool { return x.Target == y.Target })
	return slices.DeleteFunc(list, func(m Mount) bool {
		_, covered := byTarget[m.Target]
		return covered || b.inPrivateGit(m.Target) || !b.writableAt(m.Target) || !b.openAt(byTarget, m.Target)
	})
}

// ways notes the links on the way to hidden or read-only files, and their targets
// while those are missing. A mount lies on a link's target; the link itself could
// be replaced, and the host would obey the replacement.
func (b *builder) ways() {
	places := slices.DeleteFunc(slices.Clone(b.hidden), func(p string) bool { return b.straightTo[p] })
	for _, m := range b.iso.Mounts {
		if m.Access != bawn.ReadWrite {
			places = append(places, m.Path)
		}
	}
	for _, p := range places {
		if f, ok := b.facts.Lookup(p); ok && f.Real == p {
			continue
		}
		if links, end := b.facts.Follow(p); len(links) > 0 {
			b.note(append(links, end)...)
		}
	}
}

// writableAt reports whether p lies below a writable place.
func (b *builder) writableAt(p string) bool {
	return slices.ContainsFunc(b.writable, func(w string) bool { return Below(p, w) })
}

// note adds targets.
func (b *builder) note(places ...string) {
	for _, p := range places {
		if len(b.targets) < maxTargets && b.writableAt(p) && !b.inPrivateGit(p) && !slices.Contains(b.targets, p) {
			b.targets = append(b.targets, p)
		}
	}
}

func first(list []string, n int) []string { return list[:min(len(list), n)] }

// openAt reports whether the innermost mount around a place is one of the
// host's writable ones: hidden places stay hidden.
func (b *builder) openAt(byTarget map[string]Mount, p string) bool {
	for dir := path.Dir(p); ; dir = path.Dir(dir) {
		if m, ok := byTarget[dir]; ok {
			return m.Kind == KindBind
		}
		if dir == "/" {
			return false
		}
	}
}

// follow protects where a path leads, if it leads to another one: its end,
// existing or not, and the links on the way, which could be replaced.
func (b *builder) follow(p string) {
	links, end := b.facts.Follow(p)
	b.note(slices.DeleteFunc(append(links, end), func(t string) bool { return t == p })...)
}

// isBare reports whether a directory is a bare repository.
func (b *builder) isBare(dir string) bool {
	return len(b.there(dir, []string{"HEAD", "objects", "refs"})) == 3
}

// gitDirs returns the git directories for work in base: .git, or where a .git
// file or link points, with the repository that this one shares, or base
// itself.
func (b *builder) gitDirs(base string) []string {
	git := path.Join(base, ".git")
	f, ok := b.facts.Lookup(git)
	if !ok {
		if b.isBare(base) {
			return []string{base}
		}
		return nil
	}
	if f.Dir {
		return []string{f.Real}
	}
	text, err := b.facts.ReadFile(f.Real)
	to, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
	if err != nil || !ok {
		return nil
	}
	return b.withCommon(from(path.Dir(f.Real), to))
}

// withCommon returns a git directory and the one that it shares, if any.
func (b *builder) withCommon(p string) []string {
	f, ok := b.facts.Lookup(p)
	if !ok || !f.Dir {
		return nil
	}
	list := []string{f.Real}
	if text, err := b.facts.ReadFile(path.Join(f.Real, "commondir")); err == nil {
		if common, ok := b.facts.Lookup(from(f.Real, strings.TrimSpace(text))); ok && common.Dir {
			list = append(list, common.Real)
		}
	}
	return list
}

// from is where p leads, seen from dir.
func from(dir, p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(dir, p)
}

// configured protects the files that the configuration of a git directory names
// for git to execute or to obey: core.hooksPath, included files, and programs.
func (b *builder) configured(base, git string) {
	left := maxFollowed
	for _, name := range []string{"config", "config.worktree"} {
		b.configuredBy(base, path.Join(git, name), 0, &left)
	}
}

// configuredBy is configured for one file, and for those that it includes.
func (b *builder) configuredBy(base, file string, depth int, left *int) {
	text, err := b.facts.ReadFile(file)
	if err != nil || depth > maxIncluded {
		return
	}
	for _, s := range settings(text) {
		switch {
		case inertKeys[s.key] || strings.HasPrefix(s.key, "branch.") || strings.HasPrefix(s.key, "remote.") || strings.HasPrefix(s.key, "url."):
		case s.key == "core.hookspath":
			b.named(from(base, s.value), true)
		case s.key == "include.path" || s.key == "includeif.*.path":
			included := from(path.Dir(file), s.value)
			b.named(included, true)
			if f, ok := b.facts.Lookup(included); ok && *left > 0 {
				*left--
				b.configuredBy(base, f.Real, depth+1, left)
			}
		default:
			for _, word := range strings.FieldsFunc(s.value, func(r rune) bool { return strings.ContainsRune(" \t!'\";|&()<>=", r) }) {
				if *left--; *left >= 0 {
					b.named(from(base, word), false)
				}
			}
		}
	}
}

// named protects a configuration's targets: a whole directory, or a missing
// file, only if the setting is for that.
func (b *builder) named(p string, whole bool) {
	f, there := b.facts.Lookup(p)
	if !whole && (!there || f.Dir) {
		return
	}
	b.note(p)
	b.follow(p)
}

// WhyProtected is why files that the host executes later are mounted read-only.
const WhyProtected = "protected"
