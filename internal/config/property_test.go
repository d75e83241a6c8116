package config

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
)

// wider lists what b permits and a does not. It looks at the effective result
// only and knows nothing of layers or rules: a second opinion on them.
func wider(a, b *Config) []string {
	x, y := a.Isolation("/w"), b.Isolation("/w")
	var out []string
	note := func(bad bool, format string, args ...any) {
		if bad {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	note(b.Mode > a.Mode, "mode %v", b.Mode)
	note(b.Autonomy > a.Autonomy, "autonomy %v", b.Autonomy)
	note(b.Provider != a.Provider, "provider")
	note(y.Network > x.Network, "network %v", y.Network)
	note(y.Caches > x.Caches, "caches %v", y.Caches)
	note(x.Protect && !y.Protect, "protect")
	for name, lists := range map[string][2][]string{
		"hosts": {x.Hosts, y.Hosts}, "env": {x.Env, y.Env}, "set": {x.SetEnv, y.SetEnv}, "devices": {x.Devices, y.Devices},
		"cache dirs": {x.CacheDirs, y.CacheDirs}, "open": {a.Open, b.Open}, "unprotected": {b.Protected, a.Protected},
	} {
		for _, extra := range minus(lists[1], lists[0]) {
			note(true, "%s %q", name, extra)
		}
	}
	for _, p := range samples(x, y) {
		note(accessAt(y, p) > accessAt(x, p), "%s: %v, was %v", p, accessAt(y, p), accessAt(x, p))
	}
	for _, l := range limits(x.Resources, y.Resources) {
		note(l.after == 0 && l.before != 0 || l.before != 0 && l.after > l.before, "%s %v, was %v", l.name, l.after, l.before)
	}
	note(y.Resources.CPUShares > max(1024, x.Resources.CPUShares), "cpu_shares")
	return out
}

// minus lists what is in a and not in b.
func minus(a, b []string) []string {
	in := map[string]bool{}
	for _, s := range b {
		in[s] = true
	}
	var out []string
	for _, s := range a {
		if !in[s] {
			out = append(out, s)
		}
	}
	return out
}

// samples are the paths at which two sets of mounts can differ.
func samples(isos ...bawn.Isolation) []string {
	var out []string
	for _, iso := range isos {
		for _, m := range iso.Mounts {
			out = append(out, m.Path, path.Join(m.Path, "x"), path.Join(m.Path, "a"), path.Dir(m.Path))
		}
	}
	return out
}

type limitPair struct {
	name          string
	before, after float64
}

func limits(a, b bawn.Resources) []limitPair {
	return []limitPair{
		{"cpus", a.CPUs, b.CPUs}, {"memory", float64(a.MemoryMB), float64(b.MemoryMB)}, {"tmp", float64(a.TmpMB), float64(b.TmpMB)},
		{"pids", float64(a.PIDs), float64(b.PIDs)}, {"files", float64(a.OpenFiles), float64(b.OpenFiles)},
		{"file size", float64(a.FileSizeMB), float64(b.FileSizeMB)}, {"timeout", a.Timeout.Seconds(), b.Timeout.Seconds()},
	}
}

// drawFile writes a random file of known keys with likely values.
func drawFile(t *rapid.T, label string, profiles []string) string {
	var b strings.Builder
	for _, k := range keys {
		if k.rule == never && k.path != "isolation.provider" || rapid.IntRange(0, 3).Draw(t, label+k.path) > 0 {
			continue
		}
		if strings.HasPrefix(k.path, "isolation.policy_profile") {
			fmt.Fprintf(&b, "%s = %q\n", k.path, rapid.SampledFrom(profiles).Draw(t, label+"profile"))
			continue
		}
		fmt.Fprintf(&b, "%s = %s\n", k.path, drawValue(t, label, k))
	}
	return b.String()
}

var drawn = map[string][]string{
	"isolation.hosts": {"a.org", "*.a.org", "b.a.org", "a.org:1", "*.b.a.org"}, "isolation.open": {"gh", "/a", "/a/b", "~/x"},
	"isolation.env":     {"A", "A*", "AB", "AB*", "A=1", "A=2", "LC_ALL", "LC_ALL=C", "PATH"},
	"isolation.devices": {"kvm", "fuse"}, "isolation.protected": {"x", "y"},
	"paths": {".", "a", "a/b", "A", "a/b/c", "..", "/", "/a", "/a/b", "/A/b", "/a/b/c", "~", "~/x", "/etc"},
}

func drawValue(t *rapid.T, label string, k *key) string {
	label += k.path + "value"
	switch {
	case k.kind == list:
		from := drawn[k.path]
		if from == nil {
			from = drawn["paths"]
		}
		return strings.ReplaceAll(fmt.Sprintf("%q", rapid.SliceOfN(rapid.SampledFrom(from), 0, 3).Draw(t, label)), `" "`, `", "`)
	case k.oneOf != nil:
		return fmt.Sprintf("%q", rapid.SampledFrom(k.oneOf).Draw(t, label))
	case k.kind == boolean:
		return fmt.Sprint(rapid.Bool().Draw(t, label))
	case k.kind == duration:
		return fmt.Sprintf(`"%dm"`, rapid.IntRange(1, 2000).Draw(t, label))
	case k.kind == text:
		return `"claude"`
	}
	return fmt.Sprint(rapid.SampledFrom([]int{16, 100, 1000, 1024, 2000, 4000}).Draw(t, label))
}

func drawFlags(t *rapid.T) Flags {
	var f Flags
	some := func(label string) bool { return rapid.IntRange(0, 3).Draw(t, "flag "+label) == 0 }
	pick := func(label string, from ...string) *string {
		if !some(label) {
			return nil
		}
		return ptr(rapid.SampledFrom(from).Draw(t, label))
	}
	paths := rapid.SliceOfN(rapid.SampledFrom(drawn["paths"]), 0, 2)
	f.Profile = pick("profile", "default", "strict", "readonly", "online", "mine")
	f.Net, f.Mode = pick("net", "none", "full"), pick("mode", bawn.ModeNames()...)
	f.Autonomy, f.Caches = pick("autonomy", "none", "full"), pick("caches", "shared", "read-only")
	f.RW, f.RO, f.Deny = paths.Draw(t, "rw"), paths.Draw(t, "ro"), paths.Draw(t, "deny")
	if some("memory") {
		f.Memory = ptr(int64(1500))
	}
	return f
}

// TestUntrustedProjectNeverWidens is the promise of this package: whatever the
// user's file, the project's file and the flags say, the session has nothing
// that it would not have without the project's file.
func TestUntrustedProjectNeverWidens(t *testing.T) {
	in := world(t)
	narrowed, refusals := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		user := drawFile(t, "user ", []string{"default", "strict", "readonly", "online", "mine"}) +
			"[profiles.mine]\nnetwork = 'allowlist'\nrw = ['/a/b']\nresources.memory_mb = 3000\n"
		project := drawFile(t, "project ", []string{"default", "strict", "readonly", "online", "mine", "theirs"}) +
			"[profiles.theirs]\nresources.pids_limit = 16\n"
		in.Flags = drawFlags(t)
		writeFile(t, in.User(), user)
		writeFile(t, in.projectFile(), "")
		before, err := Load(in)
		if err != nil {
			t.Fatalf("user's file:\n%s\n%v", user, err)
		}
		writeFile(t, in.projectFile(), project)
		after, err := Load(in)
		if err != nil {
			if errs := (Errors)(nil); !errors.As(err, &errs) {
				t.Fatalf("%T: %v", err, err)
			}
			refusals++
			return
		}
		if w := wider(before, after); len(w) > 0 {
			t.Fatalf("user:\n%s\nproject:\n%s\nflags: %+v\nwider: %v", user, project, in.Flags, w)
		}
		if len(wider(after, before)) > 0 {
			narrowed++
		}
	})
	if narrowed == 0 || refusals == 0 {
		t.Errorf("%d files narrowed, %d were refused: the property was not tried", narrowed, refusals)
	}
}

