package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/bawn-dev/bawn/internal/places"
)

// Dirs are where what concerns plugins is kept. Guests see only the last one,
// and each plugin only its own part of it.
type Dirs struct {
	Manifests string // $XDG_CONFIG_HOME/bawn/plugins: the human's
	Pins      string // pins in the state directory: Bawn's
	Own       string // $XDG_DATA_HOME/bawn/plugins: a directory for each plugin
	home      string
}

// DirsOf finds them by the environment.
func DirsOf(getenv func(string) string) (Dirs, error) {
	state, err := places.State(getenv)
	if err != nil {
		return Dirs{}, err
	}
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		return Dirs{}, fmt.Errorf("HOME is %q; want an absolute path", home)
	}
	base := func(variable, below string) string {
		if d := getenv(variable); filepath.IsAbs(d) {
			return filepath.Clean(d)
		}
		return filepath.Join(home, below)
	}
	return Dirs{
		Manifests: filepath.Join(base("XDG_CONFIG_HOME", ".config"), "bawn", "plugins"),
		Pins:      filepath.Join(state, "pins"),
		Own:       filepath.Join(base("XDG_DATA_HOME", ".local/share"), "bawn", "plugins"),
		home:      filepath.Clean(home),
	}, nil
}

// Place makes the directory of a plugin's own, and says where it is started.
// Symbolic links on the way to home and workspace are resolved: a hiding entry
// must name the real place.
func (d Dirs) Place(plugin, workspace string) (Place, error) {
	if err := CheckPlugin(plugin); err != nil {
		return Place{}, err
	}
	own := filepath.Join(d.Own, plugin)
	if err := os.MkdirAll(own, 0o700); err != nil {
		return Place{}, err
	}
	at := Place{Home: d.home, Workspace: workspace, Own: own, Hidden: Elsewhere()}
	for _, p := range []*string{&at.Home, &at.Workspace, &at.Own} {
		real, err := filepath.EvalSymlinks(*p)
		if err != nil {
			return Place{}, err
		}
		*p = real
	}
	return at, at.makeCaches()
}

// makeCaches makes the directories that are mounted for package managers. The
// plugin may have put something else there, which could lead anywhere.
func (at Place) makeCaches() error {
	for _, name := range caches {
		dir := filepath.Join(at.Own, name)
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return fmt.Errorf("%q is no directory, which only the plugin can have done; remove it", dir)
		}
	}
	return nil
}
