package undo

import (
	"bytes"
	"slices"
	"strings"
)

// An Edit is one line of a difference.
type Edit struct {
	Op   byte   // ' ', '-' or '+'
	Text string // without its end
	Open bool   // the last line of a file, which has no end
}

// A Hunk is a run of changed lines with those around them.
type Hunk struct {
	OldStart, OldLines, NewStart, NewLines int // lines count from 1
	Edits                                  []Edit
}

// Bounds of a difference.
const (
	around   = 3    // lines before and after a change
	maxEdits = 2000 // that are looked for; of more, all that lies between is replaced
)

// Binary reports whether a content is no text, as git finds out.
func Binary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 }

// Hunks compares two texts.
func Hunks(old, now []byte) []Hunk { return hunks(edits(split(old), split(now))) }

// split returns the lines of a text with their ends.
func split(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	lines := strings.SplitAfter(string(b), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// edits returns all lines of both texts in order.
func edits(a, b []string) (all []Edit) {
	add := func(op byte, lines ...string) {
		for _, l := range lines {
			text, ended := strings.CutSuffix(l, "\n")
			all = append(all, Edit{op, text, !ended})
		}
	}
	i, j := 0, 0
	for _, m := range matched(a, b) {
		add('-', a[i:m[0]]...)
		add('+', b[j:m[1]]...)
		add(' ', a[m[0]])
		i, j = m[0]+1, m[1]+1
	}
	add('-', a[i:]...)
	add('+', b[j:]...)
	return all
}

// matched returns pairs of lines that stay.
func matched(a, b []string) (pairs [][2]int) {
	head, tail := 0, 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		pairs = append(pairs, [2]int{head, head})
		head++
	}
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for _, m := range common(a[head:len(a)-tail], b[head:len(b)-tail]) {
		pairs = append(pairs, [2]int{head + m[0], head + m[1]})
	}
	for i := tail; i > 0; i-- {
		pairs = append(pairs, [2]int{len(a) - i, len(b) - i})
	}
	settle(a, b, pairs)
	return pairs
}

// settle moves lines that are new or gone down as far as lines like them go. The same
// change is then found at the same place, whatever else differs.
func settle(a, b []string, pairs [][2]int) {
	for k := len(pairs) - 1; k >= 0; k-- {
		before := [2]int{-1, -1}
		if k > 0 {
			before = pairs[k-1]
		}
		gone, added := pairs[k][0]-before[0]-1, pairs[k][1]-before[1]-1
		side, text, n := 1, b, added
		if gone > 0 {
			side, text, n = 0, a, gone
		}
		if gone > 0 && added > 0 || n == 0 {
			continue
		}
		for i := k; i < len(pairs); i++ {
			to := before[side] + 1 + i - k
			if pairs[i][side] != to+n || pairs[i][1-side] != before[1-side]+1+i-k || text[to] != text[to+n] {
				break
			}
			pairs[i][side] = to
		}
	}
}

// A match is a line that stays, with the way that leads there.
type match struct {
	x, y int
	from *match
}

// A reach is how far a diagonal has been followed: to x, past the matches.
type reach struct {
	x    int
	from *match
}

// common returns pairs of lines that stay, as many as there can be (Myers, 1986). It
// returns none if the texts differ too much.
func common(a, b []string) (pairs [][2]int) {
	most := min(len(a)+len(b), maxEdits)
	reached := make([]reach, 2*most+3) // by diagonal, which is most+1 in the middle
	for d := 0; d <= most; d++ {
		for k := -d; k <= d; k += 2 {
			at := k + most + 1
			p := reached[at+1]
			if k != -d && (k == d || reached[at-1].x >= reached[at+1].x) {
				p = reached[at-1]
				p.x++
			}
			for p.x < len(a) && p.x-k < len(b) && a[p.x] == b[p.x-k] {
				p = reach{p.x + 1, &match{p.x, p.x - k, p.from}}
			}
			if p.x >= len(a) && p.x-k >= len(b) {
				for m := p.from; m != nil; m = m.from {
					pairs = append(pairs, [2]int{m.x, m.y})
				}
				slices.Reverse(pairs)
				return pairs
			}
			reached[at] = p
		}
	}
	return nil
}

// hunks cuts the lines that are far from any change.
func hunks(all []Edit) (list []Hunk) {
	oldAt, newAt, end := 1, 1, 0 // end is behind the last hunk
	for i := 0; i < len(all); i++ {
		if all[i].Op == ' ' {
			oldAt, newAt = oldAt+1, newAt+1
			continue
		}
		lead := min(around, i-end)
		last := i
		for j := i; j < len(all) && j <= last+2*around; j++ {
			if all[j].Op != ' ' {
				last = j
			}
		}
		end = min(last+1+around, len(all))
		h := Hunk{OldStart: oldAt - lead, NewStart: newAt - lead, Edits: all[i-lead : end]}
		h.count()
		list = append(list, h)
		oldAt, newAt, i = h.OldStart+h.OldLines, h.NewStart+h.NewLines, end-1
	}
	for i := range list { // as git writes it
		if list[i].OldLines == 0 {
			list[i].OldStart--
		}
		if list[i].NewLines == 0 {
			list[i].NewStart--
		}
	}
	return list
}

func (h *Hunk) count() {
	for _, e := range h.Edits {
		if e.Op != '+' {
			h.OldLines++
		}
		if e.Op != '-' {
			h.NewLines++
		}
	}
}
