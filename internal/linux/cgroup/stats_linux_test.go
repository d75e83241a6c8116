package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

// TestStats reads groups of both versions as the kernel shows them: before and
// after an end for want of memory, the group's own or the machine's.
func TestStats(t *testing.T) {
	const peak, limit = "memory.max_usage_in_bytes", "memory.limit_in_bytes"
	control := func(kills string) string { return "oom_kill_disable 0\nunder_oom 0\noom_kill " + kills + "\n" }
	events := func(oom, kills string) string {
		return "low 0\nhigh 0\nmax 90\noom " + oom + "\noom_kill " + kills + "\noom_group_kill 1\n"
	}
	cases := []struct {
		name    string
		version int
		files   map[string]string
		want    Stats
	}{
		{"v2, quiet", 2, map[string]string{"memory.events": events("0", "0"), "pids.events": "max 0\n", "memory.peak": "4096\n"}, Stats{}},
		{"v2, own limit", 2, map[string]string{"memory.events": events("2", "5"), "pids.events": "max 7\n"}, Stats{MemoryFull: true, OOMKills: 5, PIDsMaxHits: 7}},
		{"v2, the machine's", 2, map[string]string{"memory.events": events("0", "1"), "pids.events": "max 0\n"}, Stats{OOMKills: 1}},
		{"v1, quiet", 1, map[string]string{peak: "4096\n", "memory.oom_control": control("0"), "memory.failcnt": "0\n", "pids.events": "max 0\n"}, Stats{}},
		{"v1, own limit", 1, map[string]string{peak: "9\n", "memory.oom_control": control("3"), "memory.failcnt": "4\n", "memory.memsw.failcnt": "1\n", "pids.events": "max 2\n"}, Stats{MemoryFull: true, OOMKills: 3, PIDsMaxHits: 2}},
		{"v1, own limit, uncounted", 1, map[string]string{peak: "67108864\n", limit: "67108864\n", "memory.oom_control": control("3"), "memory.failcnt": "0\n", "pids.events": "max 2\n"}, Stats{MemoryFull: true, OOMKills: 3, PIDsMaxHits: 2}},
		{"v1, own limit with swap", 1, map[string]string{peak: "9\n", limit: "67108864\n", "memory.memsw.max_usage_in_bytes": "67108864\n", "memory.memsw.limit_in_bytes": "67108864\n", "memory.oom_control": control("3"), "memory.failcnt": "0\n", "pids.events": "max 2\n"}, Stats{MemoryFull: true, OOMKills: 3, PIDsMaxHits: 2}},
		{"v1, the machine's", 1, map[string]string{peak: "66108864\n", limit: "67108864\n", "memory.oom_control": control("1"), "memory.failcnt": "0\n", "pids.events": "max 0\n"}, Stats{OOMKills: 1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := fake(t, c.version, c.files).Stats()
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

// TestStatsUnreadable wants an error, and no count, of what is no number.
func TestStatsUnreadable(t *testing.T) {
	good := map[string]string{"memory.max_usage_in_bytes": "9\n", "memory.oom_control": "oom_kill 1\n", "memory.failcnt": "1\n", "pids.events": "max 1\n"}
	for file, text := range map[string]string{"memory.oom_control": "under_oom 0\n", "memory.failcnt": "many\n", "pids.events": "max -1\n"} {
		files := map[string]string{}
		for name, content := range good {
			files[name] = content
		}
		files[file] = text
		if got, err := fake(t, 1, files).Stats(); err == nil {
			t.Errorf("%s %q: got %+v and no error", file, text, got)
		}
	}
}

// fake is a group whose directory holds what a test says.
func fake(t *testing.T, version int, files map[string]string) *Group {
	t.Helper()
	d := dir{version: version, path: t.TempDir(), has: []string{memory, pids}}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(d.path, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &Group{dirs: []dir{d}}
}
