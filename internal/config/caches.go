package config

import (
	_ "embed"
	"path"
	"slices"
	"strings"
	"sync"
)

// A Cache is a directory of the built-in profile in which package managers keep
// their downloads.
type Cache struct {
	Name     string   // "~/…"
	New      bool     // it counts only while it is empty on the host
	Programs []string // the programs that make it; empty where Bawn waits until it exists
}

//go:embed data/caches.txt
var cacheData string

// Caches lists the built-in caches, a directory before those below it.
var Caches = sync.OnceValue(func() (list []Cache) {
	for line := range strings.Lines(cacheData) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		c := Cache{Name: f[0], Programs: f[1:]}
		if len(f) > 1 && f[1] == "new" {
			c.New, c.Programs = true, f[2:]
		}
		list = append(list, c)
	}
	return list
})

func cacheNames() (names []string) {
	for _, c := range Caches() {
		names = append(names, c.Name)
	}
	return names
}

// CacheAt returns the built-in cache that dir is below the home directory.
func CacheAt(dir, home string) (Cache, bool) {
	rest, ok := strings.CutPrefix(dir, strings.TrimSuffix(path.Clean(home), "/"))
	list := Caches()
	i := slices.IndexFunc(list, func(c Cache) bool { return strings.TrimPrefix(c.Name, "~") == rest })
	if !ok || i < 0 {
		return Cache{}, false
	}
	return list[i], true
}
