package undo

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// apply makes the new text of the old one, as patch(1) does.
func apply(t *testing.T, old string, list []Hunk) string {
	t.Helper()
	lines := split([]byte(old))
	var out strings.Builder
	at := 0
	for _, h := range list {
		start := h.OldStart - 1
		if h.OldLines == 0 {
			start++
		}
		for ; at < start; at++ {
			out.WriteString(lines[at])
		}
		for _, e := range h.Edits {
			text := e.Text
			if !e.Open {
				text += "\n"
			}
			if e.Op != '+' {
				if lines[at] != text {
					t.Fatalf("line %d is %q; the hunk has %q", at+1, lines[at], text)
				}
				at++
			}
			if e.Op != '-' {
				out.WriteString(text)
			}
		}
	}
	for ; at < len(lines); at++ {
		out.WriteString(lines[at])
	}
	return out.String()
}

func TestHunks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func(lines, words int) string {
		var b strings.Builder
		for range lines {
			fmt.Fprintf(&b, "line %d\n", r.IntN(words))
		}
		if r.IntN(4) == 0 {
			b.WriteString("no end")
		}
		return b.String()
	}
	for range 3000 {
		n := r.IntN(40)
		a, b := text(n, 1+r.IntN(40)), text(r.IntN(40), 1+r.IntN(40))
		if r.IntN(2) == 0 { // a few edits
			lines := split([]byte(a))
			for range min(3, len(lines)) {
				k := r.IntN(len(lines))
				lines[k] = []string{"", "new\n", lines[k] + "new\n"}[r.IntN(3)]
			}
			b = strings.Join(lines, "")
		}
		list := Hunks([]byte(a), []byte(b))
		if got := apply(t, a, list); got != b {
			t.Fatalf("%q to %q: %+v makes %q", a, b, list, got)
		}
		if a == b && len(list) > 0 {
			t.Fatalf("%q differs from itself", a)
		}
	}
}

// TestShortest: a difference is no longer than it must be.
func TestShortest(t *testing.T) {
	a := strings.Repeat("a\nb\nc\nd\ne\nf\ng\nh\n", 20)
	lines := split([]byte(a))
	lines[50], lines[120] = "x\n", "y\nz\n"
	n := 0
	list := Hunks([]byte(a), []byte(strings.Join(lines, "")))
	for _, h := range list {
		for _, e := range h.Edits {
			if e.Op != ' ' {
				n++
			}
		}
	}
	if n != 5 || len(list) != 2 || list[0].OldStart != 48 || list[0].OldLines != 7 {
		t.Errorf("%d changed lines in %d hunks: %+v", n, len(list), list)
	}
}

// TestTooDifferent: of texts that differ too much all is replaced, in little time.
func TestTooDifferent(t *testing.T) {
	var a, b strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&a, "a%d\n", i)
		fmt.Fprintf(&b, "b%d\n", i)
	}
	list := Hunks([]byte(a.String()), []byte(b.String()))
	if len(list) != 1 || apply(t, a.String(), list) != b.String() {
		t.Errorf("%d hunks", len(list))
	}
}
