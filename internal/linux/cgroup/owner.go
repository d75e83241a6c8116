package cgroup

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const prefix = "bawn-"

// An owner is the Bawn process that made a group, so exactly that a process
// which got the same number later, or in another pid namespace, is not it.
type owner struct {
	namespace uint64 // inode of the pid namespace
	pid       int
	start     uint64 // clock ticks since boot
}

// groupName returns the directory name of a session's group:
// bawn-SESSION-NAMESPACE-PID-START.
func (o owner) groupName(session string) string {
	return fmt.Sprintf("%s%s-%d-%d-%d", prefix, session, o.namespace, o.pid, o.start)
}

// parseName returns the owner in a group's name; false means it is not ours.
func parseName(name string) (owner, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	parts := strings.Split(rest, "-")
	if !ok || len(parts) < 4 {
		return owner{}, false
	}
	session := strings.Join(parts[:len(parts)-3], "-")
	parts = parts[len(parts)-3:]
	namespace, err1 := strconv.ParseUint(parts[0], 10, 64)
	pid, err2 := strconv.ParseUint(parts[1], 10, 31)
	start, err3 := strconv.ParseUint(parts[2], 10, 64)
	o := owner{namespace: namespace, pid: int(pid), start: start}
	// Exactly what groupName writes, so that "+7" or "007" is somebody else's.
	ok = errors.Join(err1, err2, err3) == nil && checkName(session) == nil && o.groupName(session) == name
	return o, ok
}

// checkName accepts a name that can be one part of a directory name.
func checkName(name string) error {
	if name == "" || len(name) > maxNameBytes {
		return fmt.Errorf("group name %q has %d bytes; use 1 to %d", name, len(name), maxNameBytes)
	}
	for _, r := range name {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", r) {
			return fmt.Errorf("group name %q has %q; use letters, digits, - and _", name, r)
		}
	}
	return nil
}

// parseStart returns the start time in /proc/PID/stat, its 22nd field
// (proc_pid_stat(5)). The second is the program's name and may hold anything,
// so fields count from the last parenthesis.
func parseStart(stat string) (uint64, error) {
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) < 20 {
		return 0, fmt.Errorf("process status %q is too short", stat)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("start time %q is not a number", fields[19])
	}
	return start, nil
}

// parseNamespace returns the inode in a link such as "pid:[4026531836]".
func parseNamespace(link string) (uint64, error) {
	text, ok1 := strings.CutPrefix(link, "pid:[")
	text, ok2 := strings.CutSuffix(text, "]")
	n, err := strconv.ParseUint(text, 10, 64)
	if !ok1 || !ok2 || err != nil {
		return 0, fmt.Errorf("pid namespace %q is not pid:[number]", link)
	}
	return n, nil
}
