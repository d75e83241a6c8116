package config

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
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
	note(b.Provider != a.Provider || b.Runsc() != a.Runsc() || b.GVisorUnprotected() && !a.GVisorUnprotected() || b.FallbackToHost() && !a.FallbackToHost(), "provider")
	note(y.DockerAPI && !x.DockerAPI, "docker api")
	note(!cmp.Equal(a.Docker(), b.Docker(), cmpopts.IgnoreFields(DockerOptions{}, "MemorySwapMB")) || b.Docker().MemorySwapMB > a.Docker().MemorySwapMB, "docker options")
	note(y.Network > x.Network, "network %v", y.Network)
	note(y.Caches > x.Caches, "caches %v", y.Caches)
	note(x.Protect && !y.Protect, "protect")
	for name, lists := range map[string][2][]string{
		"host ports": {x.Egress.HostPorts, y.Egress.HostPorts}, "ports": {x.Egress.Ports, y.Egress.Ports}, "secrets": {x.Egress.Secrets, y.Egress.Secrets}, "env": {x.Env, y.Env}, "set": {x.SetEnv, y.SetEnv}, "devices": {x.Devices, y.Devices},
		"cache dirs": {x.CacheDirs, y.CacheDirs}, "open": {a.Open, b.Open}, "not protected": {b.Protected, a.Protected}, "unprotected": {x.Unprotected, y.Unprotected},
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
	for _, extra := range widerEgress(x.Egress, y.Egress) {
		note(true, "%s", extra)
	}
	note(a.Split().On && !b.Split().On, "not split")
	note(b.Split().Workspace > a.Split().Workspace, "the agent's workspace")
	for _, extra := range widerEgress(ofModels(a), ofModels(b)) {
		note(true, "models: %s", extra)
	}
	for _, extra := range minus(b.Split().HostPorts, a.Split().HostPorts) {
		note(true, "port %q of a model", extra)
	}
	note(y.Resources.CPUShares > max(1024, x.Resources.CPUShares), "cpu_shares")
	return out
}

// ofModels is what the agent of a split session reaches.
func ofModels(c *Config) bawn.Egress { return bawn.Egress{Hosts: c.Split().Hosts} }

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

// widerEgress lists what y reaches and x does not, over all that the drawn
// entries can tell apart.
func widerEgress(x, y bawn.Egress) []string {
	var out []string
	if x.Proxy != y.Proxy || y.SSHAgent && !x.SSHAgent || y.Ask > x.Ask || x.MaxConns > 0 && (y.MaxConns == 0 || y.MaxConns > x.MaxConns) || x.MaxOutMB > 0 && (y.MaxOutMB == 0 || y.MaxOutMB > x.MaxOutMB) ||
		stated(y.MaxUses, bawn.UsualUses) > stated(x.MaxUses, bawn.UsualUses) || stated(y.MaxLentMB, bawn.UsualLentMB) > stated(x.MaxLentMB, bawn.UsualLentMB) {
		out = append(out, "proxy, ask_timeout or limits of egress")
	}
	before, after := mustCompile(x), mustCompile(y)
	for _, name := range []string{"a.org", "b.a.org", "c.b.a.org", "d.a.org", "h", "x.org", "pypi.org", "github.com"} {
		for _, port := range []uint16{1, 22, 80, 443} {
			for _, request := range []string{"GET /", "POST /", "GET /x", "GET /x/y", "POST /x/y/z", "fetch x", "fetch y", "push x refs/heads/y", "push x refs/heads/z", "anything"} {
				if reaches(after, name, port, request) && !reaches(before, name, port, request) {
					out = append(out, fmt.Sprintf("%s:%d %s", name, port, request))
				}
			}
		}
	}
	return out
}

func mustCompile(e bawn.Egress) *netrule.Rules {
	r, err := netrule.Compile(e)
	if err != nil {
		panic(err)
	}
	return r
}

