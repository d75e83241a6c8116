package layout

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// A FileError says why a file of the host can't be shown to the guest at a
// place.
type FileError struct{ Target, Why string }

func (e *FileError) Error() string {
	return fmt.Sprintf("nothing can be shown to the guest at %q: %s", e.Target, e.Why)
}

// WhyFile marks the mounts of Request.Files.
const WhyFile = "shown by bawn"

// IsCache reports whether a mount is one of the host's caches, or of the sessions'
// own.
func (m Mount) IsCache() bool { return m.Why == WhyPrivateCache || m.Why == WhySharedCache }

// files returns the mounts of the request's files. They come after all others,
// so that nothing covers them.
func (b *builder) files(all []Mount) ([]Mount, error) {
	var list []Mount
	for _, f := range b.req.Files {
		m, err := b.file(all, f)
		if err != nil {
			return nil, err
		}
		for _, other := range list {
			if other.Target == m.Target || Below(m.Target, other.Target) {
				return nil, &FileError{f.Target, fmt.Sprintf("%q is shown at %q", other.Source, other.Target)}
			}
		}
		list = append(list, m)
	}
	return list, nil
}

// sockets returns the targets of mounts to which the guest may connect. Only
// files of the request itself can be one.
func (b *builder) sockets(all []Mount) ([]string, error) {
	var list []string
	for _, t := range b.req.Sockets {
		i := slices.IndexFunc(all, func(m Mount) bool { return m.Why == WhyFile && m.Target == t })
		if i < 0 {
			return nil, &FileError{t, "no file is shown there that could be connected to"}
		}
		if f, ok := b.facts.Lookup(all[i].Source); !ok || !f.Socket || f.ID != all[i].ID {
			return nil, &FileError{t, fmt.Sprintf("%q is no socket", all[i].Source)}
		}
		list = append(list, t)
	}
	return list, nil
}

// file is the mount of one.
func (b *builder) file(all []Mount, f sandbox.File) (Mount, error) {
	source, ok := b.facts.Own(f.Source)
	switch {
	case !path.IsAbs(f.Source) || !path.IsAbs(f.Target) || path.Clean(f.Target) == "/":
		return Mount{}, &FileError{f.Target, fmt.Sprintf("want absolute paths, got %q for it", f.Source)}
	case !ok:
		return Mount{}, &FileError{f.Target, fmt.Sprintf("%q does not exist", f.Source)}
	case source.Real == "/proc" || Below(source.Real, "/proc"):
		return Mount{}, &FileError{f.Target, fmt.Sprintf("%q belongs to the kernel", f.Source)}
	}
	target, there := b.settled(path.Clean(f.Target))
	if there && target.Dir != source.Dir {
		return Mount{}, &FileError{f.Target, fmt.Sprintf("only one of it and %q is a directory", f.Source)}
	}
	if why := refuseTarget(innermost(all, target.Real), target.Real, there); why != "" {
		return Mount{}, &FileError{f.Target, why}
	}
	return Mount{Kind: KindBindRO, Source: source.Real, Target: target.Real, Why: WhyFile, File: !source.Dir, ID: source.ID}, nil
}

// settled looks a path up, or returns where it would come into being.
func (b *builder) settled(p string) (f File, there bool) {
	if f, ok := b.facts.Lookup(p); ok {
		return f, true
	}
	if p == "/" {
		return File{Real: p}, false
	}
	dir, _ := b.settled(path.Dir(p))
	return File{Real: path.Join(dir.Real, path.Base(p))}, false
}

// innermost is the mount that holds a place in the guest, or that is at it.
func innermost(all []Mount, p string) (m Mount) {
	for _, o := range all {
		if (o.Target == p || Below(p, o.Target)) && len(o.Target) >= len(m.Target) {
			m = o
		}
	}
	return m
}

// refuseTarget says why a place can't be made or covered, or "". Only an empty
// place of the session's own may get new names: elsewhere they would appear on
// the host.
func refuseTarget(in Mount, target string, there bool) string {
	switch {
	case in.Target == target && (in.Kind == KindHide || in.Kind == KindHideDir || strings.HasPrefix(in.Kind, KindBind)):
		return ""
	case in.Kind == KindTmpfs, in.Kind == KindHideDir:
		return ""
	case in.Kind == KindProc, in.Kind == KindSysfs, in.Kind == KindDev:
		return fmt.Sprintf("%q is made anew for each session", in.Target)
	case in.Source != in.Target:
		return fmt.Sprintf("the guest sees %q in place of %q", in.Source, in.Target)
	case !there:
		return "it does not exist, and would come into being on the host; create it, or use a place below /run/bawn"
	}
	return ""
}
