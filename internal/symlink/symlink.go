//go:build linux || darwin

// Package symlink follows the links of a path that a human or a configuration
// named, and refuses those that a guest may have made.
package symlink

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// MaxLinks is how many links are followed: as many as the kernel does.
const MaxLinks = 40

// Walk follows a path as the kernel does, but goes on where nothing is. It
// returns where the links on the way lie, links resolved, and where it ends.
func Walk(p string) (links []string, end string) {
	end = "/"
	for rest := strings.Split(p, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			end = path.Dir(end)
			continue
		}
		next := path.Join(end, name)
		to, err := readlink(next)
		if err != nil {
			end = next
			continue
		}
		if links = append(links, next); len(links) >= MaxLinks {
			return links, next
		}
		if path.IsAbs(to) {
			end = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return links, end
}

// readlink is os.Readlink without its allocation for what is no link.
func readlink(p string) (string, error) {
	var buf [unix.PathMax]byte
	n, err := unix.Readlink(p, buf[:])
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// A PlantedError says that a path leads through a link in a place that a guest
// writes, so that the guest may have chosen where it leads.
type PlantedError struct {
	Why   string // who named the path: "--rw", "user config /home/ada/…"
	Path  string // as it was named
	Link  string // where the link lies
	Leads string // where the whole path ends
	Place string // the place that a guest writes
}

// Error names all of them.
func (e *PlantedError) Error() string {
	what := "is a symbolic link"
	if e.Path != e.Link {
		what = fmt.Sprintf("goes by way of the symbolic link %q", e.Link)
	}
	return fmt.Sprintf("%s: %q %s and leads to %q; the link lies in %q, where a guest can write and may have made it", e.Why, e.Path, what, e.Leads, e.Place)
}

// Remedy is what to do.
func (e *PlantedError) Remedy() string {
	return fmt.Sprintf("if you mean %q, name it in place of the link; else remove the link", e.Leads)
}

// Planted returns the first of links that lies below one of the places that a
// guest writes, or nil. links and end are Walk's results for p; wrote knows
// places of other sessions, and may be nil.
func Planted(why, p string, links []string, end string, places []string, wrote func(dir string) bool) error {
	for _, l := range links {
		for dir := path.Dir(l); ; dir = path.Dir(dir) {
			if slices.Contains(places, dir) || wrote != nil && wrote(dir) {
				return &PlantedError{Why: why, Path: p, Link: l, Leads: end, Place: dir}
			}
			if dir == "/" {
				break
			}
		}
	}
	return nil
}
