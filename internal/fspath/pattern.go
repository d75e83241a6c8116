package fspath

import (
	"fmt"
	"path"
	"strings"
)

// maxSegments is how many segments a pattern may have: a State has a bit for each.
const maxSegments = 60

// A Pattern is an absolute pattern in the form of Match. Names are compared as
// Fold does, because a file system may ignore case.
type Pattern struct {
	text     string
	segments []string
}

// IsPattern reports whether a path that somebody wrote is meant as a pattern.
// Brackets and braces are characters of many real names and make none.
func IsPattern(p string) bool { return strings.ContainsAny(p, "*?") }

// ParsePattern reads an absolute, clean path with "*", "?" and "**". It refuses
// what other tools take for special, and what would match everything.
func ParsePattern(text string) (Pattern, error) {
	if !path.IsAbs(text) || path.Clean(text) != text {
		return Pattern{}, fmt.Errorf("pattern %q is not absolute and clean", text)
	}
	p := Pattern{text: text, segments: strings.Split(Fold(text[1:]), "/")}
	switch {
	case len(p.segments) > maxSegments:
		return Pattern{}, fmt.Errorf("pattern %q has %d segments; want at most %d", text, len(p.segments), maxSegments)
	case strings.ContainsAny(text, `[]{}\`):
		return Pattern{}, fmt.Errorf(`pattern %q: only "*", "?" and "**" are special; write one entry for each name in place of brackets and braces`, text)
	}
	return p, nil
}

// String is the pattern as it was written.
func (p Pattern) String() string { return p.text }

// Base is the directory below which all matches lie.
func (p Pattern) Base() string {
	for i, s := range p.segments {
		if IsPattern(s) {
			return "/" + strings.Join(strings.Split(p.text[1:], "/")[:i], "/")
		}
	}
	return path.Dir(p.text)
}

// A State is what is left to match of a Pattern after the first names of a path:
// a set of segments that may come next. In the zero State nothing below matches.
type State uint64

// Start is the state of "/".
func (p Pattern) Start() State { return p.closed(1) }

// closed lets every "**" stand for no name as well.
func (p Pattern) closed(s State) State {
	for i, seg := range p.segments {
		if s&(1<<i) != 0 && seg == "**" {
			s |= 1 << (i + 1)
		}
	}
	return s
}

// Step is the state one name further.
func (p Pattern) Step(s State, name string) State {
	var next State
	name = Fold(name)
	for i, seg := range p.segments {
		switch {
		case s&(1<<i) == 0:
		case seg == "**":
			next |= 1 << i
		case matchSegment(seg, name):
			next |= 1 << (i + 1)
		}
	}
	return p.closed(next)
}

// Matched reports whether the names so far match.
func (p Pattern) Matched(s State) bool { return s&(1<<len(p.segments)) != 0 }

// Below reports whether the pattern matches abs, which is clean, or a directory
// above it.
func (p Pattern) Below(abs string) bool {
	s, matched := p.Walk(abs)
	return matched || p.Matched(s)
}

// Walk returns the state of abs, which is clean, and whether the pattern matches
// a directory above it.
func (p Pattern) Walk(abs string) (s State, above bool) {
	s = p.Start()
	for name := range strings.SplitSeq(strings.TrimPrefix(abs, "/"), "/") {
		if name == "" {
			break
		}
		above = above || p.Matched(s)
		s = p.Step(s, name)
	}
	return s, above
}

// Rest lists the patterns, relative to it, that say below abs what p says.
func (p Pattern) Rest(abs string) []string {
	s, _ := p.Walk(abs)
	var list []string
	for i := range p.segments {
		if s&(1<<i) != 0 && (i == 0 || p.segments[i-1] != "**" || s&(1<<(i-1)) == 0) {
			list = append(list, strings.Join(strings.Split(p.text[1:], "/")[i:], "/"))
		}
	}
	return list
}
