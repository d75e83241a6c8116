package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/fspath/links"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sealed"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// cacheDirs returns the caches that the session gets. Where they are private, a
// missing directory of a program that is installed is made, empty, for as long as
// sessions run: it is where their own copy is mounted. A built-in cache that also
// holds settings or tools is left out where the host has something in it.
func cacheDirs(e *Env, iso bawn.Isolation, places *cachePlaces) (list []string) {
	var whole []string // caches of the "new" kind that the session gets
	there := map[string]bool{}
	installed := func(program string) bool {
		is, known := there[program]
		if !known {
			is = installed(e, program)
			there[program] = is
		}
		return is
	}
	for _, dir := range iso.CacheDirs {
		c, builtin := config.CacheAt(dir, e.Getenv("HOME"))
		switch {
		case slices.ContainsFunc(whole, func(w string) bool { return fspath.Below(dir, w) }):
		case builtin && c.New && (iso.Caches != bawn.CachePrivate || !empty(dir)):
		case iso.Caches == bawn.CachePrivate && builtin && !makeCache(dir, c.Programs, installed, places):
		default:
			list = append(list, dir)
			if c.New {
				whole = append(whole, dir)
			}
		}
	}
	return list
}

// empty reports whether a directory is missing or has no entry.
func empty(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	names, _ := f.Readdirnames(1)
	return len(names) == 0
}

// makeCache makes a missing directory where one of the programs is installed. It
// reports whether the directory exists.
func makeCache(dir string, programs []string, installed func(string) bool, places *cachePlaces) bool {
	if _, err := os.Stat(dir); err == nil {
		return true
	}
	return slices.ContainsFunc(programs, installed) && places.make(dir)
}

// installed reports whether PATH leads to a program.
func installed(e *Env, name string) bool {
	return slices.ContainsFunc(filepath.SplitList(e.Getenv("PATH")), func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	})
}

// privateCaches makes the directories in which the workspace's own copies of
// the caches are kept, and returns where they are.
func privateCaches(e *Env, iso bawn.Isolation) (string, error) {
	base := filepath.Join(settings.BaseDir(&e.World, "XDG_CACHE_HOME", ".cache"), "bawn", "private", layout.OneName(iso.Workspace))
	if iso.Caches != bawn.CachePrivate {
		return base, nil
	}
	reals := links.Resolved{}
	for _, dir := range iso.CacheDirs {
		dir := reals.Of(dir) // as the plan finds it
		if dir == "" {
			continue
		}
		if _, err := sealed.Make(layout.PrivateCache(base, dir)); err != nil {
			return "", &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("make a private cache: %w", err), Hint: "use --caches read-only"}
		}
	}
	return base, nil
}
