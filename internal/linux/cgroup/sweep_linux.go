package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxSiblings bounds what Sweep looks at.
const maxSiblings = 1024

// Sweep removes the empty groups of Bawn processes that have died without Remove, and
// returns how many directories that were. It looks where New makes groups: our own group
// and those beside it; in version 2 our own and its ancestors. It skips names that are
// not of Bawn's form, groups whose maker lives or is in another pid namespace, and groups
// with processes.
func Sweep() (int, error) {
	me, err := self()
	if err != nil {
		return 0, err
	}
	trees, err := here()
	if err != nil {
		return 0, err
	}
	removed := 0
	var errs []error
	for _, h := range trees {
		for _, d := range h.places() {
			n, err := sweepDir(d, me)
			removed += n
			errs = append(errs, err)
		}
	}
	return removed, errors.Join(errs...)
}

// places returns the directories of h in which New may make a group.
func (h *hierarchy) places() []string {
	used := func(c string) bool { return c == memory || c == pids || c == cpu }
	switch {
	case h.own == "":
		return nil
	case h.version == 2:
		return h.ancestors()
	case slices.ContainsFunc(h.controllers, used):
		return append(siblings(h), h.own)
	}
	return nil
}

// siblings returns the other groups beside our own: where a service manager
// gives every command a group, an earlier Bawn was in one of those.
func siblings(h *hierarchy) []string {
	if h.own == h.top {
		return nil
	}
	parent := path.Dir(h.own)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil // a missed leftover is an empty directory, no danger
	}
	var list []string
	for _, e := range entries[:min(len(entries), maxSiblings)] {
		if dir := path.Join(parent, e.Name()); e.IsDir() && dir != h.own {
			list = append(list, dir)
		}
	}
	return list
}

func sweepDir(dir string, me owner) (int, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return 0, nil // nothing of ours can be there
	}
	removed := 0
	for _, e := range entries {
		o, ours := parseName(e.Name())
		if !ours || !e.IsDir() || o.namespace != me.namespace || o.alive() {
			continue
		}
		switch e := unix.Rmdir(path.Join(dir, e.Name())); {
		case e == nil:
			removed++
		case !errors.Is(e, unix.EBUSY) && !errors.Is(e, unix.ENOENT):
			err = errors.Join(err, fmt.Errorf("leftover group in %q: %w", dir, e))
		}
	}
	return removed, err
}

// self returns the owner that this process is.
func self() (owner, error) {
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return owner{}, fmt.Errorf("our pid namespace can't be read: %w", err)
	}
	namespace, err := parseNamespace(link)
	if err != nil {
		return owner{}, err
	}
	pid := os.Getpid()
	start, err := startTime(pid)
	return owner{namespace: namespace, pid: pid, start: start}, err
}

func startTime(pid int) (uint64, error) {
	stat, err := ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("start time of process %d can't be read: %w", pid, err)
	}
	return parseStart(stat)
}

// alive reports whether o still runs. Doubt counts as alive, since the price
// of that is an empty directory.
func (o owner) alive() bool {
	start, err := startTime(o.pid)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return false
	}
	return err != nil || start == o.start
}
