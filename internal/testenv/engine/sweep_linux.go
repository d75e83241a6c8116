package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownName is how a directory of ours is called: who made it (process ID and
// start time, which no two processes share), and what makes it unique.
var ownName = regexp.MustCompile(`^bawn-engine-(\d+)-(\d+)-\d+$`)

// ownPrefix is the beginning of such a name for this process.
func ownPrefix() (string, error) {
	start, err := startOf(os.Getpid())
	return fmt.Sprintf("bawn-engine-%d-%d-", os.Getpid(), start), err
}

// startOf returns when a process was started, in ticks since boot: field 22
// of proc_pid_stat(5), counted behind the name, which may hold anything.
func startOf(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields behind the name; want 20", pid, len(fields))
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// dead reports whether the process that made a directory of this name has ended. It
// returns false for a name that this package did not make.
func dead(name string) bool {
	m := ownName.FindStringSubmatch(name)
	if m == nil {
		return false
	}
	pid, err := strconv.Atoi(m[1])
	if err != nil {
		return false
	}
	start, err := startOf(pid)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return strconv.FormatUint(start, 10) != m[2]
}

// sweep removes what dead makers left below parent.
func sweep(parent string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if dead(entry.Name()) {
			errs = append(errs, remove(filepath.Join(parent, entry.Name())))
		}
	}
	return errors.Join(errs...)
}

// remove ends every process of the engine in dir, unmounts what it mounted
// and removes its control groups and the directory. It touches nothing but a
// directory with a name of ours that belongs to us.
func remove(dir string) error {
	name := filepath.Base(dir)
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !ownName.MatchString(name) || !info.IsDir():
		return fmt.Errorf("%q is no directory of an engine", dir)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return nil // somebody else's
	}
	if err := killMembers(name); err != nil {
		return err
	}
	if err := unmountBelow(dir); err != nil {
		return err
	}
	return errors.Join(removeGroups(name), removeSockets(dir), os.RemoveAll(dir))
}

// shimSocket is where a containerd's shim listens, outside of the directory
// that containerd was given. One that was killed leaves the socket.
var shimSocket = regexp.MustCompile(`^unix://(/run/containerd/s/[0-9a-f]{64})$`)

// removeSockets removes the sockets of the engine's shims, which containerd
// notes for each container that it knows.
func removeSockets(dir string) error {
	notes, err := filepath.Glob(dir + "/exec/containerd/daemon/io.containerd.runtime.v2.task/*/*/address")
	if err != nil {
		return err
	}
	for _, note := range notes {
		text, err := os.ReadFile(note)
		if m := shimSocket.FindStringSubmatch(string(text)); err == nil && m != nil {
			if err := os.Remove(m[1]); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// killMembers ends every process in the engine's groups.
func killMembers(name string) error {
	for range 500 {
		pids, err := membersOf(name)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("processes of %q outlive SIGKILL", name)
}

// membersOf lists the processes in a group of the engine's, in any hierarchy.
func membersOf(name string) ([]int, error) {
	found, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && isMember(string(text), name) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// isMember looks for the engine's group in the text of /proc/PID/cgroup. One
// that has ended and waits for its parent says so in no other way than that it
// has left its groups.
func isMember(table, name string) bool {
	for line := range strings.Lines(table) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && slices.Contains(strings.Split(f[2], "/"), name) {
			return true
		}
	}
	return false
}

// unmountBelow unmounts, the last mounted first, what is mounted below dir.
func unmountBelow(dir string) error {
	for range 3 {
		mounts, err := mountsBelow(dir)
		if err != nil || len(mounts) == 0 {
			return err
		}
		for _, m := range slices.Backward(mounts) {
			_ = unix.Unmount(m, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) // looked at again
		}
	}
	mounts, err := mountsBelow(dir)
	if err == nil && len(mounts) > 0 {
		err = fmt.Errorf("mounts stay: %q", mounts)
	}
	return err
}

// mountsBelow lists the mount points below dir in the order of their making.
func mountsBelow(dir string) ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 {
			if p := unescape(f[4]); strings.HasPrefix(p, dir+"/") {
				list = append(list, p)
			}
		}
	}
	return list, nil
}

// unescape reads a path of proc_pid_mountinfo(5), in which blanks and
// backslashes are octal.
func unescape(p string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(p)
}

// groupsOf lists the control groups of the engine, inner ones last.
func groupsOf(name string) ([]string, error) {
	tops, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, top := range append(tops, filepath.Join("/sys/fs/cgroup", name)) {
		err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				list = append(list, p)
			}
			return nil // a group that goes away while we look is gone
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// removeGroups removes the engine's control groups; a group that its last
// process has just left is busy for a moment.
func removeGroups(name string) error {
	var errs []error
	for range 100 {
		groups, err := groupsOf(name)
		if err != nil || len(groups) == 0 {
			return err
		}
		errs = nil
		for _, g := range slices.Backward(groups) {
			errs = append(errs, unix.Rmdir(g))
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.Join(errs...)
}
