package docker

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
)

func text(to func(*Extra) *string) func(*Extra, string, bawn.Resources) error {
	return func(x *Extra, v string, _ bawn.Resources) error {
		*to(x) = v
		return nil
	}
}

func list(to func(*Extra) *[]string) func(*Extra, string, bawn.Resources) error {
	return func(x *Extra, v string, _ bawn.Resources) error {
		*to(x) = append(*to(x), v)
		return nil
	}
}

// ownLabels begin the labels by which sessions are found and swept.
const ownLabels = "dev.bawn."

func label(x *Extra, v string, _ bawn.Resources) error {
	name, value, _ := strings.Cut(v, "=")
	if name == "" || strings.HasPrefix(name, ownLabels) || strings.HasPrefix(name, "io.podman.") {
		return fmt.Errorf("labels with that name are not yours; want another than %q", ownLabels+"*")
	}
	x.Labels[name] = value
	return nil
}

var hostName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,61}[a-zA-Z0-9])?$`)

func hostname(to func(*Extra) *string) func(*Extra, string, bawn.Resources) error {
	return func(x *Extra, v string, _ bawn.Resources) error {
		if !hostName.MatchString(v) {
			return fmt.Errorf("want a host's name of at most 63 letters, digits, dots and hyphens")
		}
		*to(x) = v
		return nil
	}
}

// addHost takes addresses that are written out: "host-gateway" would be looked
// up by the engine.
func addHost(x *Extra, v string, _ bawn.Resources) error {
	at := strings.IndexAny(v, ":=")
	if at < 0 || !hostName.MatchString(v[:at]) {
		return fmt.Errorf("want name:address")
	}
	if _, err := netip.ParseAddr(strings.Trim(v[at+1:], "[]")); err != nil {
		return fmt.Errorf("want an address, written out, behind the name")
	}
	x.Hosts = append(x.Hosts, v[:at]+":"+strings.Trim(v[at+1:], "[]"))
	return nil
}

// tmpfs makes another place of the session's own. It may lie in the image only,
// where it can't cover what bawn mounts.
func tmpfs(x *Extra, v string, r bawn.Resources) error {
	at, options, _ := strings.Cut(v, ":")
	if !path.IsAbs(at) || path.Clean(at) != at || slices.ContainsFunc(reservedTmpfs, func(p string) bool { return at == p || p != "/" && below(at, p) }) {
		return fmt.Errorf("want an absolute path in the image, none of %q or below one", reservedTmpfs[1:])
	}
	size := r.TmpMB
	for o := range strings.SplitSeq(options, ",") {
		name, value, _ := strings.Cut(o, "=")
		switch name {
		case "", "rw", "nosuid", "nodev", "mode":
		case "size":
			n, err := megabytes(value)
			if err != nil || size > 0 && n > size {
				return fmt.Errorf("want a size of at most %d MiB, the session's own", size)
			}
			size = n
		default:
			return fmt.Errorf("option %q is not for a session's place", o)
		}
	}
	x.Tmpfs[at] = size
	return nil
}

var reservedTmpfs = []string{"/", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/workspace"}

// ulimits are those that can be stated, and what of a session they may not
// exceed.
var ulimits = map[string]func(bawn.Resources) int64{
	"nofile": func(r bawn.Resources) int64 { return r.OpenFiles },
	"fsize":  func(r bawn.Resources) int64 { return r.FileSizeMB << 20 },
	"nproc":  func(r bawn.Resources) int64 { return r.PIDs },
	"core":   func(bawn.Resources) int64 { return 0 }, "cpu": func(bawn.Resources) int64 { return 0 },
	"data": func(bawn.Resources) int64 { return 0 }, "stack": func(bawn.Resources) int64 { return 0 },
}

func ulimit(x *Extra, v string, r bawn.Resources) error {
	name, value, _ := strings.Cut(v, "=")
	bound, known := ulimits[name]
	if !known {
		return fmt.Errorf("this limit can't be stated")
	}
	soft, hard, both := strings.Cut(value, ":")
	if !both {
		hard = soft
	}
	s, err := count(soft)
	h, err2 := count(hard)
	if err != nil || err2 != nil || s > h {
		return fmt.Errorf("want %s=SOFT:HARD, numbers from 0", name)
	}
	if b := bound(r); b > 0 && h > b {
		return fmt.Errorf("the session's own limit is %d, and this would be above it", b)
	}
	x.Ulimits = append(x.Ulimits, Ulimit{name, s, h})
	return nil
}

// lower sets a limit that is below the session's own.
func lower(to func(*Extra) *int64, own func(bawn.Resources) int64, parse func(string) (int64, error)) func(*Extra, string, bawn.Resources) error {
	return func(x *Extra, v string, r bawn.Resources) error {
		n, err := parse(v)
		switch {
		case err != nil:
			return err
		case n <= 0:
			return fmt.Errorf("it would lift the limit; want more than 0")
		case own(r) > 0 && n > own(r):
			return fmt.Errorf("the session's own limit is %d, and this would be above it; %s", own(r), whyLimits)
		}
		*to(x) = n
		return nil
	}
}

func cpus(x *Extra, v string, r bawn.Resources) error {
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || !(n >= 0.01 && n <= 1<<16) {
		return fmt.Errorf("want a number of processors from 0.01")
	}
	if r.CPUs > 0 && n > r.CPUs {
		return fmt.Errorf("the session's own limit is %v, and this would be above it", r.CPUs)
	}
	x.CPUs = n
	return nil
}

var cpuSet = regexp.MustCompile(`^[0-9]+([,-][0-9]+)*$`)

func set(to func(*Extra) *string) func(*Extra, string, bawn.Resources) error {
	return func(x *Extra, v string, _ bawn.Resources) error {
		if !cpuSet.MatchString(v) || len(v) > 256 {
			return fmt.Errorf("want a list such as 0-2,4")
		}
		*to(x) = v
		return nil
	}
}

func oomScore(x *Extra, v string, _ bawn.Resources) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > 1000 {
		return fmt.Errorf("want 0 to 1000: a session is never spared before others")
	}
	x.OOMScore = n
	return nil
}

func security(x *Extra, v string, _ bawn.Resources) error {
	if kind, _, _ := strings.Cut(strings.ReplaceAll(v, ":", "="), "="); !slices.Contains([]string{"seccomp", "apparmor", "label", "systempaths"}, kind) {
		return fmt.Errorf("want seccomp, apparmor, label or systempaths")
	}
	x.Security = append(x.Security, v)
	return nil
}

func sysctl(x *Extra, v string, _ bawn.Resources) error {
	name, value, ok := strings.Cut(v, "=")
	if !ok || name == "" {
		return fmt.Errorf("want name=value")
	}
	x.Sysctls[name] = value
	return nil
}

// volume takes a bind of the host with absolute paths.
func volume(x *Extra, v string, _ bawn.Resources) error {
	parts := strings.Split(v, ":")
	if len(parts) < 2 || len(parts) > 3 || !path.IsAbs(parts[0]) || !path.IsAbs(parts[1]) {
		return fmt.Errorf("want /source:/target[:ro]")
	}
	if len(parts) == 3 && parts[2] != "ro" && parts[2] != "rw" {
		return fmt.Errorf("want ro or rw behind it")
	}
	if strings.Contains(parts[0], "docker.sock") || strings.Contains(parts[0], "podman.sock") {
		return fmt.Errorf("whoever may speak to the engine is root on this machine")
	}
	x.Binds = append(x.Binds, v)
	return nil
}

// megabytes reads a size as docker does: bytes, or with b, k, m, g behind it.
func megabytes(v string) (int64, error) {
	shift := map[byte]int{'b': 0, 'k': 10, 'm': 20, 'g': 30}
	unit := 0
	number := strings.TrimSuffix(strings.ToLower(v), "b")
	if n := len(number); n > 0 {
		if s, ok := shift[number[n-1]]; ok {
			number, unit = number[:n-1], s
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return 0, fmt.Errorf("want a size such as 512m")
	}
	if unit >= 20 {
		return n << (unit - 20), nil
	}
	return n << unit >> 20, nil
}

func count(v string) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("want a number from 0")
	}
	return n, nil
}
