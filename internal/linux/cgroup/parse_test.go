package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorded returns testdata/NAME.cgroup and testdata/NAME.mountinfo.
func recorded(t testing.TB, name string) (self, mounts string) {
	t.Helper()
	var out [2]string
	for i, ext := range []string{".cgroup", ".mountinfo"} {
		b, err := os.ReadFile(filepath.Join("testdata", name+ext))
		if err != nil {
			t.Fatal(err)
		}
		out[i] = string(b)
	}
	return out[0], out[1]
}

func layoutOf(t testing.TB, name string) []hierarchy {
	t.Helper()
	selfText, mountText := recorded(t, name)
	self, err := parseSelf(selfText)
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := parseMounts(mountText)
	if err != nil {
		t.Fatal(err)
	}
	return layout(self, mounts)
}

func TestLayout(t *testing.T) {
	type found struct {
		Version        int
		Own, Top, Fail string
	}
	tests := []struct {
		name string
		want map[string]found
	}{
		{"v1", map[string]found{
			memory: {1, "/sys/fs/cgroup/memory/user.slice", "/sys/fs/cgroup/memory", ""},
			cpu:    {1, "/sys/fs/cgroup/cpu,cpuacct/user.slice", "/sys/fs/cgroup/cpu,cpuacct", ""},
			pids:   {Fail: "its hierarchy is not mounted"},
		}},
		{"v2", map[string]found{
			memory: {2, "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/vte.scope", "/sys/fs/cgroup", ""},
		}},
		{"hybrid", map[string]found{
			memory: {1, "/sys/fs/cgroup/memory/process_api/9f4a", "/sys/fs/cgroup/memory", ""},
			pids:   {1, "/sys/fs/cgroup/pids", "/sys/fs/cgroup/pids", ""},
		}},
		{"hybrid-memory2", map[string]found{
			memory: {2, "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified", ""},
			pids:   {1, "/sys/fs/cgroup/pids", "/sys/fs/cgroup/pids", ""},
		}},
		{"nested-v1", map[string]found{ // the mount's root is our own group
			memory: {1, "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory", ""},
			pids:   {1, "/sys/fs/cgroup/pids/inner", "/sys/fs/cgroup/pids", ""},
		}},
		{"nested-v2", map[string]found{ // a cgroup namespace: we are at its root
			memory: {2, "/sys/fs/cgroup", "/sys/fs/cgroup", ""},
		}},
		{"outside-v2", map[string]found{ // moved out of our own namespace's root
			memory: {Fail: `our group "/../other" is not visible at "/sys/fs/cgroup"`},
		}},
		{"spaces", map[string]found{
			memory: {2, "/mnt/my groups/a", "/mnt/my groups", ""},
		}},
		{"none", map[string]found{
			memory: {Fail: "the kernel has no such controller"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list := layoutOf(t, tt.name)
			for controller, want := range tt.want {
				var got found
				if h, err := find(list, controller); err != nil {
					got.Fail = err.Error()
				} else {
					got = found{h.version, h.own, h.top, ""}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", controller, diff)
				}
			}
		})
	}
}

func TestAncestors(t *testing.T) {
	h, err := find(layoutOf(t, "v2"), memory)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/vte.scope",
		"/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice",
		"/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service",
		"/sys/fs/cgroup/user.slice/user-1000.slice",
		"/sys/fs/cgroup/user.slice",
		"/sys/fs/cgroup",
	}
	if diff := cmp.Diff(want, h.ancestors()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"4:memory", "nonsense", "4::/a", "4:memory:relative", ":::"} {
		if _, err := parseSelf(text); err == nil {
			t.Errorf("parseSelf(%q) gave no error", text)
		}
	}
	for _, text := range []string{
		"36 32 0:33 / /sys/fs/cgroup/pids rw shared:1",
		"36 32 - cgroup cgroup rw,pids",
		"36 32 0:33 / relative rw - cgroup cgroup rw,pids",
		"36 32 0:33 / /sys/fs/cgroup/pids rw - cgroup",
	} {
		if _, err := parseMounts(text); err == nil {
			t.Errorf("parseMounts(%q) gave no error", text)
		}
	}
}

