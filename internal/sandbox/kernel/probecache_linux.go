package kernel

import (
	"errors"
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

// support is what was found out by trying: of control groups, of the network,
// and by the trials of the one provider that asked for more.
type support struct {
	groups cgroup.Support
	net    netSupport
	more   []string
}

// supportFields is how many fields of the cache file are not a provider's.
const supportFields = 22

// probe returns what this machine can do, from the cache if that knows it,
// together with a number of fields that trial finds out. A cache that can't be
// read or written costs time, nothing else.
func probe(cache string, more int, trial func() []string) support {
	try := func() support {
		s := support{groups: cgroup.Probe(), net: probeNetwork()}
		if trial != nil {
			s.more = trial()
		}
		return s
	}
	now, known := here()
	if cache == "" || !known {
		return try()
	}
	if text, err := cgroup.ReadFile(cache); err == nil {
		if rest, ok := strings.CutPrefix(text, now); ok {
			if s, ok := parseSupport(rest); ok && len(s.more) >= more {
				return s
			}
		}
	}
	s := try()
	if os.MkdirAll(filepath.Dir(cache), 0o700) == nil {
		_ = atomicfile.Write(cache, []byte(now+formatSupport(s)), 0o600)
	}
	return s
}

// formatSupport writes what parseSupport reads.
func formatSupport(s support) string {
	var fields []string
	for _, c := range []cgroup.Controller{s.groups.Memory, s.groups.PIDs, s.groups.CPU} {
		fields = append(fields, c.Name, strconv.Itoa(c.Version), c.Dir, c.Partly, c.Why, c.Remedy)
	}
	n := s.net
	fields = append(fields, strconv.FormatBool(n.ok), strconv.FormatBool(n.ipv6), n.err, n.fix)
	return strings.Join(append(fields, s.more...), separator)
}

func parseSupport(text string) (s support, ok bool) {
	fields := strings.Split(text, separator)
	if len(fields) < supportFields {
		return s, false
	}
	for i, c := range []*cgroup.Controller{&s.groups.Memory, &s.groups.PIDs, &s.groups.CPU} {
		f := fields[6*i:]
		version, err := strconv.Atoi(f[1])
		if err != nil {
			return support{}, false
		}
		*c = cgroup.Controller{Name: f[0], Version: version, Dir: f[2], Partly: f[3], Why: f[4], Remedy: f[5]}
	}
	can, err1 := strconv.ParseBool(fields[18])
	ipv6, err2 := strconv.ParseBool(fields[19])
	if errors.Join(err1, err2) != nil {
		return support{}, false
	}
	s.net = netSupport{ok: can, ipv6: ipv6, err: fields[20], fix: fields[21]}
	s.more = fields[supportFields:]
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

// sweep removes the empty groups of killed Bawns, and their half-written files
// beside the cache. It does so at most once a minute, by the time of the file
// beside the cache.
func sweep(cache string) {
	if cache != "" && !due(filepath.Join(filepath.Dir(cache), "swept"), sweepPause) {
		return
	}
	_, _ = cgroup.Sweep() // the next one tries again
	if cache != "" {
		atomicfile.Sweep(filepath.Dir(cache), sweepPause)
	}
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
