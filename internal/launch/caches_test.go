package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/verb"
)

// TestCachesOfInstalledPrograms wants a place, as long as a session runs, for the caches of what is installed, in
// an empty home, and nothing for what is not.
func TestCachesOfInstalledPrograms(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "cargo"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "npm"), nil, 0o644); err != nil { // can't be executed
		t.Fatal(err)
	}
	e := &Env{World: verb.World{Environ: []string{"HOME=" + home, "PATH=relative:" + bin, "XDG_STATE_HOME=" + t.TempDir()}}}
	iso := bawn.Isolation{Caches: bawn.CachePrivate, CacheDirs: []string{"/somewhere/else"}}
	for _, c := range config.Caches() {
		iso.CacheDirs = append(iso.CacheDirs, filepath.Join(home, c.Name[1:]))
	}
	want := func(places *cachePlaces, iso bawn.Isolation, names ...string) {
		t.Helper()
		list := []string{"/somewhere/else"}
		for _, n := range names {
			list = append(list, filepath.Join(home, n))
		}
		if got := cacheDirs(e, iso, places); !slices.Equal(got, list) {
			t.Errorf("the caches are %q; want %q", got, list)
		}
	}
	want(nil, iso)
	if made, _ := os.ReadDir(home); len(made) > 0 {
		t.Errorf("showing the plan has made %q", made)
	}
	one, other := holdCachePlaces(e), holdCachePlaces(e)
	want(one, iso, ".cargo")
	want(other, iso, ".cargo") // it is there now, and empty
	if made, _ := os.ReadDir(home); len(made) != 1 {
		t.Errorf("%q are made; want .cargo", made)
	}
	other.end()
	other.end()
	if _, err := os.Stat(filepath.Join(home, ".cargo")); err != nil {
		t.Error("a place is removed while another session has a cache there: ", err)
	}
	one.end()
	if made, _ := os.ReadDir(home); len(made) > 0 {
		t.Errorf("%q are left behind", made)
	}
	if err := os.Mkdir(filepath.Join(home, ".cargo"), 0o700); err != nil {
		t.Fatal(err)
	}
	one = holdCachePlaces(e)
	want(one, iso, ".cargo")
	one.end()
	if err := os.WriteFile(filepath.Join(home, ".cargo/config.toml"), nil, 0o644); err != nil {
		t.Fatal("a directory of the host's own is removed: ", err)
	}
	one = holdCachePlaces(e)
	defer one.end()
	want(one, iso, ".cargo/registry", ".cargo/git")
	iso.Caches = bawn.CacheShared
	if got := cacheDirs(e, iso, nil); slices.Contains(got, filepath.Join(home, ".cargo")) {
		t.Error("the settings of cargo are shared as a cache")
	}
}

// TestCachePlacesOfCache: what is made in ~/.cache stays, with the directory itself, and
// nothing else does.
func TestCachePlacesOfCache(t *testing.T) {
	home := t.TempDir()
	places := holdCachePlaces(&Env{World: verb.World{Environ: []string{"HOME=" + home, "XDG_STATE_HOME=" + t.TempDir()}}})
	for _, dir := range []string{".cache/a/b", ".cached", ".x/.cache"} {
		if !places.make(filepath.Join(home, dir)) {
			t.Fatalf("%q is not made", dir)
		}
	}
	places.end()
	for dir, want := range map[string]bool{".cache/a/b": true, ".cached": false, ".x": false} {
		if _, err := os.Stat(filepath.Join(home, dir)); (err == nil) != want {
			t.Errorf("%q: %v", dir, err)
		}
	}
}

