package bwrap

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/protect"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// bwrap makes missing mount points. Below a writable place of the host that
// would come into being there, as an empty file with the name of a protected
// one, and stay. So no target may be missing, and since one could vanish in the
// milliseconds until bwrap comes to it, they are looked at once more when the
// sandbox is ready.

// current is the plan without what hides names of the closed home that are gone: only
// names that were there at the start are hidden, and bwrap can mount on no other.
func (p *Plan) current() *Plan {
	left := *p.Plan
	left.Mounts = slices.DeleteFunc(slices.Clone(left.Mounts), func(m layout.Mount) bool {
		return m.Why == protect.ClosedHome && errors.Is(unix.Lstat(m.Target, &unix.Stat_t{}), unix.ENOENT)
	})
	if len(left.Mounts) == len(p.Mounts) {
		return p
	}
	now, err := makePlan(&left, p.facts)
	if err != nil {
		return p // whose start says why it fails
	}
	return now
}

// standing is what lies at the targets of a plan, in their order.
func (p *Plan) standing() ([]unix.Stat_t, error) {
	list := make([]unix.Stat_t, len(p.targets))
	for i, t := range p.targets {
		if err := settled(t, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// settled reads what lies at a path that has no link on the way.
func settled(p string, st *unix.Stat_t) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return &changedError{p}
	}
	defer unix.Close(fd)
	return unix.Fstat(fd, st)
}

// unmade errs if something empty has taken the place of what stood at a target.
func (p *Plan) unmade(before []unix.Stat_t) error {
	for i, t := range p.targets {
		var now unix.Stat_t
		if err := settled(t, &now); err != nil {
			continue // gone since: nothing was made
		}
		if same := now.Dev == before[i].Dev && now.Ino == before[i].Ino; !same && (now.Size == 0 || now.Mode&unix.S_IFMT == unix.S_IFDIR) {
			return &changedError{t}
		}
	}
	return nil
}