// drawNarrowing writes a file in which most keys narrow, so that the property
// is not vacuous: single lines, each of which may be refused by itself.
func drawNarrowing(t *rapid.T) []string {
	return strings.Split(strings.TrimSpace(drawFile(t, "line ", []string{"strict", "readonly", "default"})), "\n")
}

// TestEachLineNeverWidens tries the lines of a file one by one, so that one
// refused line does not hide the others.
func TestEachLineNeverWidens(t *testing.T) {
	in := world(t)
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		writeFile(t, in.User(), drawFile(t, "user ", []string{"default", "strict", "online"}))
		in.Flags = drawFlags(t)
		if in.Flags.Profile != nil && *in.Flags.Profile == "mine" {
			in.Flags.Profile = nil
		}
		writeFile(t, in.projectFile(), "")
		before, err := Load(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range drawNarrowing(t) {
			writeFile(t, in.projectFile(), line)
			after, err := Load(in)
			if err != nil {
				continue
			}
			tried++
			if w := wider(before, after); len(w) > 0 {
				t.Fatalf("project: %s\nflags: %+v\nwider: %v", line, in.Flags, w)
			}
		}
	})
	if tried < 50 {
		t.Errorf("%d lines were accepted: the property was not tried", tried)
	}
}

func writeFile(t *rapid.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(path.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTheOracleSees checks wider itself: each of these widens one thing.
func TestTheOracleSees(t *testing.T) {
	for _, line := range []string{
		"mode='permissive'", "autonomy='full'", "isolation.network='full'", "isolation.hosts=['x.org']", "isolation.rw=['/x']", "isolation.open=['ssh']",
		"isolation.env=['X']", "isolation.env=['X=1']", "isolation.caches='shared'", "isolation.cache_dirs=['/x']", "isolation.devices=['fuse']",
		"isolation.protect=false", "isolation.resources.memory_mb=20000", "isolation.resources.cpu_shares=2000", "isolation.provider='landlock'",
		"isolation.resources.timeout='48h'", "isolation.resources.tmp_mb=9999", "isolation.resources.open_files=20000",
	} {
		in := world(t)
		before := mustLoad(t, in)
		put(t, in.User(), line)
		if len(wider(before, mustLoad(t, in))) == 0 {
			t.Errorf("%s is not seen as wider", line)
		}
	}
}
