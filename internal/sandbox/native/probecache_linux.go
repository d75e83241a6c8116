package native

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/linux/cgroup"
)

// separator stands between the fields of the cache file. It is not JSON: this
// is read at every start, and the decoder alone would take a tenth of a
// millisecond.
const separator = "\x00"

// here is what a cached outcome must have been found under: this boot, our
// control groups (where others are made depends on it), this user.
func here() (string, bool) {
	boot, err1 := cgroup.ReadFile("/proc/sys/kernel/random/boot_id")
	groups, err2 := cgroup.ReadFile("/proc/self/cgroup")
	return boot + separator + groups + separator + strconv.Itoa(os.Geteuid()) + separator, err1 == nil && err2 == nil
}

// probe returns what control groups can do here, from the cache if it knows.
// A cache that can't be read or written costs time, nothing else.
func probe(cache string) cgroup.Support {
	now, known := here()
	if cache == "" || !known {
		return cgroup.Probe()
	}
	if text, err := cgroup.ReadFile(cache); err == nil {
		if rest, ok := strings.CutPrefix(text, now); ok {
			if s, ok := parseSupport(rest); ok {
				return s
			}
		}
	}
	s := cgroup.Probe()
	if os.MkdirAll(filepath.Dir(cache), 0o700) == nil {
		_ = atomicfile.Write(cache, []byte(now+formatSupport(s)), 0o600)
	}
	return s
}

// formatSupport writes what parseSupport reads.
func formatSupport(s cgroup.Support) string {
	var fields []string
	for _, c := range []cgroup.Controller{s.Memory, s.PIDs, s.CPU} {
		fields = append(fields, c.Name, strconv.Itoa(c.Version), c.Dir, c.Partly, c.Why, c.Remedy)
	}
	return strings.Join(fields, separator)
}

func parseSupport(text string) (s cgroup.Support, ok bool) {
	fields := strings.Split(text, separator)
	if len(fields) != 18 {
		return s, false
	}
	for i, c := range []*cgroup.Controller{&s.Memory, &s.PIDs, &s.CPU} {
		f := fields[6*i:]
		version, err := strconv.Atoi(f[1])
		if err != nil {
			return cgroup.Support{}, false
		}
		*c = cgroup.Controller{Name: f[0], Version: version, Dir: f[2], Partly: f[3], Why: f[4], Remedy: f[5]}
	}
	return s, true
}

// forget drops a cached outcome that proved wrong.
func forget(cache string) {
	if cache != "" {
		_ = os.Remove(cache)
	}
}

// sweepPause is how long what a killed Bawn left in the control groups may
// stay: looking for it takes longer than all else at a session's end.
const sweepPause = time.Minute

// sweep removes the empty groups of killed Bawns, unless that was done within
// the last minute: the file beside the cache was written then.
func sweep(cache string) {
	if cache != "" && !due(filepath.Join(filepath.Dir(cache), "swept"), sweepPause) {
		return
	}
	_, _ = cgroup.Sweep() // the next one tries again
}

// due reports whether stamp was last written longer than pause ago, and writes
// it then.
func due(stamp string, pause time.Duration) bool {
	var st unix.Stat_t
	if unix.Lstat(stamp, &st) == nil {
		age := time.Since(time.Unix(st.Mtim.Unix()))
		if age >= 0 && age < pause {
			return false
		}
	}
	_ = os.WriteFile(stamp, nil, 0o600)
	return true
}
