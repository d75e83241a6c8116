package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// elsewhere is what helps against every refused write.
const elsewhere = "write in the workspace or in /tmp"

// systemPlaces are not opened for a session by a good adviser.
var systemPlaces = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr"}

// remedies returns what to do about a refusal of a session: only what helps.
func remedies(e *Env, c *config.Config, iso bawn.Isolation) func(sandbox.Denial) string {
	return func(d sandbox.Denial) string {
		place, hidden := c.Hides(d.Resource)
		switch {
		case d.Rule == ruleHidden && d.Operation == bawn.Write && hidden:
			return c.WriteAdvice(d.Resource, place)
		case d.Rule != layout.RuleReadOnly:
			return d.Remedy
		}
		home, err := filepath.EvalSymlinks(e.Getenv("HOME"))
		if err != nil {
			home = e.Getenv("HOME")
		}
		return writeRemedy(c, iso, d.Resource, home)
	}
}

func writeRemedy(c *config.Config, iso bawn.Isolation, path, home string) string {
	help := elsewhere
	if c.Mode == bawn.ModePlan {
		help = "write in /tmp"
	}
	there := existing(path)
	place := filepath.Dir(path)
	if there == path && !isDir(path) && fspath.Below(home, place) {
		place = path // a file of the home directory, and not all of it
	}
	below := func(dir string) bool { return fspath.Below(path, dir) }
	switch {
	case slices.ContainsFunc(systemPlaces, below):
		return help + "; the system is changed from outside a session"
	case unix.Access(there, unix.W_OK) != nil:
		return fmt.Sprintf("%s; your own account may not write %s either", help, there)
	case iso.Caches == bawn.CacheReadOnly && slices.ContainsFunc(iso.CacheDirs, below):
		return "give the session caches of its own with --caches private"
	case place == path || !fspath.Below(home, place):
	case fspath.Below(path, iso.Workspace):
	default:
		return help + "; the home directory itself is not opened to a session, but --rw opens a directory in it"
	}
	return combine(help, c.WriteAdvice(path, place), place, there)
}

// combine puts together where to write instead and what would open the place.
func combine(help, advice, place, there string) string {
	switch {
	case advice == "":
		return help
	case strings.Contains(advice, "--rw "+place) && !fspath.Below(there, place):
		return fmt.Sprintf("%s, or create the directory (mkdir -p %s) and %s", help, place, advice)
	}
	return help + ", or " + advice
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// existing returns path or its closest existing ancestor.
func existing(path string) string {
	for path != "/" {
		if _, err := os.Lstat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}
