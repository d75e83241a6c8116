package docker

import (
	"fmt"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// notFound finds out why a command could not be executed. A container has the
// programs of its image, which explains most missing ones.
func (g *guest) notFound(c sandbox.Command, errno syscall.Errno) *sandbox.NotFoundError {
	name := c.Argv[0]
	nf := &sandbox.NotFoundError{Name: name, Err: errno, Absent: errno == unix.ENOENT || errno == unix.ENOTDIR}
	if !nf.Absent {
		return nf
	}
	dirs, in := []string{c.Dir}, "relative paths start in "+c.Dir
	if !strings.Contains(name, "/") {
		search := lastOf(c.Env, "PATH")
		dirs, in = strings.Split(search, ":"), "PATH in it is "+search
	}
	at := g.find(dirs, name)
	switch {
	case at != "":
		nf.Why = fmt.Sprintf("%s is there, but not the program that it needs to run (the one of its #! line, or its loader)", at)
		nf.Remedy = "use an image that has that, too"
	case strings.ContainsAny(name, " \t;|&<>$"):
		nf.Why, nf.Remedy = "not found in the container", "a line of shell needs a shell: bawn run -- sh -c '…'"
	default:
		nf.Why = "not found in the container"
		nf.Remedy = "it has the programs of its image, not the host's: name an image that has it (isolation.docker_options.image), or give its whole path; " + in
	}
	return nf
}

// find returns where the container has a file of that name, or "".
func (g *guest) find(dirs []string, name string) (at string) {
	raw, err := g.Root.SyscallConn()
	if err != nil {
		return ""
	}
	_ = raw.Control(func(root uintptr) { // a closed root is empty
		for _, dir := range dirs {
			candidate := name
			if !path.IsAbs(name) {
				candidate = path.Join(dir, name)
			}
			how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
			fd, err := unix.Openat2(int(root), candidate, &how)
			if err != nil {
				continue
			}
			var st unix.Stat_t
			if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && at == "" {
				at = candidate
			}
			unix.Close(fd)
		}
	})
	return at
}

// lastOf is the value of a variable, of which the last one counts.
func lastOf(env []string, name string) (value string) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}
