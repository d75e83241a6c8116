package undo

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A Prefer says what becomes of lines that both sides have changed.
type Prefer string

// The choices. The zero value leaves the whole file as the human's.
const (
	Keep    Prefer = ""
	Mine    Prefer = "mine"    // the human's lines, with all else of the session's
	Theirs  Prefer = "session" // the session's lines; files that can't be merged are replaced
	Markers Prefer = "markers" // both, with markers as git's
)

// Marks around lines that both sides have changed.
const (
	markMine   = "<<<<<<< yours\n"
	markOld    = "||||||| before the session\n"
	markTheirs = "=======\n"
	markEnd    = ">>>>>>> the session's\n"
)

// A part is a run of lines of three texts: the old one, the session's and the human's.
type part struct{ old, theirs, mine []string }

// conflict reports whether both sides have changed the part, differently.
func (p *part) conflict() bool {
	return !slices.Equal(p.theirs, p.mine) && !slices.Equal(p.old, p.theirs) && !slices.Equal(p.old, p.mine)
}

// parts cuts three texts where a line stays in all of them (diff3).
func parts(old, theirs, mine []string) (list []part) {
	in := func(b []string) []int {
		at := make([]int, len(old))
		for i := range at {
			at[i] = -1
		}
		for _, m := range matched(old, b) {
			at[m[0]] = m[1]
		}
		return at
	}
	ofTheirs, ofMine := in(theirs), in(mine)
	o, t, m := 0, 0, 0
	for i := range len(old) + 1 {
		endT, endM := len(theirs), len(mine)
		if i < len(old) {
			if ofTheirs[i] < 0 || ofMine[i] < 0 {
				continue
			}
			endT, endM = ofTheirs[i], ofMine[i]
		}
		if o < i || t < endT || m < endM {
			list = append(list, part{old[o:i], theirs[t:endT], mine[m:endM]})
		}
		if i < len(old) {
			list = append(list, part{old[i : i+1], theirs[endT : endT+1], mine[endM : endM+1]})
		}
		o, t, m = i+1, endT+1, endM+1
	}
	return list
}

// Merge returns mine with what the session has changed from old to theirs, or says why
// not. Merging the result again changes nothing, so that an apply can be run again.
func Merge(old, theirs, mine []byte, prefer Prefer) (merged []byte, why string) {
	if Binary(old) || Binary(theirs) || Binary(mine) {
		return nil, "you have both changed it, and it is no text"
	}
	if bytes.Contains(mine, []byte(markMine)) {
		return nil, "it has markers of an earlier apply: take them out first"
	}
	merged, lines := merge(old, theirs, mine, prefer)
	if len(lines) > 0 && prefer == Keep {
		return nil, "you have both changed " + lineWords(lines)
	}
	if len(lines) == 0 || prefer != Markers {
		if again, new := merge(old, theirs, merged, prefer); !bytes.Equal(again, merged) || prefer == Keep && len(new) > 0 {
			return nil, "you have both changed it, with lines so alike that merging is not safe"
		}
	}
	return merged, ""
}

// merge merges, and returns the lines of mine at which both sides have changed something.
func merge(old, theirs, mine []byte, prefer Prefer) (merged []byte, conflicts []int) {
	var out strings.Builder
	line := 1
	for _, p := range parts(split(old), split(theirs), split(mine)) {
		side := p.theirs
		switch {
		case p.conflict():
			conflicts = append(conflicts, line)
			side = p.resolved(prefer)
		case slices.Equal(p.old, p.theirs):
			side = p.mine
		}
		line += len(p.mine)
		for _, l := range side {
			out.WriteString(l)
		}
	}
	return []byte(out.String()), conflicts
}

// resolved returns the lines of a conflict.
func (p *part) resolved(prefer Prefer) []string {
	switch prefer {
	case Theirs:
		return p.theirs
	case Markers:
		return slices.Concat([]string{markMine}, ended(p.mine), []string{markOld}, ended(p.old), []string{markTheirs}, ended(p.theirs), []string{markEnd})
	}
	return p.mine
}

// ended gives the last line an end.
func ended(lines []string) []string {
	if n := len(lines) - 1; n >= 0 && !strings.HasSuffix(lines[n], "\n") {
		return append(slices.Clone(lines[:n]), lines[n]+"\n")
	}
	return lines
}

// lineWords names lines, the first ones.
func lineWords(lines []int) string {
	const most = 3
	var words []string
	for _, l := range lines[:min(len(lines), most)] {
		words = append(words, fmt.Sprint(l))
	}
	text := "line " + strings.Join(words, ", ")
	if len(lines) > 1 {
		text = "lines at " + strings.Join(words, ", ")
	}
	if len(lines) > most {
		text += fmt.Sprintf(" and at %d more", len(lines)-most)
	}
	return text
}

// Take returns old with those hunks of a difference that are chosen.
func Take(old []byte, list []Hunk, chosen []bool) []byte {
	lines := split(old)
	var out strings.Builder
	at := 0
	for i := range list {
		start := list[i].OldStart - 1
		if list[i].OldLines == 0 {
			start++
		}
		out.WriteString(strings.Join(lines[at:start], ""))
		for _, e := range list[i].Edits {
			if e.Op == ' ' || e.Op == '+' == chosen[i] {
				out.WriteString(e.line())
			}
		}
		at = start + list[i].OldLines
	}
	out.WriteString(strings.Join(lines[at:], ""))
	return []byte(out.String())
}

// line is the line with its end.
func (e *Edit) line() string {
	if e.Open {
		return e.Text
	}
	return e.Text + "\n"
}
