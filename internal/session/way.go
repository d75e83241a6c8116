package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// Led returns the isolation with every path as links lead to it now, as far as
// they are seen.
func Led(iso bawn.Isolation, sees func(p string) bool) bawn.Isolation {
	w := way{sees: sees, links: map[string]string{}}
	iso.Workspace = w.to(iso.Workspace)
	iso.Mounts, iso.CacheDirs = slices.Clone(iso.Mounts), slices.Clone(iso.CacheDirs)
	for i := range iso.Mounts {
		iso.Mounts[i].Path = w.to(iso.Mounts[i].Path)
	}
	for i, dir := range iso.CacheDirs {
		iso.CacheDirs[i] = w.to(dir)
	}
	return iso
}

// maxLinks is how many links are followed on one way (path_resolution(7)).
const maxLinks = 40

// LedTo is where a path leads, whether there is something or not.
func LedTo(p string, sees func(p string) bool) string {
	return way{sees: sees, links: map[string]string{}}.to(p)
}

// A way finds where paths lead. Only visible links are looked at: a guest must
// not learn which files exist by the way of its own links. Many paths begin
// with the same directories, so each is looked at once.
type way struct {
	sees  func(p string) bool
	links map[string]string // the target of a link; "" for anything else
}

func (w way) to(p string) string {
	if !filepath.IsAbs(p) {
		return p // nothing that could be compared
	}
	at, rest := "/", strings.Split(filepath.Clean(p), "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		to := ""
		if links < maxLinks {
			to = w.link(next)
		}
		switch {
		case to == "":
			at = next
		case filepath.IsAbs(to):
			at, rest = "/", append(strings.Split(to, "/"), rest...)
			links++
		default:
			rest = append(strings.Split(to, "/"), rest...)
			links++
		}
	}
	return at
}

// link is the text of a visible link, and "" for anything else.
func (w way) link(p string) string {
	to, known := w.links[p]
	if !known {
		if w.sees(p) {
			to, _ = os.Readlink(p) // "" if p is not a link
		}
		w.links[p] = to
	}
	return to
}
