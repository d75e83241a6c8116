package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// endOrphans ends what bwrap leaves behind when it is killed before its sandbox is
// made: its second process waits for the first one forever, with the session's
// listeners. Socket is that of a session that is not alive.
func endOrphans(socket string) {
	inodes := boundAt(socket)
	if len(inodes) == 0 {
		return
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // those of other users say nothing
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if holds(dir, inodes) && orphaned(dir, inodes) {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it may have ended
		}
		unix.Close(fd)
	}
}

// boundAt are the sockets that were bound at a path (proc_net(5), "unix"). Its last
// name is a session's ID; where the path is long, the rest is another.
func boundAt(path string) (inodes []string) {
	text, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 8 && filepath.Base(f[7]) == filepath.Base(path) {
			inodes = append(inodes, fmt.Sprintf("socket:[%s]", f[6]))
		}
	}
	return inodes
}

// orphaned reports whether a process is bwrap's and its parent is neither bwrap nor a
// bawn.
func orphaned(dir string, inodes []string) bool {
	name, parent := processAt(dir)
	of, _ := processAt(parent)
	return name == "bwrap" && of != "" && of != "bwrap" && !strings.HasPrefix(of, "bawn") && !holds(parent, inodes)
}

// processAt is a process's name, and where its parent is in /proc.
func processAt(dir string) (name, parent string) {
	status, _ := os.ReadFile(filepath.Join(dir, "status"))
	for line := range strings.Lines(string(status)) {
		switch f := strings.Fields(line); {
		case len(f) > 1 && f[0] == "Name:":
			name = f[1]
		case len(f) > 1 && f[0] == "PPid:":
			parent = filepath.Join("/proc", f[1])
		}
	}
	return name, parent
}

// holds reports whether one of a process's descriptors is one of those sockets.
func holds(dir string, inodes []string) bool {
	fds, _ := filepath.Glob(filepath.Join(dir, "fd", "*"))
	return slices.ContainsFunc(fds, func(fd string) bool {
		of, err := os.Readlink(fd)
		return err == nil && slices.Contains(inodes, of)
	})
}