// TestCachePlacesOfTheKilled: what a session that was killed has made is removed by
// the next, unless the host has put something there.
func TestCachePlacesOfTheKilled(t *testing.T) {
	home := t.TempDir()
	e := &Env{World: verb.World{Environ: []string{"HOME=" + home}}}
	killed := holdCachePlaces(e)
	for _, dir := range []string{".a/b/c", ".a/d", ".e"} {
		if !killed.make(filepath.Join(home, dir)) {
			t.Fatalf("%q is not made", dir)
		}
	}
	killed.close()
	if err := os.WriteFile(filepath.Join(home, ".a/d/x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	holdCachePlaces(e).end()
	for dir, want := range map[string]bool{".a/b": false, ".a/d/x": true, ".e": false} {
		if _, err := os.Stat(filepath.Join(home, dir)); (err == nil) != want {
			t.Errorf("%q: %v", dir, err)
		}
	}
	if info, err := os.Stat(filepath.Join(home, ".local/state/bawn", cachePlacesName)); err != nil || info.Size() != 0 {
		t.Errorf("the list is not empty: %v", err)
	}
}

// TestPlacesOfTools: in an empty home, and in one where the tool has settings only, what
// each tool writes by its documentation lies in a private cache. uv: "Storage
// directories"; Poetry: "cache-dir"; Gradle: "Gradle User Home directory"; Bundler:
// bundle-config(1), user_bundle_path; NuGet: "Managing the global packages, cache,
// and temp folders"; .NET: "dotnet new", first-run sentinels.
func TestPlacesOfTools(t *testing.T) {
	for program, c := range map[string]struct{ settings, either, empty string }{
		"cargo":  {".cargo/config.toml", ".cargo/registry/index .cargo/registry/cache .cargo/git/db", ".cargo/bin .cargo/.package-cache"},
		"uv":     {".local/share/uv/python/x", ".cache/uv/wheels-v5", ".local/share/uv/python .local/share/uv/tools"},
		"poetry": {".config/pypoetry/config.toml", ".cache/pypoetry/virtualenvs .cache/pypoetry/cache .local/share/virtualenv/wheel", ""},
		"mvn":    {".m2/settings.xml", ".m2/repository/org .m2/wrapper/dists", ".m2/.develocity"},
		"gradle": {".gradle/gradle.properties", ".gradle/caches/8.0 .gradle/daemon/8.0 .gradle/native/x .gradle/notifications/8.0 .gradle/wrapper/dists .gradle/workers .gradle/.tmp", ".gradle/jdks"},
		"bundle": {".bundle/config", ".bundle/cache/compact_index .cache/gem/specs", ".bundle/plugin"},
		"gem":    {".gem/credentials", ".cache/gem/specs", ".local/share/gem/ruby .gem/ruby"},
		"dotnet": {".nuget/NuGet/NuGet.Config", ".nuget/packages/x .local/share/NuGet/http-cache .local/share/NuGet/plugins-cache .templateengine", ".dotnet/tools .dotnet/toolResolverCache .aspnet/DataProtection-Keys"},
		"java":   {".m2/settings.xml", ".m2/repository/org .m2/wrapper/dists .gradle/wrapper/dists .gradle/caches/8.0", ""}, // what a project's own mvnw and gradlew fetch
	} {
		bin := t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, program), nil, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, settings := range []string{"", c.settings} {
			home := t.TempDir()
			if settings != "" {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(home, settings)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(home, settings), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			wanted := strings.Fields(c.either)
			if settings == "" {
				wanted = append(wanted, strings.Fields(c.empty)...)
			}
			list := privateCachesOf(t, home, bin)
			for _, p := range wanted {
				if !slices.ContainsFunc(list, func(dir string) bool {
					return fspath.Below(filepath.Join(home, p), dir)
				}) {
					t.Errorf("%s, with %q: %q lies in no cache of %q", program, settings, p, list)
				}
			}
			if i := slices.IndexFunc(list, func(dir string) bool { return settings != "" && fspath.Below(filepath.Join(home, settings), dir) }); i >= 0 {
				t.Errorf("%s: the host's %q is covered by the cache %q", program, settings, list[i])
			}
		}
	}
}

// privateCachesOf are the caches of a session in a home with the programs of bin.
func privateCachesOf(t *testing.T, home, bin string) []string {
	t.Helper()
	e := &Env{World: verb.World{Environ: []string{"HOME=" + home, "PATH=" + bin, "XDG_STATE_HOME=" + t.TempDir()}}}
	iso := bawn.Isolation{Caches: bawn.CachePrivate}
	for _, c := range config.Caches() {
		iso.CacheDirs = append(iso.CacheDirs, filepath.Join(home, c.Name[1:]))
	}
	places := holdCachePlaces(e)
	t.Cleanup(places.end)
	return cacheDirs(e, iso, places)
}

// TestHomeIsLocked: a guest that locks the home directory for itself holds up no
// start; nothing is made then, and nothing is removed.
func TestHomeIsLocked(t *testing.T) {
	home := t.TempDir()
	e := &Env{World: verb.World{Environ: []string{"HOME=" + home}}}
	guest, err := os.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close()
	if err := syscall.Flock(int(guest.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if holdCachePlaces(e) != nil || time.Since(began) > lockWait+20*time.Second {
		t.Errorf("the lock is had, or is waited for: %v", time.Since(began))
	}
	if err := syscall.Flock(int(guest.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	places := holdCachePlaces(e)
	if !places.make(filepath.Join(home, ".a")) {
		t.Fatal("no place is made")
	}
	places.end()
	if _, err := os.Stat(filepath.Join(home, ".a")); err != nil {
		t.Error("a place is removed while somebody else holds the lock: ", err)
	}
}
