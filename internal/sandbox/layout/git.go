package layout

import (
	"fmt"
	"path"
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// The marks of mounts of git directories: a private one in the place of the
// host's, and the host's own, read-only, if the session has none.
const (
	WhyPrivateGit = "private git directory"
	WhyHostGit    = "git directory of the host"
)

// objectPlace is below which Request.Git may show object directories.
const objectPlace = "/run/bawn"

// A GitError says why a request's git directory can't be mounted.
type GitError struct{ Path, Why string }

func (e *GitError) Error() string {
	return fmt.Sprintf("git directory %q: %s", e.Path, e.Why)
}

// git mounts the private git directories of the request over those of the host,
// and shows the objects that they borrow. It follows the places of the
// isolation: none of them may show the host's git directory again.
func (b *builder) git() error {
	if err := b.pool(); err != nil {
		return err
	}
	for _, g := range b.req.Git {
		if err := b.gitDir(g); err != nil {
			return err
		}
		for _, o := range g.Objects {
			if !Below(path.Clean(o.Target), objectPlace) {
				return &GitError{g.Path, fmt.Sprintf("its objects can't be shown at %q; want a place below %s", o.Target, objectPlace)}
			}
			b.req.Files = append(slices.Clip(b.req.Files), sandbox.File(o))
			b.borrowed(o.Source)
		}
	}
	return nil
}

// borrowed shows a directory of objects, which the session sees elsewhere too, at its own
// place where that is hidden: git complains of an alternate that it can't find.
func (b *builder) borrowed(dir string) {
	f, ok := b.facts.Lookup(dir)
	hides := func(m Mount) bool { return m.Kind == KindHideDir && Below(f.Real, m.Target) }
	if ok && slices.ContainsFunc(b.mounts, hides) {
		b.mounts = append(b.mounts, hostGit(f))
	}
}

// gitDir mounts one private git directory.
func (b *builder) gitDir(g bawn.GitDir) error {
	at, ok := b.facts.Lookup(g.Path)
	own, there := b.facts.Own(g.Private)
	switch {
	case !ok || at.Real != g.Path:
		return &GitError{g.Path, "it is not there, or a link is on the way; want its own path"}
	case !there || at.Dir != own.Dir:
		return &GitError{g.Path, fmt.Sprintf("its private copy %q does not exist, or only one of them is a directory", g.Private)}
	case own.ID == at.ID || Below(own.Real, at.Real) || Below(at.Real, own.Real):
		return &GitError{g.Path, fmt.Sprintf("its private copy %q is the same directory, or one lies in the other", g.Private)}
	}
	for _, m := range b.iso.Mounts {
		if f, ok := b.facts.Lookup(m.Path); ok && Below(f.Real, at.Real) && m.Access != bawn.Hidden {
			return fmt.Errorf("%s: %q lies in a git directory of which the session gets a private copy; leave it out", m.Why, m.Path)
		}
	}
	b.private = append(b.private, at.Real)
	b.mounts = slices.DeleteFunc(b.mounts, func(m Mount) bool { return m.Target == at.Real || Below(m.Target, at.Real) })
	b.mounts = append(b.mounts, Mount{Kind: KindBind, Source: own.Real, Target: at.Real, Why: WhyPrivateGit, File: !at.Dir, ID: own.ID})
	return nil
}

// pool shows the request's pool where no guest gets to it.
func (b *builder) pool() error {
	if b.req.GitPool == "" {
		return nil
	}
	f, ok := b.facts.Own(b.req.GitPool)
	if !ok || !f.Dir {
		return fmt.Errorf("a pool of git directories at %q: want a directory that exists", b.req.GitPool)
	}
	for i := range b.fixed {
		if b.fixed[i].Kind == KindDev {
			b.fixed[i].Make = []string{poolDir, PoolPlace}
		}
	}
	b.fixed = append(b.fixed, Mount{Kind: KindPool, Source: f.Real, Target: PoolPlace, Why: "git directories of the guest's own", ID: f.ID})
	return nil
}

// PoolPlace is where the guest's tree has the pool. Nobody may look into the
// directory above it, which lies in a read-only file system: only a process that
// enters the guest's namespaces with every capability gets to it.
const (
	poolDir   = "/dev/.pool"
	PoolPlace = poolDir + "/git"
)

// inPrivateGit reports whether p is, or lies in, the place of a private git
// directory.
func (b *builder) inPrivateGit(p string) bool {
	return slices.ContainsFunc(b.private, func(g string) bool { return p == g || Below(p, g) })
}

// IsPrivateGit reports whether a mount is a private git directory.
func (m Mount) IsPrivateGit() bool { return m.Why == WhyPrivateGit }

// hostGit shows a git directory of the host read-only.
func hostGit(f File) Mount {
	return Mount{Kind: KindBindRO, Source: f.Real, Target: f.Real, Why: WhyHostGit, File: !f.Dir, ID: f.ID}
}
