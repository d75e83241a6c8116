package layout

import (
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/symlink"
)

// Follow walks a path as the kernel does, but goes on where nothing is. It
// returns where the links on the way lie, and where it ends.
func Follow(p string) (links []string, end string) {
	if path.Clean(p) == p && !linked(p) {
		return nil, p
	}
	return symlink.Walk(p)
}

// linked reports whether a link may be on the way to a clean path, or at it.
func linked(p string) bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err == nil {
		unix.Close(fd)
	}
	return err != nil && err != unix.ENOENT && err != unix.ENOTDIR
}

// maxListed is how many entries of a directory are looked at.
const maxListed = 1000

// linksIn returns the names of the symbolic links in a directory.
func linksIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(maxListed)
	var names []string
	for _, e := range entries {
		if e.Type()&os.ModeSymlink != 0 {
			names = append(names, e.Name())
		}
	}
	return names
}
