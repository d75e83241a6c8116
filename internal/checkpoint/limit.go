package checkpoint

import "slices"

// maxScattered is how many files of one directory are left out one by one. With
// more than that, the whole directory is left out: each is a mount in the session.
const maxScattered = 16

// limit leaves out files beyond a number of bytes. The order is: covered before and
// not grown, covered before, new; within each the smaller before the larger. The
// root itself stays.
func limit(n, old *node, most int64) {
	if n.total().bytes <= most {
		return
	}
	l := limiter{sizes: map[*node]int64{}, left: most}
	n.measure(l.sizes)
	var grown []*item
	l.known(n, old, &grown)
	slices.SortStableFunc(grown, func(a, b *item) int { return compareSizes(a.Size, b.Size) })
	for _, x := range grown {
		if x.Size > l.left {
			x.leave(tooMuch, x.Size)
			continue
		}
		l.left -= x.Size
	}
	l.fit(n, old)
}

type limiter struct {
	sizes map[*node]int64 // new bytes below a directory, after known
	left  int64
}

func compareSizes(a, b int64) int { return int(min(max(a-b, -1), 1)) }

// measure adds up the bytes below a directory.
func (n *node) measure(sizes map[*node]int64) (all int64) {
	for i := range n.list() {
		if x := &n.items[i]; x.sub != nil {
			all += x.sub.measure(sizes)
		} else if x.Kind.covered() {
			all += x.Size
		}
	}
	sizes[n] = all
	return all
}

// known takes over what was covered before, and lists the entries that have grown
// since. Those no longer count in sizes. It returns by how much.
func (l *limiter) known(n, old *node, grown *[]*item) (less int64) {
	for i := range n.list() {
		x := &n.items[i]
		was := old.at(i, x.Name)
		switch {
		case was == nil || !was.Kind.covered():
		case x.sub != nil:
			less += l.known(x.sub, was.sub, grown)
		case x.Kind.covered() && x.Size <= was.Size:
			l.left -= x.Size
			less += x.Size
		case x.Kind.covered():
			*grown = append(*grown, x)
			less += x.Size
		}
	}
	l.sizes[n] -= less
	return less
}

// fit takes the new files that fit, and leaves out the rest.
func (l *limiter) fit(n, old *node) {
	type choice struct {
		x   *item
		was *item
		all int64
	}
	var list []choice
	for i := range n.list() {
		x := &n.items[i]
		was := old.at(i, x.Name)
		switch {
		case x.sub != nil:
			list = append(list, choice{x, was, l.sizes[x.sub]})
		case x.Kind.covered() && (was == nil || !was.Kind.covered()):
			list = append(list, choice{x, was, x.Size})
		}
	}
	slices.SortStableFunc(list, func(a, b choice) int { return compareSizes(a.all, b.all) })
	for _, c := range list {
		switch {
		case c.all <= l.left:
			l.left -= c.all
		case c.x.sub == nil:
			c.x.leave(tooMuch, c.all)
		case c.was != nil && c.was.Kind == Directory:
			l.fit(c.x.sub, c.was.sub)
		default:
			l.fresh(c.x, c.all)
		}
	}
}

// fresh fits a new directory, as a whole or file by file.
func (l *limiter) fresh(x *item, all int64) {
	left := l.left
	l.fit(x.sub, nil)
	if x.sub.scattered() > maxScattered {
		l.left = left
		x.leave(tooMuch, all)
	}
}

// scattered counts the files left out directly in a directory.
func (n *node) scattered() (count int) {
	for i := range n.list() {
		if n.items[i].why == tooMuch {
			count++
		}
	}
	return count
}
