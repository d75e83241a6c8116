package layout

import (
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/landlock"
	"github.com/bawn-dev/bawn/internal/sealed"
)

// HostFacts are what this machine's files and users say, for Layout. It says
// nothing about IPv6: that takes a trial.
func HostFacts() Facts {
	abi, _ := landlock.ABI()
	f := Facts{
		UID: os.Geteuid(), GID: os.Getegid(), LandlockABI: abi,
		Lookup: lookup, Sealed: lookupSealed, Present: present, Follow: Follow, Links: linksIn, ReadFile: readSmall, List: List, Resolver: resolver(),
	}
	if f.UID == 0 {
		text, _ := os.ReadFile(PasswdFile) // without it there is no name
		f.NobodyUID, f.NobodyGID = nobodyOf(string(text))
	}
	return f
}

// lookup finds a path on the host, links followed.
func lookup(p string) (File, bool) {
	fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return File{}, false
	}
	defer unix.Close(fd)
	return fileOf(fd)
}

// lookupSealed finds a path in a sealed directory of Bawn's. It is not for paths
// that a user or a guest names.
func lookupSealed(p string) (File, bool) {
	f, err := sealed.Reach(p)
	if err != nil {
		return File{}, false
	}
	defer f.Close()
	return fileOf(int(f.Fd()))
}

func fileOf(fd int) (File, bool) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return File{}, false
	}
	real, err := PathOf(fd)
	if err != nil {
		return File{}, false
	}
	kind := st.Mode & unix.S_IFMT
	return File{Real: real, Dir: kind == unix.S_IFDIR, Socket: kind == unix.S_IFSOCK, ID: Identity{st.Dev, st.Ino}}, true
}

// present returns those of names that are in dir. An ordinary name costs one
// system call; a name reached through a directory or a link of its own is
// looked up in full.
func present(dir string, names []string) []Entry {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	base, err := PathOf(fd)
	if err != nil {
		return nil
	}
	var list []Entry
	for _, n := range spelledOut(dir, names) {
		var st unix.Stat_t
		if unix.Fstatat(fd, strings.TrimPrefix(n, "/"), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		if strings.Contains(n, "/") || st.Mode&unix.S_IFMT == unix.S_IFLNK {
			f, _ := lookup(path.Join(dir, n)) // nothing, for a link that leads nowhere
			list = append(list, Entry{n, f})
			continue
		}
		list = append(list, Entry{n, File{Real: path.Join(base, n), Dir: st.Mode&unix.S_IFMT == unix.S_IFDIR, ID: Identity{st.Dev, st.Ino}}})
	}
	return list
}

// readSmall reads a file of a git directory: regular, not through a link.
func readSmall(p string) (string, error) {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), p)
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return "", fmt.Errorf("%q is no regular file", p)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxConfig))
	return string(text), err
}

// resolver returns where /etc/resolv.conf leads if that is below /run, which
// is private in a session.
func resolver() string {
	if f, ok := lookup("/etc/resolv.conf"); ok && Below(f.Real, "/run") {
		return f.Real
	}
	return ""
}

// maxConfig bounds the size of a git directory's small files.
const maxConfig = 64 << 10
