package supervise

import (
	"io"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// Bounds of the look through a directory that is moved. A larger one fails like a
// move to another file system, so that mv(1) copies it.
const (
	maxMoved     = 500_000 // entries
	maxMovedDeep = 256     // directories
)

// movedLinks are the symbolic links that a rename moves: by themselves, or in a
// directory, from where a relative one leads somewhere else afterwards.
type movedLinks struct {
	c     *call
	undo  func() error
	looks []func() error
}

// mayMove errs if a rename would move a link to where it leads outside. still looks
// again afterwards, because host programs and other sessions make links too.
func (c *call) mayMove(from, to place, flags uint) (*movedLinks, error) {
	m := &movedLinks{c: c, undo: func() error { return unix.Renameat2(to.dir, to.name, from.dir, from.name, flags) }}
	if path.Dir(from.abs) == path.Dir(to.abs) {
		return m, nil // nothing in it leads elsewhere
	}
	moves := [][2]place{{from, to}}
	if flags&unix.RENAME_EXCHANGE != 0 {
		moves = append(moves, [2]place{to, from})
	}
	for _, move := range moves {
		kind, err := c.moves(move[0], move[1])
		if err != nil {
			return nil, err
		}
		if kind == unix.S_IFDIR || kind == unix.S_IFLNK {
			m.looks = append(m.looks, func() error {
				_, err := c.moves(move[1], move[1])
				return err
			})
		}
	}
	return m, nil
}

// still errs, and undoes the rename, if a moved link leads outside.
func (m *movedLinks) still() error {
	for _, look := range m.looks {
		if err := look(); err != nil {
			_ = m.undo() // refused in any case
			return err
		}
	}
	return nil
}

// moves looks at the links that are at old, as if they were at its new place.
func (c *call) moves(old, now place) (kind uint32, err error) {
	if c.s.git.holds(now.dir) {
		return 0, nil
	}
	at := c.s.links.onHost(now.abs)
	if _, ok := c.s.links.inRoot(at); at == "" || !ok {
		return 0, nil
	}
	st, err := old.stat()
	if err != nil {
		return 0, err
	}
	switch kind = st.Mode & unix.S_IFMT; kind {
	case unix.S_IFLNK:
		target, ok := linkAt(old.dir, old.name)
		if !ok {
			return kind, unix.EACCES
		}
		return kind, c.mayLead(now, target)
	case unix.S_IFDIR:
		left := maxMoved
		return kind, c.movesBelow(old.dir, old.name, now.abs, 1, &left)
	}
	return kind, nil
}

// movesBelow looks at the relative links below a directory that is to be moved to
// abs, at those that lead out of it from that depth.
func (c *call) movesBelow(parent int, name, abs string, deep int, left *int) error {
	if deep > maxMovedDeep {
		return unix.EXDEV
	}
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return unix.EACCES // also what its owner has closed: it may be opened later
	}
	dir := os.NewFile(uintptr(fd), "/proc/self/fd/"+strconv.Itoa(fd)) // whose entries it may look at by this name
	defer dir.Close()
	for {
		list, err := dir.ReadDir(1024)
		if *left -= len(list); *left < 0 {
			return unix.EXDEV
		}
		for _, e := range list {
			if err := c.movesEntry(fd, e, path.Join(abs, e.Name()), deep, left); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return unix.EACCES
		}
	}
}

func (c *call) movesEntry(dir int, e os.DirEntry, abs string, deep int, left *int) error {
	switch {
	case e.IsDir():
		return c.movesBelow(dir, e.Name(), abs, deep+1, left)
	case e.Type()&os.ModeSymlink == 0:
		return nil
	}
	target, ok := linkAt(dir, e.Name())
	if !ok || path.IsAbs(target) || climbs(target) < deep {
		return nil // it leads where it led before
	}
	return c.mayLead(place{abs: abs}, target)
}
