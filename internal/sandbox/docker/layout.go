package docker

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// Places of the session's own in every container.
const (
	runPlace     = "/run"
	ownPlace     = "/run/bawn"         // nothing of the guest's
	gitPlace     = "/run/bawn/git"     // objects of private git directories
	programPlace = "/run/bawn/inside"  // the first process' program
	controlPlace = "/run/bawn/control" // a directory with its socket
	controlName  = "socket"
)

// An imageLayout turns the mounts of a layout, which shows the host's root, into
// those of a container, which shows an image's. What the isolation shows of the
// host stays where it is, except the workspace. What it hides is covered only
// where it would be seen.
type imageLayout struct {
	host, guest string // the workspace on either side
	home        string // of the human; "" for none
	uid, gid    int
	tmpMB       int64
	private     []string       // places that the isolation makes empty, on the host
	more        []layout.Mount // places of the session's own in the image
}

// whyVolume marks a place where the image wants a volume, which the engine would
// make on the host, and keep: it is empty, and the session's own. The engine
// leaves a volume out only for a mount that is listed as one.
const whyVolume = "a volume of the image"

// extra adds what the image and the extra arguments want to be the session's
// own. In the workspace it would cover what is the host's, or leave a directory
// there.
func (l *imageLayout) extra(x Extra, i Image) error {
	add := func(at string, size int64, why string) {
		l.more = append(l.more, layout.Mount{Kind: layout.KindTmpfs, Target: at, SizeMB: size, Mode: 0o1777, Why: why})
	}
	for _, v := range i.Volumes {
		v = path.Clean(v)
		if below(v, l.guest) {
			return &OptionError{"image", i.ID, fmt.Sprintf("it wants a volume at %q, in the workspace", v), "set workspace under [isolation.docker_options] to another place"}
		}
		add(v, l.tmpMB, whyVolume)
	}
	for _, at := range slices.Sorted(maps.Keys(x.Tmpfs)) {
		if at == l.guest || below(at, l.guest) {
			return &FlagError{"--tmpfs=" + at, "it would cover the workspace", ""}
		}
		size := x.Tmpfs[at]
		if size == 0 {
			size = l.tmpMB
		}
		add(at, size, "--tmpfs")
	}
	return nil
}

// inGuest is where the guest finds a place of the host.
func (l *imageLayout) inGuest(p string) string {
	if p == l.host || below(p, l.host) {
		return l.guest + strings.TrimPrefix(p, l.host)
	}
	return p
}

// denied are patterns by the guest's paths. One that begins above the workspace
// counts in both.
func (l *imageLayout) denied(list []string) []string {
	var out []string
	for _, text := range list {
		p, err := fspath.ParsePattern(text)
		if err != nil || fspath.Below(p.Base(), l.host) {
			out = append(out, l.inGuest(text))
			continue
		}
		out = append(out, text)
		for _, rest := range p.Rest(l.host) {
			out = append(out, path.Join(l.guest, rest))
		}
	}
	return out
}

func (l *imageLayout) allInGuest(list []string) []string {
	var out []string
	for _, p := range list {
		out = append(out, l.inGuest(p))
	}
	return out
}

// mounts are the container's, outer ones first, by the guest's paths.
func (l *imageLayout) mounts(host []layout.Mount) ([]layout.Mount, error) {
	list := l.base()
	for _, m := range host {
		if !l.wanted(list, m) {
			continue
		}
		m.Target, m.Make = l.inGuest(m.Target), nil
		if err := l.check(m); err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(o layout.Mount) bool { return o.Target == m.Target })
		list = append(list, m)
	}
	list = append(list, l.between(list)...)
	slices.SortStableFunc(list, func(a, b layout.Mount) int { return strings.Compare(a.Target, b.Target) })
	return list, nil
}

// base are the places of the session's own, which every guest has.
func (l *imageLayout) base() []layout.Mount {
	own := func(target string, mode uint32) layout.Mount {
		return layout.Mount{Kind: layout.KindTmpfs, Target: target, SizeMB: l.tmpMB, Mode: mode}
	}
	list := []layout.Mount{own("/tmp", 0o1777), own("/var/tmp", 0o1777), own(runPlace, 0o755), own(runtimeDir(l.uid), 0o700)}
	if l.home != "" && !slices.Contains(reservedPlaces, l.home) && l.home != l.guest && !below(l.guest, l.home) {
		list = append(list, own(l.home, 0o700))
	}
	for _, m := range l.more {
		if !slices.ContainsFunc(list, func(o layout.Mount) bool { return o.Target == m.Target }) && m.Target != l.guest {
			list = append(list, m)
		}
	}
	return list
}

// runtimeDir is XDG_RUNTIME_DIR inside.
func runtimeDir(uid int) string { return fmt.Sprintf("%s/user/%d", runPlace, uid) }

