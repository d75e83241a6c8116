// Package lexicon says which files of data speak of a name, so that a process
// that asks about few names, such as an agent's hook, does not read them all.
// An index is text: a line for each name, in order, with the files behind it.
package lexicon

import (
	"maps"
	"slices"
	"strings"
)

// An Entry is a file that speaks of a name. Neither may hold white space.
type Entry struct{ Name, File string }

// Make returns the index of entries, in any order and any number of times.
func Make(entries []Entry) string {
	by := map[string][]string{}
	for _, e := range entries {
		if !slices.Contains(by[e.Name], e.File) {
			by[e.Name] = append(by[e.Name], e.File)
		}
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(by)) {
		slices.Sort(by[name])
		out.WriteString(name + " " + strings.Join(by[name], " ") + "\n")
	}
	return out.String()
}

// Find returns the files that speak of a name, in order; none where no file
// does.
func Find(index, name string) []string {
	for lo, hi := 0, len(index); lo < hi; {
		at := lo + strings.LastIndexByte(index[lo:(lo+hi)/2], '\n') + 1 // where the line in the middle begins
		line, _, _ := strings.Cut(index[at:hi], "\n")
		key, files, _ := strings.Cut(line, " ")
		switch order := strings.Compare(key, name); {
		case order == 0:
			return strings.Fields(files)
		case order < 0:
			lo = at + len(line) + 1
		default:
			hi = at
		}
	}
	return nil
}

// Names are the names of an index, in order.
func Names(index string) (names []string) {
	for line := range strings.Lines(index) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	return names
}
