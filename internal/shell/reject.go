package shell

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// suspicious says why a text is not even parsed, or returns "": it holds what
// shells and parsers read differently, or what a person can't see.
func suspicious(s string) string {
	if len(s) > MaxLine {
		return fmt.Sprintf("it is longer than %d bytes", MaxLine)
	}
	blanks, feeds := 0, 0
	for i, c := range s {
		if why := hidden(c, s[i:]); why != "" {
			return why
		}
		switch c {
		case ' ', '\t':
			blanks++
			continue
		case '\n':
			feeds++
			blanks = 0
			continue
		}
		if blanks > maxPadding || feeds > maxPadding {
			return "white space pushes a part of it out of sight"
		}
		blanks, feeds = 0, 0
	}
	if continuedComment(s) {
		return "a comment ends in a backslash, which shells and parsers read differently"
	}
	return ""
}

// hidden says what is wrong with a character.
func hidden(c rune, rest string) string {
	switch {
	case c < 0x20 && c != '\t' && c != '\n', c == 0x7f:
		return fmt.Sprintf("it holds the control character %#U", c)
	case c < 0x80:
		return ""
	case c == utf8.RuneError && !strings.HasPrefix(rest, "\uFFFD"):
		return "it is not valid UTF-8"
	case unicode.In(c, unicode.C, unicode.Z, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return fmt.Sprintf("it holds the invisible character %#U", c)
	case strings.ContainsRune("⁄∕⧸／⟋⧵＼﹨．․‥", c):
		return fmt.Sprintf("it holds %#U, which looks like a part of a path", c)
	}
	return ""
}

// continuedComment reports whether a comment ends in a backslash. It
// takes every # for the start of a comment that could be one.
func continuedComment(s string) bool {
	for i := strings.IndexByte(s, '#'); i >= 0; {
		end := strings.IndexByte(s[i:], '\n')
		if end < 0 {
			end = len(s) - i
		}
		if s[i+end-1] == '\\' && (i == 0 || strings.IndexByte(" \t\n;&|()<>`\\", s[i-1]) >= 0) {
			return true
		}
		next := strings.IndexByte(s[i+1:], '#')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return false
}

// escape makes a text visible: nothing in it moves a cursor or hides.
func escape(s string) string {
	q := strconv.QuoteToASCII(s)
	return q[1 : len(q)-1]
}

// homoglyph reports whether a word names a host or path with letters that
// look like others.
func homoglyph(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return strings.Contains(s, "://")
		}
	}
	return false
}
