package skill

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/bawn-dev/bawn/internal/redact"
)

// Readable reports whether content is a text that somebody reads: it holds no
// NUL, as what only programs read does in its first kilobytes.
func Readable(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), 8<<10)], 0) < 0
}

// Hidden lists where a text holds what its reader does not see: characters that are
// invisible, change the writing direction or hide others (tags, variation
// selectors), bytes that are not UTF-8, and text pushed out of sight. The joiners
// and selectors of an emoji are not listed.
func Hidden(file string, text []byte) []*Fault {
	var faults []*Fault
	gap := 0
	line := 0
	for l := range bytes.Lines(text) {
		line++
		l = bytes.TrimSuffix(bytes.TrimSuffix(l, []byte("\n")), []byte("\r"))
		problem := hiddenIn(l)
		if gap++; len(bytes.TrimSpace(l)) > 0 {
			if gap > MaxGap && problem == "" {
				problem = fmt.Sprintf("%d empty lines stand before it, which hide it; want at most %d", gap-1, MaxGap)
			}
			gap = 0
		}
		if problem == "" {
			continue
		}
		if faults = append(faults, &Fault{File: file, Line: line, Problem: problem}); len(faults) == MaxFaults {
			break
		}
	}
	return faults
}

// hiddenIn says what a line hides, or "".
func hiddenIn(l []byte) string {
	if plain(l) {
		return ""
	}
	blanks, marks := 0, 0
	var before rune
	for i := 0; i < len(l); {
		r, n := utf8.DecodeRune(l[i:])
		if marks++; !unicode.In(r, unicode.Mn, unicode.Me) || unicode.Is(unicode.Variation_Selector, r) {
			marks = 0
		}
		switch {
		case marks > MaxMarks:
			return fmt.Sprintf("more than %d marks on one character, which cover what stands around it; remove them", MaxMarks)
		case r == utf8.RuneError && n == 1:
			return fmt.Sprintf("the byte 0x%02x is no UTF-8; save the file as UTF-8", l[i])
		case blank(r):
			blanks++
		case blanks > MaxBlanks:
			return fmt.Sprintf("%d blanks stand before something else, which push it out of sight; want at most %d", blanks, MaxBlanks)
		case redact.Invisible(r) && !joins(before, r, l[i+n:]):
			return fmt.Sprintf("the character %U (%s) can't be seen; remove it", r, sort(r))
		default:
			blanks = 0
		}
		before, i = r, i+n
	}
	return ""
}

// plain reports whether a line needs no closer look; most don't.
func plain(l []byte) bool {
	for _, c := range l {
		if c < ' ' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return len(l) <= MaxBlanks
}

// blank reports whether r is a space that a reader takes for one: beside the
// usual ones those that typography and Japanese use.
func blank(r rune) bool {
	switch r {
	case ' ', '\t', '\u00a0', '\u202f', '\u3000':
		return true
	}
	return false
}

const (
	joiner   = '\u200d'
	emojiWay = '\ufe0f' // "show it as an emoji"
	textWay  = '\ufe0e'
)

// joins reports whether r belongs to the emoji that it follows. A second one in
// a row does not: what such rows say is said to machines.
func joins(before, r rune, rest []byte) bool {
	switch r {
	case emojiWay, textWay:
		return pictures(before) || before >= '0' && before <= '9' || before == '#' || before == '*'
	case joiner:
		next, n := utf8.DecodeRune(rest)
		return n > 0 && (pictures(before) || before == emojiWay) && pictures(next)
	}
	return false
}

func pictures(r rune) bool {
	return unicode.Is(unicode.So, r) || unicode.Is(unicode.Sm, r) || r >= 0x1f3fb && r <= 0x1f3ff
}

// sort names what a hidden character is for.
func sort(r rune) string {
	switch {
	case r == 0xfeff:
		return "byte order mark"
	case r >= 0xe0000 && r <= 0xe007f:
		return "tag"
	case unicode.Is(unicode.Bidi_Control, r):
		return "turns the direction of writing"
	case unicode.Is(unicode.Variation_Selector, r):
		return "variation selector"
	case unicode.IsControl(r):
		return "control character"
	case unicode.IsSpace(r) || unicode.Is(unicode.Zs, r):
		return "unusual blank"
	case unicode.Is(unicode.Co, r):
		return "private use"
	}
	return "zero width or unassigned"
}
