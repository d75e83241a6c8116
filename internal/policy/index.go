package policy

import (
	"slices"
	"strings"
)

// An index finds, among many patterns of paths, the few that a path can match:
// a pattern with a literal segment matches only paths that have this segment.
type index[T any] struct {
	bySegment map[string][]T
	general   []T // patterns without a literal segment
	list      []T // all, in the order in which they were added
}

// add files a value under the last literal segment of its pattern.
func (x *index[T]) add(pattern string, v T) {
	x.list = append(x.list, v)
	segments := strings.Split(pattern, "/")
	for _, s := range slices.Backward(segments) {
		if s != "" && s != "~" && s != "." && !strings.ContainsAny(s, "*?[") {
			if x.bySegment == nil {
				x.bySegment = map[string][]T{}
			}
			x.bySegment[s] = append(x.bySegment[s], v)
			return
		}
	}
	x.general = append(x.general, v)
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
		for _, v := range x.bySegment[s] {
			if !f(v) {
				return
			}
		}
	}
}
