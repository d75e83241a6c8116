// Package fspath holds the path rules that need no disk: how a path that
// somebody wrote becomes an absolute one, whether one lies below another, and
// whether it matches a pattern. It knows slash-separated paths only and never
// follows a symbolic link; who opens a file must look again.
package fspath

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean turns p into a clean absolute path: a leading "~" or "~/" is home,
// what is relative lies below base. It refuses an empty path, another user's
// home ("~name"), control characters and text that is not UTF-8. Home and base
// must be absolute where they are needed.
func Clean(p, base, home string) (string, error) {
	if err := check(p); err != nil {
		return "", err
	}
	switch {
	case p == "~" || strings.HasPrefix(p, "~/"):
		return under(home, p[1:], p, "the home directory")
	case p[0] == '~':
		return "", fmt.Errorf("path %q names another user's home; write it out in full", p)
	case p[0] == '/':
		return path.Clean(p), nil
	}
	return under(base, p, p, "the workspace")
}

func check(p string) error {
	switch {
	case p == "":
		return fmt.Errorf("path %q is empty; want an absolute path, one below ~, or one relative to the workspace", p)
	case !utf8.ValidString(p):
		return fmt.Errorf("path %q is not UTF-8", p)
	case strings.ContainsFunc(p, unicode.IsControl):
		return fmt.Errorf("path %q has a control character", p)
	}
	return nil
}

func under(dir, rest, p, what string) (string, error) {
	if !path.IsAbs(dir) {
		return "", fmt.Errorf("path %q needs %s, which is %q; want it absolute", p, what, dir)
	}
	return path.Join(dir, rest), nil
}

// Below reports whether p is dir or lies below it. Both must be clean and
// absolute; anything else is below nothing.
func Below(p, dir string) bool {
	if !path.IsAbs(p) || !path.IsAbs(dir) {
		return false
	}
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// Match reports whether the whole of p matches pattern. A segment "**" stands
// for any number of segments, also none; inside a segment "*" stands for any
// text and "?" for one character. Nothing else is special, and a leading dot
// is a character like any other. The time is at most the product of both
// lengths.
func Match(pattern, p string) bool {
	at, back, from := 0, -1, 0
	for i := 0; i <= len(p); {
		segment, next := cut(p, i)
		if at <= len(pattern) {
			want, after := cut(pattern, at)
			if want == "**" {
				at, back, from = after, after, i
				continue
			}
			if matchSegment(want, segment) {
				at, i = after, next
				continue
			}
		}
		if back < 0 {
			return false
		}
		_, from = cut(p, from)
		at, i = back, from
	}
	for at <= len(pattern) {
		want, after := cut(pattern, at)
		if want != "**" {
			return false
		}
		at = after
	}
	return true
}

// cut returns the segment of a path that begins at a place, and where the next one
// begins: behind the path's end if there is none.
func cut(p string, at int) (segment string, next int) {
	if i := strings.IndexByte(p[at:], '/'); i >= 0 {
		return p[at : at+i], at + i + 1
	}
	return p[at:], len(p) + 1
}

// matchSegment is, as Match, the greedy match with one point of return: once a later
// wildcard is reached an earlier one never needs to give more.
func matchSegment(pattern, segment string) bool {
	at, back, from := 0, -1, 0
	for i := 0; i < len(segment); {
		c, n := utf8.DecodeRuneInString(segment[i:])
		want, size := utf8.DecodeRuneInString(pattern[at:])
		switch {
		case want == '*':
			at += size
			back, from = at, i
		case size > 0 && (want == '?' || want == c):
			at, i = at+size, i+n
		case back < 0:
			return false
		default:
			_, n = utf8.DecodeRuneInString(segment[from:])
			from += n
			at, i = back, from
		}
	}
	return strings.Trim(pattern[at:], "*") == ""
}

// Fold is the same for names that differ by case alone, as Unicode has it.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}