// wanted reports whether a mount of the host's root says something about what
// the container shows. list holds what was taken before.
func (l *imageLayout) wanted(list []layout.Mount, m layout.Mount) bool {
	switch m.Kind {
	case layout.KindBind, layout.KindBindRO, layout.KindCopy:
		return m.Why != "name resolution" && m.Why != layout.WhyUsers // the engine's and the image's own
	case layout.KindTmpfs:
		return slices.Contains(l.private, m.Target) || l.shown(list, m.Target)
	case layout.KindHide, layout.KindHideDir:
		return l.shown(list, m.Target)
	case layout.KindDev: // the engine's, of which the supervisor has to know
		return true
	}
	return false
}

// shown reports whether something of the host is seen around a place of it.
func (l *imageLayout) shown(list []layout.Mount, p string) bool {
	return slices.ContainsFunc(list, func(m layout.Mount) bool {
		return ofHost(m) && (m.Source == p || below(p, m.Source)) && m.Target == l.inGuest(m.Source)
	})
}

// ofHost reports whether a mount shows a place of the host, or a copy of one.
func ofHost(m layout.Mount) bool {
	return strings.HasPrefix(m.Kind, layout.KindBind) || m.Kind == layout.KindCopy
}

// check refuses a target that is not for places of the host.
func (l *imageLayout) check(m layout.Mount) error {
	refuse := func(why string) error { return &layout.FileError{Target: m.Target, Why: why} }
	own := m.Source == l.host || below(m.Source, l.host) || m.Kind != layout.KindBind && m.Kind != layout.KindBindRO
	switch t := m.Target; {
	case m.IsPrivateGit() && t != "/" && t != ownPlace && !below(t, ownPlace): // also in the workspace
		return nil
	case m.Kind == layout.KindDev, m.Why == layout.WhyFile && t != programPlace && t != controlPlace:
		return nil
	case t == "/":
		return refuse("a container has the root of its image; name the directories that it shall see")
	case t == ownPlace || below(t, ownPlace) || slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(p string) bool { return t == p || below(t, p) }):
		return refuse("it is made anew for each session")
	case !own && (t == l.guest || below(t, l.guest)):
		return refuse(fmt.Sprintf("the guest has its workspace at %q", l.guest))
	}
	return nil
}

// between makes the directories on the way from the home to what is mounted in
// it the guest's own, too: the engine would make them root's.
func (l *imageLayout) between(list []layout.Mount) []layout.Mount {
	var more []layout.Mount
	for _, m := range list {
		for dir := path.Dir(m.Target); l.home != "" && below(dir, l.home); dir = path.Dir(dir) {
			there := func(o layout.Mount) bool {
				return o.Target == dir || below(dir, o.Target) && o.Target != l.home && below(o.Target, l.home)
			}
			if slices.ContainsFunc(list, there) || slices.ContainsFunc(more, func(o layout.Mount) bool { return o.Target == dir }) {
				continue
			}
			more = append(more, layout.Mount{Kind: layout.KindTmpfs, Target: dir, SizeMB: l.tmpMB, Mode: 0o700})
		}
	}
	return more
}

// writable are the guest's paths that it may write.
func writable(mounts []layout.Mount) []string {
	list := []string{"/dev"}
	for _, m := range mounts {
		if m.Kind == layout.KindTmpfs || m.Kind == layout.KindBind || m.Kind == layout.KindCopy {
			list = append(list, m.Target)
		}
	}
	slices.Sort(list)
	return list
}

// places says what of the host the guest sees, by the host's paths.
func places(mounts []layout.Mount, l *imageLayout) []bawn.Mount {
	var list []bawn.Mount
	for _, m := range mounts {
		switch {
		case m.Why == layout.WhyFile:
		case m.Kind == layout.KindBind && m.Target == l.inGuest(m.Source):
			list = append(list, bawn.Mount{Path: m.Source, Access: bawn.ReadWrite, Why: m.Why})
		case m.Kind == layout.KindBind, m.Kind == layout.KindTmpfs, m.Kind == layout.KindCopy:
			list = append(list, bawn.Mount{Path: l.onHost(m.Target), Access: bawn.Private, Why: m.Why})
		case m.Kind == layout.KindBindRO:
			list = append(list, bawn.Mount{Path: m.Source, Access: bawn.ReadOnly, Why: m.Why})
		case m.Kind == layout.KindHide, m.Kind == layout.KindHideDir:
			list = append(list, bawn.Mount{Path: l.onHost(m.Target), Access: bawn.Hidden, Why: m.Why})
		}
	}
	return list
}

// onHost is where a place of the guest's is on the host, or would be.
func (l *imageLayout) onHost(p string) string {
	if p == l.guest || below(p, l.guest) {
		return l.host + strings.TrimPrefix(p, l.guest)
	}
	return p
}
