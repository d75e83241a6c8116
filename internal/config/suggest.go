package config

import (
	"slices"
	"strings"
)

// Nearest returns the candidate that word was most likely meant to be, or "".
func Nearest(word string, candidates []string) string { return nearest(word, candidates) }

// nearest returns the candidate that word was most likely meant to be, or "".
// It is one with at most a third of its letters changed, not counting case and
// dashes, or else one that begins with the word.
func nearest(word string, candidates []string) string {
	const longest = 64 // nobody mistypes a key that much
	if len(word) > longest {
		return ""
	}
	best, least := "", longest
	for _, c := range candidates {
		d := distance(plain(word), plain(c))
		if d < least && d <= max(1, len(c)/3) && d < len(c) {
			best, least = c, d
		}
	}
	if i := slices.IndexFunc(candidates, func(c string) bool { return len(word) > 2 && strings.HasPrefix(c, word) }); best == "" && i >= 0 {
		return candidates[i]
	}
	return best
}

func plain(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }

// distance is the optimal string alignment distance: insertions, deletions,
// substitutions and swaps of neighbours, in bytes.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differ(a[i-1], b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

func differ(a, b byte) int {
	if a == b {
		return 0
	}
	return 1
}

// didYouMean writes the hint for an unknown word.
func didYouMean(word string, candidates []string) string {
	if n := nearest(word, candidates); n != "" {
		return `did you mean "` + n + `"`
	}
	return ""
}
