package netrule

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A glob is a pattern of paths: "*" stands for any characters but "/", "across"
// for any characters; every other byte stands for itself. Patterns have no
// control character, so that the text of a pattern can be matched like a path:
// a pattern that matches it matches every path it stands for.
type glob string

// across is written "**".
const across = '\x01'

func parseGlob(s string) (glob, error) {
	switch {
	case s == "" || !utf8.ValidString(s):
		return "", fmt.Errorf("%q is no pattern; want for example \"team/*\"", clip(s))
	case strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '\\' }):
		return "", fmt.Errorf("%q has a blank, a control character or a backslash; \"*\" can stand in its place", clip(s))
	case strings.Contains(s, "***"):
		return "", fmt.Errorf("%q: want \"*\" within a segment, or \"**\" across them", clip(s))
	}
	for segment := range strings.SplitSeq(strings.Trim(s, "/"), "/") {
		if segment == "." || segment == ".." || segment == "" && len(s) > 1 {
			return "", fmt.Errorf("%q has an empty segment, \".\" or \"..\", which no path has once it is in normal form", clip(s))
		}
	}
	return glob(strings.ReplaceAll(s, "**", string(across))), nil
}

// String writes the pattern as parseGlob reads it.
func (g glob) String() string { return strings.ReplaceAll(string(g), string(across), "**") }

// match reports whether the pattern stands for a path. One with a control
// character is matched by nothing.
func (g glob) match(path string) bool {
	if i := strings.IndexAny(string(g), "*"+string(across)); i < 0 || len(path) < i || path[:i] != string(g[:i]) {
		return i < 0 && path == string(g)
	}
	return !strings.ContainsFunc(path, func(c rune) bool { return c < ' ' || c == 0x7f }) && g.reads(path)
}

// covers reports whether the pattern stands for every path that o stands for.
func (g glob) covers(o glob) bool { return g == o || g.reads(string(o)) }

// meet returns the narrower of two patterns, if one of them is.
func (g glob) meet(o glob) (glob, bool) {
	if g.covers(o) {
		return o, true
	}
	return g, o.covers(g)
}

// reads follows all ways through the pattern at once, so that no path costs
// more than its length times that of the pattern.
func (g glob) reads(text string) bool {
	at := make([]bool, len(g)+1) // whether the text so far is matched by g[:i]
	next := make([]bool, len(g)+1)
	at[0] = true
	g.skip(at)
	for i := range len(text) {
		clear(next)
		for j := range len(g) {
			if !at[j] {
				continue
			}
			switch c := text[i]; {
			case g[j] == across, g[j] == '*' && c != '/' && c != across:
				next[j] = true
			case g[j] != '*' && g[j] == c:
				next[j+1] = true
			}
		}
		g.skip(next)
		at, next = next, at
	}
	return at[len(g)]
}

// skip lets stars stand for nothing.
func (g glob) skip(at []bool) {
	for j := range len(g) {
		if at[j] && (g[j] == '*' || g[j] == across) {
			at[j+1] = true
		}
	}
}
