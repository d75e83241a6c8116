package cgroup

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A membership is one line of /proc/self/cgroup: the group a process is in,
// in one hierarchy, seen from the root of its cgroup namespace.
type membership struct {
	controllers []string // none in version 2
	path        string
}

// parseSelf reads /proc/self/cgroup (cgroups(7)): "id:controllers:path".
func parseSelf(text string) ([]membership, error) {
	var list []membership
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		id, rest, ok1 := strings.Cut(line, ":")
		names, dir, ok2 := strings.Cut(rest, ":")
		if !ok1 || !ok2 || !strings.HasPrefix(dir, "/") {
			return nil, fmt.Errorf("control group line %q is not id:controllers:path", line)
		}
		m := membership{path: dir}
		switch {
		case names != "":
			m.controllers = strings.Split(names, ",")
		case id != "0":
			return nil, fmt.Errorf("control group line %q has no controllers", line)
		}
		list = append(list, m)
	}
	return list, nil
}

// A mount is one cgroup or cgroup2 line of /proc/self/mountinfo.
type mount struct {
	version int
	root    string   // the group that is visible at point
	point   string   // absolute
	options []string // of the superblock: in version 1 they name the controllers
}

// parseMounts reads /proc/self/mountinfo (proc_pid_mountinfo(5)) and returns
// its control group mounts in mounting order.
func parseMounts(text string) ([]mount, error) {
	var list []mount
	for line := range strings.Lines(text) {
		head, tail, ok := strings.Cut(line, " - ")
		before, after := strings.Fields(head), strings.Fields(tail)
		if !ok || len(before) < 6 || len(after) < 1 {
			return nil, fmt.Errorf("mount line %q is too short", strings.TrimSpace(line))
		}
		version := map[string]int{"cgroup": 1, "cgroup2": 2}[after[0]]
		if version == 0 {
			continue
		}
		m := mount{version: version, root: unescape(before[3]), point: unescape(before[4])}
		if !path.IsAbs(m.root) || !path.IsAbs(m.point) || len(after) < 3 {
			return nil, fmt.Errorf("mount line %q has no absolute path or no options", strings.TrimSpace(line))
		}
		m.options = strings.Split(after[2], ",")
		list = append(list, m)
	}
	return list, nil
}

// unescape undoes the octal escapes of mountinfo: \040, \011, \012, \134.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// A hierarchy is one tree of groups and where we are in it.
type hierarchy struct {
	version     int
	controllers []string // version 1 only; version 2 says it group by group
	top         string   // the directory of the highest group we can see
	own         string   // the directory of our own group
	why         string   // why own can't be found, where it is empty
}

// layout joins memberships and mounts. A hierarchy that is not mounted, or
// mounted without our own group in it, is returned with its reason.
func layout(self []membership, mounts []mount) []hierarchy {
	var list []hierarchy
	for _, m := range self {
		h := hierarchy{version: 1, controllers: m.controllers}
		if m.controllers == nil {
			h.version = 2
		}
		if err := h.locate(m.path, mounts); err != nil {
			h.why = err.Error()
		}
		list = append(list, h)
	}
	return list
}

// locate finds the directory of the group called dir. The last mount counts,
// since it may cover an earlier one.
func (h *hierarchy) locate(dir string, mounts []mount) error {
	err := errors.New("its hierarchy is not mounted")
	for _, m := range slices.Backward(mounts) {
		if !h.mountedBy(m) {
			continue
		}
		rel, ok := below(m.root, dir)
		if ok {
			h.top, h.own = m.point, path.Join(m.point, rel)
			return nil
		}
		err = fmt.Errorf("our group %q is not visible at %q", dir, m.point)
	}
	return err
}

func (h *hierarchy) mountedBy(m mount) bool {
	if h.version == 2 || m.version == 2 {
		return h.version == m.version
	}
	for _, c := range h.controllers {
		if !slices.Contains(m.options, c) {
			return false
		}
	}
	return true
}

// below returns the path of dir seen from root. A group outside the root of
// our cgroup namespace starts with "/.." and is below nothing.
func below(root, dir string) (string, bool) {
	if slices.Contains(strings.Split(dir, "/"), "..") || slices.Contains(strings.Split(root, "/"), "..") {
		return "", false
	}
	if root == "/" {
		return dir, true
	}
	rel, ok := strings.CutPrefix(dir, root)
	return rel, ok && (rel == "" || rel[0] == '/')
}

// ancestors returns own, its parent, and so on up to top.
func (h *hierarchy) ancestors() []string {
	var list []string
	for dir := h.own; ; dir = path.Dir(dir) {
		list = append(list, dir)
		if dir == h.top || dir == "/" {
			return list
		}
	}
}

// find returns the hierarchy that may hold a controller: version 1 says so by
// name, everything else can only be in version 2.
func find(list []hierarchy, controller string) (*hierarchy, error) {
	var v2 *hierarchy
	for i := range list {
		h := &list[i]
		if slices.Contains(h.controllers, controller) {
			return h, h.err()
		}
		if h.version == 2 {
			v2 = h
		}
	}
	if v2 == nil {
		return nil, errors.New("the kernel has no such controller")
	}
	return v2, v2.err()
}

func (h *hierarchy) err() error {
	if h.why != "" {
		return errors.New(h.why)
	}
	return nil
}
