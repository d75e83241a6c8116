package launch

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/fspath/links"
)

// engineEnviron is the environment in which engines are found: PATH without the
// directories that a session writes, and DOCKER_HOST unless it lies in one.
// Programs and settings of the host's side can't be ones that a guest may have
// put there.
func engineEnviron(environ []string, cfg *config.Config) []string {
	var safe []string
	open := openPlaces(cfg)
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		switch socket := strings.TrimPrefix(value, "unix://"); {
		case name == "PATH":
			kv = "PATH=" + strings.Join(slices.DeleteFunc(filepath.SplitList(value), open.hold), ":")
		case name == "DOCKER_HOST" && filepath.IsAbs(socket) && open.hold(socket):
			continue
		}
		safe = append(safe, kv)
	}
	return safe
}

// guests reports whether a session could put something there: the path is not
// absolute, or leads to a place that sessions write, or share with the host as
// their caches.
func guests(path string, cfg *config.Config) bool { return openPlaces(cfg).hold(path) }

// A written is a list of places that sessions write, as they are named and as they
// are.
type written []struct{ named, real string }

// openPlaces returns the places that the configuration lets a session write;
// without a configuration the list is empty.
func openPlaces(cfg *config.Config) written {
	if cfg == nil {
		return nil
	}
	iso := cfg.Isolation(cfg.Workspace())
	names := append([]string{iso.Workspace}, iso.CacheDirs...)
	for _, m := range iso.Mounts {
		if m.Access == bawn.ReadWrite {
			names = append(names, m.Path)
		}
	}
	list, reals := make(written, len(names)), links.Resolved{}
	for i, name := range names {
		list[i].named, list[i].real = name, reals.Of(name)
	}
	return list
}

// hold reports whether a path is not absolute or leads to one of the places.
func (l written) hold(path string) bool {
	if !filepath.IsAbs(path) {
		return true
	}
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path // not there yet
	}
	return slices.ContainsFunc(l, func(at struct{ named, real string }) bool {
		return fspath.Below(path, at.named) || fspath.Below(real, at.named) || at.real != "" && fspath.Below(real, at.real)
	})
}
