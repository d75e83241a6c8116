package gitstore

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A listing reads the output of git ls-files -s -t -z one path at a time. The lines
// of a path, up to three in a conflict, are consecutive.
type listing struct {
	rest  []byte
	path  []byte // of lines; nil at the end
	lines []byte
}

// errUnordered says that a listing is not sorted by path, which is how git keeps an
// index: somebody else has written it.
var errUnordered = errors.New("the index: its paths are not in order")

// next goes to the next path.
func (l *listing) next() error {
	before, all := l.path, l.rest
	l.path = nil
	for len(l.rest) > 0 {
		line, rest, ended := bytes.Cut(l.rest, []byte{0})
		_, p, ok := bytes.Cut(line, []byte{'\t'})
		if !ended || !ok {
			return fmt.Errorf("the index: %q is no entry", line[:min(len(line), 100)])
		}
		if l.path != nil && !bytes.Equal(l.path, p) {
			break
		}
		l.path, l.rest = p, rest
	}
	l.lines = all[:len(all)-len(l.rest)]
	if l.path != nil && before != nil && bytes.Compare(before, l.path) >= 0 {
		return errUnordered
	}
	return nil
}

// inOrder sorts a listing that is not sorted by path: a guest may write such an index,
// which its git reads. A listing that can't be read stays as it is.
func inOrder(text []byte) []byte {
	l := listing{rest: text}
	err := l.next()
	for err == nil && l.path != nil {
		err = l.next()
	}
	if !errors.Is(err, errUnordered) {
		return text
	}
	list := bytes.SplitAfter(text, []byte{0})
	if last := len(list) - 1; len(list[last]) == 0 {
		list = list[:last]
	}
	slices.SortStableFunc(list, func(a, b []byte) int {
		_, p, _ := bytes.Cut(a, []byte{'\t'})
		_, q, _ := bytes.Cut(b, []byte{'\t'})
		return bytes.Compare(p, q)
	})
	return bytes.Join(list, nil)
}

// A pair is what two listings have of one path.
type pair struct{ a, b []byte }

// compareListings returns the paths at which two listings differ. Equal parts are not
// parsed: the cost is that of comparing bytes.
func compareListings(a, b []byte) (map[string]pair, error) {
	differ := map[string]pair{}
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
		return differ, nil
	}
	x, y := listing{rest: a}, listing{rest: b}
	if err := errors.Join(x.next(), y.next()); err != nil {
		return nil, err
	}
	for x.path != nil || y.path != nil {
		order := bytes.Compare(x.path, y.path)
		switch {
		case x.path == nil:
			order = 1
		case y.path == nil:
			order = -1
		}
		var p pair
		at := x.path
		if order <= 0 {
			p.a = x.lines
		}
		if order >= 0 {
			p.b, at = y.lines, y.path
		}
		if order != 0 || !bytes.Equal(p.a, p.b) {
			differ[string(at)] = p
		}
		var err, err2 error
		if order <= 0 {
			err = x.next()
		}
		if order >= 0 {
			err2 = y.next()
		}
		if err = errors.Join(err, err2); err != nil {
			return nil, err
		}
	}
	return differ, nil
}

// parseChanged parses, of three listings, the paths at which they are not all the same.
func parseChanged(base, host, private []byte, size int) (b, h, p index, err error) {
	ours, err := compareListings(base, host)
	if err != nil {
		return nil, nil, nil, err
	}
	theirs, err := compareListings(base, private)
	if err != nil {
		return nil, nil, nil, err
	}
	var three [3][]byte
	for at, x := range ours {
		y, both := theirs[at]
		if !both {
			y.b = x.a
		}
		three = [3][]byte{append(three[0], x.a...), append(three[1], x.b...), append(three[2], y.b...)}
	}
	for at, y := range theirs {
		if _, both := ours[at]; !both {
			three = [3][]byte{append(three[0], y.a...), append(three[1], y.a...), append(three[2], y.b...)}
		}
	}
	var out [3]index
	for i, text := range three {
		if out[i], err = parseIndex(text, size); err != nil {
			return nil, nil, nil, err
		}
	}
	return out[0], out[1], out[2], nil
}

// patchListing puts lines in the place of those that a listing has of these paths. It
// returns nil for a listing that is out of order, which must be read anew.
func patchListing(text []byte, change map[string]string) []byte {
	out := make([]byte, 0, len(text)+4096)
	paths := slices.Sorted(maps.Keys(change))
	l := listing{rest: text}
	err := l.next()
	for ; err == nil && l.path != nil; err = l.next() {
		for len(paths) > 0 && strings.Compare(paths[0], string(l.path)) < 0 {
			out = append(out, change[paths[0]]...)
			paths = paths[1:]
		}
		if len(paths) == 0 || paths[0] != string(l.path) {
			out = append(out, l.lines...)
		}
	}
	if err != nil {
		return nil
	}
	for _, p := range paths {
		out = append(out, change[p]...)
	}
	return out
}

// namesBelow are the names in a directory of a listing.
func namesBelow(text []byte, dir string) (names []string) {
	for line := range bytes.SplitSeq(text, []byte{0}) {
		_, p, _ := bytes.Cut(line, []byte{'\t'})
		if rest, ok := bytes.CutPrefix(p, []byte(dir+"/")); ok {
			name, _, _ := bytes.Cut(rest, []byte("/"))
			names = append(names, string(name))
		}
	}
	return names
}
