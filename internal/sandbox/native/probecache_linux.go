package native

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/linux/cgroup"
)

// cachedProbe is what the cache file holds.
type cachedProbe struct {
	Boot    string // /proc/sys/kernel/random/boot_id
	Groups  string // /proc/self/cgroup: where groups are made depends on it
	UID     int
	Support cgroup.Support
}

// here is what a cached outcome must have been found under.
func here() (cachedProbe, bool) {
	boot, err1 := os.ReadFile("/proc/sys/kernel/random/boot_id")
	groups, err2 := os.ReadFile("/proc/self/cgroup")
	return cachedProbe{Boot: string(boot), Groups: string(groups), UID: os.Geteuid()}, err1 == nil && err2 == nil
}

// probe returns what control groups can do here, from the cache if it knows.
// A cache that can't be read or written costs time, nothing else.
func probe(cache string) cgroup.Support {
	now, known := here()
	if cache == "" || !known {
		return cgroup.Probe()
	}
	var old cachedProbe
	if text, err := os.ReadFile(cache); err == nil && json.Unmarshal(text, &old) == nil &&
		old.Boot == now.Boot && old.Groups == now.Groups && old.UID == now.UID {
		return old.Support
	}
	now.Support = cgroup.Probe()
	if text, err := json.Marshal(now); err == nil && os.MkdirAll(filepath.Dir(cache), 0o700) == nil {
		_ = atomicfile.Write(cache, text, 0o600)
	}
	return now.Support
}

// forget drops a cached outcome that proved wrong.
func forget(cache string) {
	if cache != "" {
		_ = os.Remove(cache)
	}
}
