package dockerapi

import (
	"archive/tar"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/dockerapi/writeback"
)

// A name that is missing in a container may be removed from the workspace. This file keeps
// that from happening to a name that the container has not removed.

// untold asks for names that both sides had and that are missing in the container: an
// engine leaves out of an archive what it can't read, and sockets. Such a name is not gone,
// and neither is what is below it. Without an answer nothing counts as gone.
func (b *Broker) untold(ctx context.Context, c *child, m *mirror, container tree) error {
	left := tree{}
	for _, name := range slices.Sorted(maps.Keys(m.base)) { // a directory comes before what is in it
		if container[name].kind != kindNone || m.seen[name].state != m.base[name] {
			continue
		}
		above := path.Dir(name)
		if m.base[above].kind != kindNone && container[above].kind == kindNone {
			if left[above].kind != kindNone {
				left[name] = left[above]
			}
			continue
		}
		s, err := b.engine.stat(ctx, c.id, path.Join(m.target, name))
		if err != nil && !notMade(err) && !errors.As(err, new(*Refusal)) {
			return lost{err}
		}
		if err != nil {
			return err
		}
		if s.there {
			left[name] = fileState{kind: kindOther}
		}
	}
	maps.Copy(container, left)
	return nil
}

// inTheWay divides names that are to be removed: those without whose removal others can't
// be written, and those that go when all is there, so that what a container has renamed is
// never lost. On some file systems names that differ in case are the same.
func inTheWay(remove []string, put map[string]bool) (first, last []string) {
	folded := map[string]bool{}
	for name := range put {
		folded[strings.ToLower(name)] = true
	}
	for _, name := range remove {
		at := strings.ToLower(name)
		for at != "." && !folded[at] {
			at = path.Dir(at)
		}
		if at != "." {
			first = append(first, name)
		} else {
			last = append(last, name)
		}
	}
	return first, last
}

// drop has the writer remove names.
func (m *mirror) drop(out *tar.Writer, names []string, got tree) error {
	for _, name := range names {
		got[name] = fileState{}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Format: tar.FormatPAX, PAXRecords: map[string]string{writeback.Gone: "1", writeback.Was: m.was(name)}}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
	}
	return nil
}

// stillThere fails if something removes a container, also at the engine itself: its files
// may have gone before it was asked for them, and none of that is a change of its own.
func (b *Broker) stillThere(ctx context.Context, c *child) error {
	s, err := b.state(ctx, c)
	if err == nil && (s.Dead || oneOf(s.Status, "removing", "dead")) {
		err = errors.New("the container is being removed")
	}
	return err
}
