// Package devices says which devices of the machine a session may be given, and
// under which names. It is a list of kinds that are known to do one
// thing, and nothing else can be named. A list of dangerous devices would have
// to be complete, and drivers choose their numbers freely. What a device can do
// beyond its session, such as disks, memory, terminals, keyboards, cameras and
// microphones, is on no list.
package devices

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Dir is where devices are.
const Dir = "/dev"

// A kind is what one name, or a row of numbered ones, stands for. The numbers
// are those of Linux, Documentation/admin-guide/devices.txt.
type kind struct {
	name  string // below /dev; a last "#" stands for a number
	major uint32 // 0 where the driver gets one when it is loaded
	minor int    // -1: the number in the name; -2: any
	group string // beside "gpu", for devices for computing; or ""
}

// Groups are names that stand for all devices of some kinds that are there.
const (
	gpu    = "gpu" // the compute devices of graphics cards of every maker
	nvidia = "nvidia"
)

const (
	byName   = -1
	anyMinor = -2
)

var kinds = []kind{
	// In every session.
	{"null", 1, 3, ""}, {"zero", 1, 5, ""}, {"full", 1, 7, ""}, {"random", 1, 8, ""}, {"urandom", 1, 9, ""},
	// Graphics cards: to compute with, not to show or see a screen (dri/card0).
	{"nvidia#", 195, byName, nvidia}, {"nvidiactl", 195, 255, nvidia}, {"nvidia-uvm", 0, anyMinor, nvidia}, {"nvidia-uvm-tools", 0, anyMinor, nvidia},
	{"nvidia-modeset", 195, 254, ""}, {"nvidia-caps/nvidia-cap#", 0, byName, ""},
	{"dri/renderD#", 226, byName, gpu}, {"kfd", 0, anyMinor, gpu},
	{"accel/accel#", 261, byName, ""},
	// Machines and file systems of the guest's own.
	{"kvm", 10, 232, ""}, {"fuse", 10, 229, ""}, {"net/tun", 10, 200, ""},
}

// groups of names, each with its kinds.
var groups = map[string]func(kind) bool{
	gpu:    func(k kind) bool { return k.group != "" },
	nvidia: func(k kind) bool { return k.group == nvidia },
}

// kindOf returns the kind that a name is of.
func kindOf(name string) (kind, bool) {
	for _, k := range kinds {
		if _, ok := k.number(name); ok {
			return k, true
		}
	}
	return kind{}, false
}

// number reports whether a name is of the kind, and the number in it.
func (k kind) number(name string) (int, bool) {
	stem, numbered := strings.CutSuffix(k.name, "#")
	digits, ok := strings.CutPrefix(name, stem)
	if !numbered || !ok {
		return 0, name == k.name
	}
	n, err := strconv.ParseUint(digits, 10, 20) // as many as minors
	return int(n), err == nil && strconv.FormatUint(n, 10) == digits
}

// Allowed reports whether a session may be given the device of that name. A group
// is not a device. Allowed looks at the name alone.
func Allowed(name string) bool {
	_, ok := kindOf(name)
	return ok
}

// An Error says why a device can't be given.
type Error struct {
	Name, Why string
	Have      []string // the names that can be
}

// Error names the device, why, and what there is instead.
func (e *Error) Error() string {
	return fmt.Sprintf("device %q %s; want one of %s", e.Name, e.Why, strings.Join(e.Have, ", "))
}

// Check looks whether a name, or a group, stands for devices of dir that a
// session may be given. The error is an *Error.
func Check(dir, name string) error {
	why := ""
	k, known := kindOf(name)
	switch {
	case groups[name] != nil:
		if len(Expand(dir, []string{name})) == 0 {
			why = "is a group of which nothing is here"
		}
	case known:
		why = k.check(dir, name)
	default:
		why = unknown(filepath.Join(dir, name))
	}
	if why == "" {
		return nil
	}
	return &Error{Name: name, Why: why, Have: Available(dir)}
}

// Expand puts the devices of dir that a group stands for in its place; other
// names stay. What a group has not is left out.
func Expand(dir string, names []string) []string {
	var out []string
	for _, name := range names {
		members := []string{name}
		if in := groups[name]; in != nil {
			members = found(dir, in)
		}
		for _, m := range members {
			if !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	return out
}

// Available lists the groups and devices of dir that Check takes.
func Available(dir string) []string {
	var out []string
	for _, g := range []string{gpu, nvidia} {
		if len(found(dir, groups[g])) > 0 {
			out = append(out, g)
		}
	}
	return append(out, found(dir, func(kind) bool { return true })...)
}

// found lists the devices of dir of some kinds, in the order of kinds.
func found(dir string, in func(kind) bool) []string {
	var out []string
	for _, k := range kinds {
		if !in(k) {
			continue
		}
		names, _ := filepath.Glob(filepath.Join(dir, strings.Replace(k.name, "#", "*", 1))) // the pattern is a good one
		for _, n := range names {
			name := strings.TrimPrefix(n, dir+"/")
			if _, ok := k.number(name); ok && k.check(dir, name) == "" {
				out = append(out, name)
			}
		}
	}
	return out
}
