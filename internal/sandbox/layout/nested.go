package layout

import (
	"path"
	"slices"
)

// Bounds of the look for repositories below a writable place, which the start of a
// session waits for.
const (
	maxNestedDirs  = 250
	maxNestedDeep  = 3
	maxNestedRepos = 64
)

// notNested are directories in which repositories are not expected.
var notNested = []string{".git", "node_modules", ".venv", "__pycache__"}

// nested protects what repositories of the host below a writable place name for git to
// execute: hooks and files that their configuration names, and what their hooks are
// links to. Such a repository can't be moved, since its targets may be relative.
func (b *builder) nested(base string) {
	for _, dir := range b.repositories(base) {
		for _, git := range b.gitDirs(dir) {
			if !slices.ContainsFunc(b.there(git, []string{"HEAD"}), func(e Entry) bool { return !e.Dir }) {
				continue // a guest's, whose git directory is in a pool
			}
			b.presentIn(dir, git)
			if git == path.Join(dir, ".git") {
				b.note(git)
			}
		}
	}
}

// repositories finds directories below base that have a .git, the upper ones first.
func (b *builder) repositories(base string) (found []string) {
	level, left := []string{base}, maxNestedDirs
	for range maxNestedDeep {
		var next []string
		for _, dir := range level {
			if left--; left < 0 {
				return found
			}
			list, _ := b.facts.List(dir) // nobody works in an unreadable directory
			for _, e := range list {
				p := path.Join(dir, e.Name)
				switch {
				case e.Name == ".git" && dir != base && len(found) < maxNestedRepos:
					found = append(found, dir)
				case e.Dir && !slices.Contains(notNested, e.Name):
					next = append(next, p)
				}
			}
		}
		level = next
	}
	for _, dir := range level[:min(len(level), max(left, 0))] {
		if _, ok := b.facts.Lookup(path.Join(dir, ".git")); ok && len(found) < maxNestedRepos {
			found = append(found, dir)
		}
	}
	return found
}
