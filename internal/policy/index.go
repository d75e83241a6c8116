package policy

import "strings"

// An index finds, among many patterns of paths, the few that a path can match:
// a pattern with a literal segment matches only paths that have this segment.
type index[T any] struct {
	list      []T             // all, in the order in which they were added
	next      []int           // of each the next with its segment, or 0: the first of all is nobody's next
	bySegment map[string]ends // places in list
	general   []T             // patterns without a literal segment
}

// ends are the first and the last value with a segment.
type ends struct{ first, last int }

// newIndex makes an index with room for n values.
func newIndex[T any](n int) index[T] {
	return index[T]{list: make([]T, 0, n), next: make([]int, 0, n), bySegment: make(map[string]ends, n)}
}

// add files a value under the last literal segment of its pattern.
func (x *index[T]) add(pattern string, v T) {
	n := len(x.list)
	x.list, x.next = append(x.list, v), append(x.next, 0)
	s := lastLiteral(pattern)
	if s == "" {
		x.general = append(x.general, v)
		return
	}
	e, ok := x.bySegment[s]
	if ok {
		x.next[e.last] = n
	} else {
		e.first = n
	}
	e.last = n
	x.bySegment[s] = e
}

// isWild reports whether a segment has a wildcard.
func isWild(s string) bool {
	for i := range len(s) {
		if s[i] == '*' || s[i] == '?' || s[i] == '[' {
			return true
		}
	}
	return false
}

// lastLiteral is the last segment that only itself matches, or "".
func lastLiteral(pattern string) string {
	for end := len(pattern); end >= 0; {
		from := strings.LastIndexByte(pattern[:end], '/') + 1
		if s := pattern[from:end]; s != "" && s != "~" && s != "." && !isWild(s) {
			return s
		}
		end = from - 1
	}
	return ""
}

// each calls f for the values whose patterns a path may match, until f
// returns false.
func (x *index[T]) each(path string, f func(T) bool) {
	for _, v := range x.general {
		if !f(v) {
			return
		}
	}
	for s := range strings.SplitSeq(path, "/") {
		e, ok := x.bySegment[s]
		for n := e.first; ok; n = x.next[n] {
			if !f(x.list[n]) {
				return
			}
			ok = n != e.last
		}
	}
}
