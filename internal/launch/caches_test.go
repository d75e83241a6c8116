package launch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/verb"
)

// TestCachesOfInstalledPrograms wants a place for the caches of what is installed, in
// an empty home, and nothing for what is not.
func TestCachesOfInstalledPrograms(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "cargo"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "npm"), nil, 0o644); err != nil { // can't be executed
		t.Fatal(err)
	}
	e := &Env{World: verb.World{Environ: []string{"HOME=" + home, "PATH=relative:" + bin}}}
	iso := bawn.Isolation{Caches: bawn.CachePrivate, CacheDirs: []string{"/somewhere/else"}}
	for _, c := range config.Caches() {
		iso.CacheDirs = append(iso.CacheDirs, filepath.Join(home, c.Name[1:]))
	}
	want := func(plan bool, iso bawn.Isolation, names ...string) {
		t.Helper()
		list := []string{"/somewhere/else"}
		for _, n := range names {
			list = append(list, filepath.Join(home, n))
		}
		if got := cacheDirs(e, iso, plan); !slices.Equal(got, list) {
			t.Errorf("the caches are %q; want %q", got, list)
		}
	}
	want(true, iso)
	if made, _ := os.ReadDir(home); len(made) > 0 {
		t.Errorf("showing the plan has made %q", made)
	}
	want(false, iso, ".cargo")
	want(false, iso, ".cargo") // it is there now, and empty
	if made, _ := os.ReadDir(home); len(made) != 1 {
		t.Errorf("%q are made; want .cargo", made)
	}
	if err := os.WriteFile(filepath.Join(home, ".cargo/config.toml"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	want(false, iso, ".cargo/registry", ".cargo/git")
	iso.Caches = bawn.CacheShared
	if got := cacheDirs(e, iso, false); slices.Contains(got, filepath.Join(home, ".cargo")) {
		t.Error("the settings of cargo are shared as a cache")
	}
}
