package dockerapi

import (
	"crypto/sha256"
	"slices"
	"time"
)

// A mirror is a directory of the guest's that a container may write: it has a copy, in a
// volume of its own, and both are brought together now and then. What the container has
// changed is written by a process of the guest's sandbox (package writeback), so the engine
// has no way to the directory, and the walls of the session decide about each name.
type mirror struct {
	source, target string // absolute: in the guest, and in the container

	// Changed while the container is at rest: by one at a time.
	except []string        // below which something else is mounted, without the target
	base   tree            // as both were when they were compared last
	seen   map[string]seen // what the guest has, as of the last look
	held   tree            // what of the container's stays there
	taken  load            // of the broker's store, which guards it
	told   int             // of what was held back this time
}

// skips reports whether a name is not the mirror's.
func (m *mirror) skips(name string) bool {
	return slices.ContainsFunc(m.except, func(e string) bool { return within(name, e) })
}

// A tree has what counts of each name below a directory, and of the directory ".".
type tree map[string]fileState

// A fileState says what a name is. The zero one is that of a name that is not there.
type fileState struct {
	kind fileKind
	mode uint32 // permissions
	sum  [sha256.Size]byte
	link string
}

type fileKind uint8

const (
	kindNone fileKind = iota
	kindFile
	kindDir
	kindLink
	kindOther // what is not carried: pipes, sockets, devices, what can't be read
)

// A seen is a name of the guest's, when it was looked at.
type seen struct {
	state    fileState
	was      string // as the writer finds it (writeback.Stamp)
	uid, gid uint32
	size     int64
	modified time.Time
	inode    uint64
	changed  int64 // nanoseconds; 0 if the file may change again without notice
}

// A merged says what has to be done to bring a mirror together.
type merged struct {
	put, remove []string // in the guest's directory; what is to be removed from below
	push        []string // in the container's
	conflicts   []string // changed by both; the guest's stays
}

// merge compares both sides with what they were. Of what both have changed the guest's
// stays. base becomes what both agree on already.
func (m *mirror) merge(guest, container tree) (todo merged) {
	names := map[string]bool{}
	for _, t := range []tree{m.base, guest, container} {
		for name := range t {
			names[name] = true
		}
	}
	for name := range names {
		b, g, c := m.base[name], guest[name], container[name]
		switch {
		case c == g:
			m.base.set(name, c)
			delete(m.held, name)
		case c == b && !g.carried(), m.holds(name, c) && (g == b || !g.carried()):
			// The engine removes nothing of a container's; and what was held back stays so.
		case c == b:
			todo.push = append(todo.push, name)
		case name == ".":
		case g == b && c.kind == kindNone:
			todo.remove = append(todo.remove, name)
		case g == b:
			todo.put = append(todo.put, name)
		default:
			todo.conflicts = append(todo.conflicts, name)
			if g.carried() {
				todo.push = append(todo.push, name)
			}
		}
	}
	for _, list := range [][]string{todo.put, todo.remove, todo.push, todo.conflicts} {
		slices.Sort(list)
	}
	slices.Reverse(todo.remove)
	return todo
}

// carried reports whether there is something that can be written on the other side.
func (s fileState) carried() bool { return s.kind != kindNone && s.kind != kindOther }

// holds reports whether what the container has was held back before.
func (m *mirror) holds(name string, c fileState) bool {
	held, ok := m.held[name]
	return ok && held == c
}

// nothing reports whether both sides are the same.
func (d merged) nothing() bool { return len(d.put)+len(d.remove)+len(d.push)+len(d.conflicts) == 0 }

func (t tree) set(name string, s fileState) {
	if s.kind == kindNone {
		delete(t, name)
		return
	}
	t[name] = s
}
