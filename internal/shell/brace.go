package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func braced(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.ContainsRune(lit.Value, '{') {
			return true
		}
	}
	return false
}

// braces lists the words of a brace expansion of written, and is opaque where
// they are very many, or not certain.
func (r *reader) braces(split, written *syntax.Word) []*syntax.Word {
	if glues(written) {
		r.opaque("braces put an expansion together with other text", written)
	}
	words, ok := unbrace(split.Parts)
	if !ok {
		r.opaque("braces make too many words, or not certain ones", written)
		return nil
	}
	out := make([]*syntax.Word, len(words))
	for i, parts := range words {
		out[i] = merged(parts)
	}
	return out
}

// unbrace expands the braces among parts, the leftmost slowest.
func unbrace(parts []syntax.WordPart) ([][]syntax.WordPart, bool) {
	words := [][]syntax.WordPart{nil}
	for _, p := range parts {
		choices := [][]syntax.WordPart{{p}}
		if b, isBrace := p.(*syntax.BraceExp); isBrace {
			var ok bool
			if choices, ok = alternatives(b); !ok {
				return nil, false
			}
		}
		if len(words)*len(choices) > maxWords {
			return nil, false
		}
		next := make([][]syntax.WordPart, 0, len(words)*len(choices))
		for _, w := range words {
			for _, c := range choices {
				next = append(next, append(w[:len(w):len(w)], c...))
			}
		}
		words = next
	}
	return words, true
}

func alternatives(b *syntax.BraceExp) ([][]syntax.WordPart, bool) {
	if b.Sequence {
		return sequence(b)
	}
	var out [][]syntax.WordPart
	for _, e := range b.Elems {
		words, ok := unbrace(e.Parts)
		if !ok {
			return nil, false
		}
		out = append(out, words...)
	}
	return out, true
}

// sequence expands {1..9} and {a..e}. With a step or leading zeros it is not
// certain: versions of bash differ.
func sequence(b *syntax.BraceExp) ([][]syntax.WordPart, bool) {
	from, to := b.Elems[0].Lit(), b.Elems[1].Lit()
	letters := len(from) == 1 && len(to) == 1 && plainName(from) && plainName(to) && from != "_" && to != "_"
	x, errX := strconv.Atoi(from)
	y, errY := strconv.Atoi(to)
	switch {
	case len(b.Elems) != 2:
		return nil, false
	case letters && (from[0]^to[0])&0x20 == 0:
		x, y = int(from[0]), int(to[0])
	case errX != nil, errY != nil, strconv.Itoa(x) != from, strconv.Itoa(y) != to, x-y > maxWords, y-x > maxWords:
		return nil, false
	}
	var out [][]syntax.WordPart
	for step := sign(y - x); ; x += step {
		text := strconv.Itoa(x)
		if letters {
			text = string(rune(x))
		}
		out = append(out, []syntax.WordPart{&syntax.Lit{Value: text}})
		if x == y {
			return out, true
		}
	}
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// glues reports whether braces, which work on text, could lengthen the name of
// a variable, or make an expansion: {a,$v}x is ax and $vx. What they make of
// NAME=~ differs between versions of bash.
func glues(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if strings.ContainsRune(p.Value, '$') || strings.Contains(p.Value, "=~") {
				return true
			}
		case *syntax.ParamExp:
			if p.Short {
				return true
			}
		}
	}
	return false
}

// merged is a word of parts, with neighbouring literals as one, as they are after braces.
func merged(parts []syntax.WordPart) *syntax.Word {
	out := &syntax.Word{}
	for _, p := range parts {
		lit, ok := p.(*syntax.Lit)
		if n := len(out.Parts); ok && n > 0 {
			if last, isLit := out.Parts[n-1].(*syntax.Lit); isLit {
				out.Parts[n-1] = &syntax.Lit{ValuePos: last.ValuePos, ValueEnd: lit.ValueEnd, Value: last.Value + lit.Value}
				continue
			}
		}
		out.Parts = append(out.Parts, p)
	}
	return out
}