// reaches is the meaning of the entries, written down once more: HTTP entries
// say which requests a host takes, git entries which operations of git, and a
// host without either takes anything.
func reaches(r *netrule.Rules, name string, port uint16, request string) bool {
	_, open := r.Hosts.Match(name, port)
	f := strings.Fields(request)
	http, git := slices.Collect(r.HTTP(name, port)), slices.Collect(r.Git(name, port))
	switch {
	case f[0] == "fetch" && len(git) > 0:
		return slices.ContainsFunc(git, func(g netrule.Git) bool { return g.Fetches(name, port, f[1]) })
	case f[0] == "push" && len(git) > 0:
		return slices.ContainsFunc(git, func(g netrule.Git) bool { return g.Pushes(name, port, f[1], f[2]) })
	case len(f) == 2 && len(http) > 0:
		return slices.ContainsFunc(http, func(h netrule.HTTP) bool { return h.Match(name, port, f[0], f[1]) })
	case len(http) > 0 || f[0] == "anything" && len(git) > 0:
		return false
	}
	return open
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
func drawFile(t *rapid.T, label string, profiles []string, odds int) string {
	var b strings.Builder
	for _, k := range keys {
		if k.rule == never && k.path != "isolation.provider" || rapid.IntRange(1, odds).Draw(t, label+k.path) > 1 {
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
	"isolation.hosts":      {"a.org", "*.a.org", "b.a.org", "a.org:1", "*.b.a.org", "a.org:443", "h"},
	"isolation.http":       {"a.org GET /", "a.org * /**", "b.a.org GET,POST /x/**", "*.a.org GET /x/*", "a.org:443 GET /x", "h GET /", "a.org:1 * /", "*.b.a.org GET /"},
	"isolation.git":        {"a.org fetch", "a.org fetch x", "b.a.org push x refs/heads/*", "b.a.org push x refs/heads/y", "h fetch"},
	"isolation.host_ports": {"1", "2:1"}, "isolation.ports": {"1", "2:1"}, "isolation.secrets": {"*", "A", "b"},
	"isolation.models":               {"a.org", "*.a.org", "b.a.org:443", "1", "2:1"},
	"isolation.open":                 {"gh", "/a", "/a/b", "~/x"},
	"isolation.env":                  {"A", "A*", "AB", "AB*", "A=1", "A=2", "LC_ALL", "LC_ALL=C", "PATH"},
	"isolation.docker_options.image": {"a", "b", "a@" + digest}, "isolation.docker_options.workspace": {"/workspace", "/src"},
	"isolation.docker_options.extra_args": {"--init", "--privileged"},
	"isolation.devices":                   {"kvm", "fuse"}, "isolation.protected": {"x", "y"}, "isolation.copy_agents": {"claude", "sh"}, "isolation.unprotect": {".npmrc", "mise.toml", ".VSCode/"},
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
		return fmt.Sprintf(`"%dm"`, rapid.IntRange(1, int(min(2000, k.max/60))).Draw(t, label))
	case k.kind == text && drawn[k.path] != nil:
		return fmt.Sprintf("%q", rapid.SampledFrom(drawn[k.path]).Draw(t, label))
	case k.kind == text:
		return map[bool]string{true: `"http://proxy.corp:1"`, false: `"claude"`}[strings.HasSuffix(k.path, "proxy")]
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
	f.Net, f.Mode = pick("net", "none", "allowlist", "full"), pick("mode", bawn.ModeNames()...)
	f.Autonomy, f.Caches = pick("autonomy", "none", "full"), pick("caches", "shared", "read-only")
	if f.Net == nil || *f.Net == "allowlist" {
		rules := func(key string) []string {
			return rapid.SliceOfN(rapid.SampledFrom(drawn[key]), 0, 1).Draw(t, "flag "+key)
		}
		f.Hosts, f.HTTP, f.Git = rules("isolation.hosts"), rules("isolation.http"), rules("isolation.git")
	}
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
		user := drawFile(t, "user ", []string{"default", "strict", "readonly", "online", "mine"}, 4) +
			"[profiles.mine]\nnetwork = 'allowlist'\nrw = ['/a/b']\nresources.memory_mb = 3000\n"
		project := drawFile(t, "project ", []string{"default", "strict", "readonly", "online", "mine", "theirs"}, 16) +
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
	return strings.Split(strings.TrimSpace(drawFile(t, "line ", []string{"strict", "readonly", "default"}, 4)), "\n")
}

// TestEachLineNeverWidens tries the lines of a file one by one, so that one
// refused line does not hide the others.
func TestEachLineNeverWidens(t *testing.T) {
	in := world(t)
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		writeFile(t, in.User(), drawFile(t, "user ", []string{"default", "strict", "online"}, 4))
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
		"isolation.protect=false", "isolation.ssh_agent=true", "isolation.resources.memory_mb=20000", "isolation.resources.cpu_shares=2000", "isolation.provider='landlock'",
		"isolation.http=['x.org GET /']", "isolation.git=['x.org fetch']", "isolation.host_ports=['1']", "isolation.ports=['1']", "isolation.secrets=['x']",
		"isolation.docker_api=true", "isolation.allow_fallback_to_host=true", "isolation.runsc='/x'", "isolation.gvisor_accept_unprotected=true", "isolation.docker_options.image='x'", "isolation.docker_options.extra_args=['--init']",
		"isolation.docker_options.allow_args=['--privileged']", "isolation.docker_options.host='/x'", "isolation.docker_options.accept_escapes=true", "isolation.docker_options.runtime='x'", "isolation.docker_options.workspace='/x'",
		"isolation.models=['x.org']", "isolation.models=['1']",
		"isolation.ask_timeout='5m'", "isolation.upstream_proxy='http://p:1'", "isolation.resources.timeout='48h'", "isolation.resources.tmp_mb=9999", "isolation.resources.open_files=20000",
	} {
		in := world(t)
		before := mustLoad(t, in)
		put(t, in.User(), line)
		if len(wider(before, mustLoad(t, in))) == 0 {
			t.Errorf("%s is not seen as wider", line)
		}
	}
}

// stated is a budget, or the usual one where none is stated.
func stated(n, usual int64) int64 {
	if n == 0 {
		return usual
	}
	return n
}
