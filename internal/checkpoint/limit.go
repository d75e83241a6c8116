package checkpoint

import "slices"

// maxScattered is how many files of one directory are left out one by one. Of more,
// the whole directory is left out: each is a mount in the session.
const maxScattered = 16

// limit leaves out what goes beyond a number of bytes. What was covered before
// comes first, then the smaller before the larger. The root itself stays.
func limit(n, old *node, most int64) {
	sizes := map[*node]int64{}
	if n.measure(sizes) <= most {
		return
	}
	left := most
	n.fit(old, sizes, &left)
}

func (n *node) measure(sizes map[*node]int64) (all int64) {
	for i := range n.items {
		if x := &n.items[i]; x.sub != nil {
			all += x.sub.measure(sizes)
		} else if x.Kind.covered() {
			all += x.Size
		}
	}
	sizes[n] = all
	return all
}

// fit takes what fits into left and leaves out the rest.
func (n *node) fit(old *node, sizes map[*node]int64, left *int64) {
	type choice struct {
		x   *item
		was *item
		all int64
	}
	var list []choice
	for i := range n.items {
		x := &n.items[i]
		switch {
		case x.sub != nil:
			list = append(list, choice{x, old.at(i, x.Name), sizes[x.sub]})
		case x.Kind.covered():
			list = append(list, choice{x, old.at(i, x.Name), x.Size})
		}
	}
	slices.SortStableFunc(list, func(a, b choice) int {
		known := func(c choice) bool { return c.was != nil && c.was.Kind.covered() }
		if known(a) != known(b) {
			if known(a) {
				return -1
			}
			return 1
		}
		return int(min(max(a.all-b.all, -1), 1))
	})
	for _, c := range list {
		switch {
		case c.all <= *left:
			*left -= c.all
		case c.x.sub == nil:
			c.x.leaveOut(c.all)
		default:
			was := *left
			var sub *node
			if c.was != nil {
				sub = c.was.sub
			}
			c.x.sub.fit(sub, sizes, left)
			if c.x.sub.scattered() > maxScattered {
				*left = was
				c.x.leaveOut(c.all)
			}
		}
	}
}

func (x *item) leaveOut(size int64) {
	*x = item{Entry: Entry{Name: x.Name, Kind: Uncovered, Size: size}, why: tooMuch}
}

// scattered counts what is left out directly in a directory.
func (n *node) scattered() (count int) {
	for i := range n.items {
		if n.items[i].why == tooMuch {
			count++
		}
	}
	return count
}
