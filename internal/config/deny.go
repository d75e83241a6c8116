package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
)

// anywhere begins a pattern that counts below every place that a session is given.
const anywhere = "**/"

// denyEntry accepts a path, or a pattern of paths.
func denyEntry(s string, p paths) (string, error) {
	if !fspath.IsPattern(s) {
		return pathEntry(s, p)
	}
	text := s
	if strings.HasPrefix(s, "!") {
		return "", fmt.Errorf("deny %s: there are no exceptions; want a pattern that does not match what is to be read", quote(s))
	}
	if !strings.Contains(s, "/") {
		text = anywhere + s
	}
	rest, floats := strings.CutPrefix(text, anywhere)
	base := p.workspace
	if floats {
		base, text = "/", rest
	}
	clean, err := fspath.Clean(text, base, p.home)
	if err != nil {
		return "", err
	}
	if _, err := fspath.ParsePattern(clean); err != nil {
		return "", fmt.Errorf("deny %s: %w", quote(s), err)
	}
	if floats && !strings.ContainsFunc(clean, func(r rune) bool { return !strings.ContainsRune("*?/", r) }) {
		return "", fmt.Errorf("deny %s would hide everything that a session is given; want a pattern with a name in it", quote(s))
	}
	if floats {
		return anywhere + clean[1:], nil
	}
	return clean, nil
}

// patterns returns the patterns of isolation.deny, each as a place: those that
// count anywhere once for each given place.
func (c *Config) patterns(given []bawn.Mount) []bawn.Mount {
	var out []bawn.Mount
	for _, e := range c.st.lists["isolation.deny"] {
		if !fspath.IsPattern(e.text) {
			continue
		}
		rest, floats := strings.CutPrefix(e.text, anywhere)
		if !floats {
			out = append(out, bawn.Mount{Path: e.text, Access: bawn.Hidden, Why: e.at.why()})
			continue
		}
		for _, dir := range outermost(given) {
			out = append(out, bawn.Mount{Path: strings.TrimSuffix(dir, "/") + "/" + anywhere + rest, Access: bawn.Hidden, Why: e.at.why()})
		}
	}
	return out
}

// outermost are the places that are shown and lie in no other one.
func outermost(given []bawn.Mount) []string {
	var list []string
	for _, m := range given { // sorted
		shown := m.Access == bawn.ReadOnly || m.Access == bawn.ReadWrite
		if shown && !slices.ContainsFunc(list, func(dir string) bool { return fspath.Below(m.Path, dir) }) {
			list = append(list, m.Path)
		}
	}
	return list
}

// cacheEntry accepts a path. A cache that is not there is left out, and so would
// a pattern be.
func cacheEntry(s string, p paths) (string, error) {
	if fspath.IsPattern(s) {
		return "", fmt.Errorf("cache directory %s is a pattern, which isolation.deny alone takes; want a path", quote(s))
	}
	return pathEntry(s, p)
}
