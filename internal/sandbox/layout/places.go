package layout

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/protect"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sealed"
)

// credentials hides the table's names that a session does not see; those that the
// user opened are read-only like the rest.
func (b *builder) credentials() {
	home := b.home()
	if home == "" {
		return
	}
	hidden := protect.Hidden(runtime.GOOS)
	paths := make([]string, len(hidden))
	for i, e := range hidden {
		paths[i] = e.Path()
	}
	at := map[string]Entry{}
	for _, p := range b.facts.Present(home, paths) {
		at[p.Name] = p
	}
	straight := b.straight()
	b.straightTo = map[string]bool{}
	for i, e := range hidden {
		place := path.Join(home, paths[i])
		p, listed := at[paths[i]]
		if b.opened(e.Name, place) {
			continue
		}
		b.hidden = append(b.hidden, place)
		if !listed && straight(path.Dir(place)) {
			b.straightTo[place] = true
		}
		if p.Real == "" { // not there, or a link that leads nowhere
			b.absent = append(b.absent, place)
			continue
		}
		hideFile(&b.mounts, p.File, "credentials")
		if p.Dir {
			b.hideLinked(p.Real)
		}
	}
}

// hideLinked hides the targets of links in a hidden directory: somebody who keeps
// dotfiles elsewhere keeps the credentials there too.
func (b *builder) hideLinked(dir string) {
	for _, name := range b.facts.Links(dir) {
		if f, ok := b.facts.Lookup(path.Join(dir, name)); ok && !f.Dir && !b.opened("", f.Real) {
			hideFile(&b.mounts, f, "credentials")
		}
	}
}

// scratch are places below HOME which programs insist on writing and whose
// contents nobody misses: a session gets empty ones.
var scratch = []string{".config/go/telemetry"}

func (b *builder) scratchPlaces() {
	for _, e := range b.there(b.home(), scratch) {
		if e.Dir {
			b.mounts = append(b.mounts, Mount{Kind: KindTmpfs, Target: e.Real, SizeMB: 16, Mode: 0o700, Why: "scratch"})
		}
	}
}

// isCredential reports whether a place is hidden as a credential, or lies in
// one that is, and no wider requested place opens it again. The innermost of
// the mounts so far counts, and the later of two at one place.
func (b *builder) isCredential(real string) bool {
	var credential bool
	var innermost Mount
	for _, m := range b.mounts {
		if m.Target != real && !Below(real, m.Target) {
			continue
		}
		credential = credential || m.Why == "credentials"
		if len(m.Target) >= len(innermost.Target) {
			innermost = m
		}
	}
	return credential && innermost.Kind != KindBind && innermost.Kind != KindBindRO
}

// checkOpen refuses unknown names of credentials.
func checkOpen(open []string) error {
	var names []string
	for _, o := range open {
		if path.IsAbs(o) {
			continue
		}
		if names == nil {
			names = CredentialNames()
		}
		if !slices.Contains(names, o) {
			return fmt.Errorf("open: %q is no known credential; use a path or one of %s", o, strings.Join(names, ", "))
		}
	}
	return nil
}

// CredentialNames lists the names that "open" takes.
func CredentialNames() []string {
	var list []string
	for _, e := range protect.Hidden(runtime.GOOS) {
		list = append(list, e.Name)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// CredentialPaths lists the places below home that a session on a system does not
// see, without those that open names or covers; they need not exist. It errs as
// Layout does.
func CredentialPaths(system, home string, open []string) ([]string, error) {
	if err := checkOpen(open); err != nil {
		return nil, err
	}
	b := &builder{req: sandbox.Request{Open: open}}
	var list []string
	for _, e := range protect.Hidden(system) {
		if p := path.Join(home, e.Path()); !b.opened(e.Name, p) {
			list = append(list, p)
		}
	}
	return list, nil
}

func (b *builder) opened(name, p string) bool {
	for _, o := range b.req.Open {
		if o == name || o == p || Below(p, o) {
			return true
		}
	}
	return false
}

// The marks of caches: those that no host program reads, and those that its
// package managers do.
const (
	WhyPrivateCache = "private cache"
	WhySharedCache  = "shared cache"
)

// CacheMounts are where caches are mounted, and places in memory that end with the
// session, absolute.
func CacheMounts(mounts []Mount) []string {
	var list []string
	for _, m := range mounts {
		if m.IsCache() || m.Kind == KindTmpfs {
			list = append(list, m.Target)
		}
	}
	return list
}

// caches mounts the cache directories as the isolation says.
func (b *builder) caches() error {
	for _, dir := range b.iso.CacheDirs {
		f, ok, err := b.resolve("cache directory", dir)
		if err != nil {
			return err
		}
		if !ok || !f.Dir {
			if path.Base(dir) == ".cache" {
				b.noCache = true
			}
			continue
		}
		switch b.iso.Caches {
		case bawn.CacheShared:
			b.mounts = append(b.mounts, Mount{Kind: KindBind, Source: f.Real, Target: f.Real, Why: WhySharedCache, ID: f.ID})
		case bawn.CachePrivate:
			if seal, ok := b.facts.Lookup(PrivateCache(b.req.CacheDir, f.Real)); ok {
				b.mounts = append(b.mounts, Mount{Kind: KindBind, Source: sealed.Inside(seal.Real), Target: f.Real, Why: WhyPrivateCache})
			}
		}
	}
	return nil
}

// OneName writes a path as one name, which no other path has.
func OneName(p string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(p, "/"), "%", "%25"), "/", "%")
}

// PrivateCache is the sealed directory in which Bawn keeps its own copy of a cache
// directory (package sealed).
func PrivateCache(base, dir string) string {
	return path.Join(base, OneName(dir))
}