func TestSettings(t *testing.T) {
	l := Limits{MemoryMB: 64, PIDs: 32, CPUShares: 512, CPUs: 1.5}
	var got [3][]string
	for version := 1; version <= 2; version++ {
		for _, c := range l.controllers() {
			for _, s := range settings(c, version, l) {
				line := s.file + "=" + s.value
				if s.optional {
					line += " optional"
				}
				got[version] = append(got[version], line)
			}
		}
	}
	want := [3][]string{
		1: {
			"memory.limit_in_bytes=67108864", "memory.memsw.limit_in_bytes=67108864 optional", "pids.max=32",
			"cpu.shares=512", "cpu.cfs_period_us=100000", "cpu.cfs_quota_us=150000",
		},
		2: {
			"memory.max=67108864", "memory.swap.max=0 optional", "memory.oom.group=1 optional", "pids.max=32",
			"cpu.weight=50", "cpu.max=150000 100000",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLimitsRefused(t *testing.T) {
	nan := 0.0
	nan /= nan
	for _, l := range []Limits{
		{}, {MemoryMB: -1}, {MemoryMB: maxMemoryMB + 1}, {PIDs: -1}, {PIDs: maxPIDs + 1},
		{CPUShares: 1}, {CPUShares: maxShares + 1}, {CPUs: -1}, {CPUs: 0.001}, {CPUs: nan}, {CPUs: 1e9},
	} {
		if l.check() == nil {
			t.Errorf("%+v was accepted", l)
		}
	}
	if err := (Limits{MemoryMB: maxMemoryMB, PIDs: maxPIDs, CPUShares: maxShares, CPUs: minCPUs}).check(); err != nil {
		t.Errorf("limits at their bounds: %v", err)
	}
}

func TestClamp(t *testing.T) {
	got := Limits{MemoryMB: 100, PIDs: 5, CPUs: 2}.clamp(Limits{MemoryMB: 50, PIDs: 9, CPUShares: 7})
	if want := (Limits{MemoryMB: 50, PIDs: 5, CPUShares: 7, CPUs: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestParseStart(t *testing.T) {
	const after = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"
	for _, name := range []string{"(sh)", "(a b)", "(x) R 1 1 1 (", "()"} {
		got, err := parseStart("12 " + name + ")" + after)
		if err != nil || got != 4711 {
			t.Errorf("program name %q: got %d, %v; want 4711", name, got, err)
		}
	}
	for _, bad := range []string{"", "12", "12 (sh", "12 (sh) S 1", "12 (sh" + strings.Replace(after, "4711", "-1", 1)} {
		if _, err := parseStart(bad); err == nil {
			t.Errorf("parseStart(%q) gave no error", bad)
		}
	}
}

func TestGroupNames(t *testing.T) {
	o := owner{namespace: 4026531836, pid: 12, start: 99}
	for _, session := range []string{"a", "a-b", "1-2-3-4", "s_", "-"} {
		got, ok := parseName(o.groupName(session))
		if !ok || got != o {
			t.Errorf("session %q: got %+v, %v; want %+v", session, got, ok, o)
		}
	}
	for _, name := range []string{
		"", "bawn", "bawn-", "bawn-a", "bawn-12-99", "bawn-1-2-3", "bawn--1-2-3", "docker-a-1-2-3", "bawn-a-1-0x2-3", "bawn-a-1-2-03", "bawn-a/b-1-2-3",
	} {
		if o, ok := parseName(name); ok {
			t.Errorf("%q was taken for a group of %+v", name, o)
		}
	}
	for _, name := range []string{"", "a/b", "..", "a b", "é", strings.Repeat("a", maxNameBytes+1)} {
		if checkName(name) == nil {
			t.Errorf("name %q was accepted", name)
		}
	}
}

func FuzzParseSelf(f *testing.F) {
	for _, name := range []string{"v1", "v2", "hybrid", "nested-v1", "outside-v2"} {
		self, mounts := recorded(f, name)
		f.Add(self, mounts)
	}
	f.Fuzz(func(t *testing.T, selfText, mountText string) {
		self, err1 := parseSelf(selfText)
		mounts, err2 := parseMounts(mountText)
		if err1 != nil || err2 != nil {
			return
		}
		for _, h := range layout(self, mounts) {
			if h.own == "" {
				if h.why == "" {
					t.Errorf("hierarchy %+v has neither place nor reason", h)
				}
				continue
			}
			list := h.ancestors()
			if list[0] != h.own || !filepath.IsAbs(h.own) || strings.Contains(h.own, "/../") {
				t.Errorf("own group %q of %q", h.own, list)
			}
		}
	})
}

func FuzzParseName(f *testing.F) {
	f.Add("bawn-s1-4026531836-12-99")
	f.Add("bawn-a-1-+2-3")
	f.Fuzz(func(t *testing.T, name string) {
		o, ok := parseName(name)
		if ok && (o.pid < 0 || strings.ContainsAny(name, "/.\x00")) {
			t.Errorf("%q was taken for a group of %+v", name, o)
		}
	})
}

func FuzzParseFiles(f *testing.F) {
	f.Add("max 100000\n")
	f.Add("12\n13\n")
	f.Add("oom_kill 3\n")
	f.Add("9223372036854771712\n")
	f.Add("12 (sh) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20")
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parseMax(text); err == nil && n < 0 {
			t.Errorf("parseMax(%q) = %d", text, n)
		}
		if n, err := parseCPUMax(text); err == nil && !(n >= 0) {
			t.Errorf("parseCPUMax(%q) = %v", text, n)
		}
		if n, err := parseCounter(text, "oom_kill"); err == nil && n < 0 {
			t.Errorf("parseCounter(%q) = %d", text, n)
		}
		if n, err := parseCount(text); err == nil && n < 0 {
			t.Errorf("parseCount(%q) = %d", text, n)
		}
		list, err := parsePIDs(text)
		for _, pid := range list {
			if err == nil && pid < 0 {
				t.Errorf("parsePIDs(%q) = %v", text, list)
			}
		}
		_, _ = parseStart(text)
		_, _ = parseNamespace(text)
	})
}
