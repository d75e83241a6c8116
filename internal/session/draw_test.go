package session

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
)

// What sessions are drawn from: small, so that two of them have much in common.
var (
	drawnPaths   = []string{"/", "/w", "/w/a", "/w/a/b", "/w-b", "/h", "/h/.cache", "/h/.cache/go", "/tmp", "/tmp/x"}
	drawnHosts   = []string{"*.a.org", "b.a.org", "*.b.a.org", "c.b.a.org", "*.c.b.a.org", "d.org", "10.0.0.0/8", "10.0.0.1"}
	drawnPorts   = []string{"", "", ":443", ":80", ":1-100", ":*"}
	drawnHTTP    = []string{"* /**", "GET /**", "GET,PUT /v1/**", "GET /v1/x", "PUT /v1/x", "POST /t/app/git-upload-pack"}
	drawnGit     = []string{"fetch", "fetch t/*", "fetch t/app", "push t/app refs/heads/**", "push t/* refs/heads/x/*", "push t/app refs/heads/x/1"}
	drawnEnv     = []string{"A*", "AB", "AB*", "ABC", "Z"}
	drawnSetEnv  = []string{"AB=1", "AB=2", "AB=", "ABC=1", "ABD=1", "Z=1"}
	drawnSecrets = []string{"*", "npm", "gh"}
	drawnPairs   = []string{"1", "1:2", "2", "3:1"}
	drawnProxies = []string{"", "", "", "http://p.corp:3128", "http://q.corp:3128"}
	drawnNames   = []string{"mise.toml", ".npmrc", ".vscode"}
	drawnDevices = []string{"kvm", "dri/renderD128", "dri"}
)

func some(t *rapid.T, what string, from []string) []string {
	return rapid.SliceOfN(rapid.SampledFrom(from), 0, 3).Draw(t, what)
}

func drawSession(t *rapid.T, id string) bawn.Session {
	iso := bawn.Isolation{
		Workspace: rapid.SampledFrom([]string{"", "/w", "/w/a", "/h"}).Draw(t, "workspace"),
		Mounts:    drawMounts(t), MaskEnv: rapid.Bool().Draw(t, "mask env"), LogPrograms: rapid.Bool().Draw(t, "log programs"), Caches: bawn.CacheMode(rapid.IntRange(0, 2).Draw(t, "caches")), CacheDirs: some(t, "cache dirs", []string{"/h/.cache", "/h/.cache/go", "/w/a"}),
		Network: rapid.SampledFrom([]bawn.NetworkMode{bawn.NetworkNone, bawn.NetworkAllowlist, bawn.NetworkAllowlist, bawn.NetworkAllowlist, bawn.NetworkAllowlist, bawn.NetworkFull}).Draw(t, "network"),
		Egress:  drawEgress(t), Env: some(t, "env", drawnEnv), SetEnv: some(t, "set", drawnSetEnv),
		Devices: some(t, "devices", drawnDevices), Protect: rapid.Bool().Draw(t, "protect"), Unprotected: some(t, "unprotected", drawnNames), DockerAPI: rapid.Bool().Draw(t, "docker_api"),
		Resources: bawn.Resources{
			CPUShares: rapid.SampledFrom([]int64{0, 2, 1024, 4096}).Draw(t, "shares"), CPUs: rapid.SampledFrom([]float64{0, 0.5, 2}).Draw(t, "cpus"),
			MemoryMB: rapid.Int64Range(0, 2).Draw(t, "memory"), Timeout: time.Duration(rapid.IntRange(0, 2).Draw(t, "timeout")) * time.Hour,
			TmpMB: rapid.Int64Range(0, 2).Draw(t, "tmp"), PIDs: rapid.Int64Range(0, 2).Draw(t, "pids"),
			OpenFiles: rapid.Int64Range(0, 2).Draw(t, "files"), FileSizeMB: rapid.Int64Range(0, 2).Draw(t, "file size"),
		},
	}
	return bawn.Session{
		ID: id, Mode: bawn.Mode(rapid.IntRange(0, 5).Draw(t, "mode")), Autonomy: bawn.Autonomy(rapid.IntRange(0, 3).Draw(t, "autonomy")),
		Provider: rapid.SampledFrom([]string{"", "none", "native", "native"}).Draw(t, "provider"), Isolation: iso,
	}
}

func drawMounts(t *rapid.T) []bawn.Mount {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) bawn.Mount {
		return bawn.Mount{Path: rapid.SampledFrom(drawnPaths).Draw(t, "path"), Access: bawn.Access(rapid.IntRange(0, 3).Draw(t, "access"))}
	}), 0, 4).Draw(t, "mounts")
}

func drawEgress(t *rapid.T) bawn.Egress {
	host := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom(drawnHosts).Draw(t, "host") + rapid.SampledFrom(drawnPorts).Draw(t, "ports")
	})
	with := func(rest []string) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string { return host.Draw(t, "host") + " " + rapid.SampledFrom(rest).Draw(t, "rest") })
	}
	return bawn.Egress{
		Hosts: rapid.SliceOfN(host, 0, 3).Draw(t, "hosts"), HTTP: rapid.SliceOfN(with(drawnHTTP), 0, 2).Draw(t, "http"),
		Git: rapid.SliceOfN(with(drawnGit), 0, 2).Draw(t, "git"), Closed: rapid.SliceOfN(host, 0, 1).Draw(t, "closed"),
		HostPorts: some(t, "host ports", drawnPairs), Ports: some(t, "ports", drawnPairs), Secrets: some(t, "secrets", drawnSecrets),
		SSHAgent: rapid.Bool().Draw(t, "ssh agent"), Only: rapid.Bool().Draw(t, "only"),
		Proxy: rapid.SampledFrom(drawnProxies).Draw(t, "proxy"), Ask: time.Duration(rapid.IntRange(0, 2).Draw(t, "ask")) * time.Minute,
		MaxConns: rapid.Int64Range(0, 2).Draw(t, "conns"), MaxOutMB: rapid.Int64Range(0, 2).Draw(t, "out"),
		MaxUses: rapid.Int64Range(0, 2).Draw(t, "uses"), MaxLentMB: rapid.Int64Range(0, 2).Draw(t, "lent"),
	}
}

// A meaning is what a session can do, found by trying: it knows nothing of how
// the package works.
type meaning struct {
	places    map[string]string
	env       map[string]string
	network   []bawn.Verdict
	things    map[string]bool // secrets, ports, devices
	limits    []float64
	unguarded bool
	unmasked  bool
	unlogged  bool
	workspace string
	trust     bawn.Session
	provider  string
}

func meaningOf(s bawn.Session) meaning {
	iso := s.Isolation
	m := meaning{places: map[string]string{}, env: map[string]string{}, things: map[string]bool{}, unguarded: !iso.Protect, unmasked: !iso.MaskEnv, unlogged: !iso.LogPrograms, workspace: iso.Workspace, trust: s, provider: s.Provider}
	for _, p := range drawnPaths {
		m.places[p], m.places[p+"/y"] = place(iso, p), place(iso, strings.TrimSuffix(p, "/")+"/y")
	}
	for _, n := range []string{"A", "AB", "ABC", "ABCD", "ABD", "B", "Z", "ZZ"} {
		m.env[n] = variable(iso, n)
	}
	for _, d := range iso.Devices {
		m.things["device "+d] = true
	}
	m.things["docker api"] = iso.DockerAPI
	for _, n := range iso.Unprotected {
		m.things["unprotect "+n] = true
	}
	r, e := iso.Resources, iso.Egress
	shares := float64(r.CPUShares)
	if shares == 0 {
		shares = 1024
	}
	m.limits = []float64{shares, most(r.CPUs), most(float64(r.MemoryMB)), most(float64(r.Timeout)), most(float64(r.TmpMB)), most(float64(r.PIDs)), most(float64(r.OpenFiles)), most(float64(r.FileSizeMB))}
	m.network = network(iso)
	switch iso.Network {
	case bawn.NetworkNone:
		m.limits = append(m.limits, 0, 0, 0, 0, 0)
	case bawn.NetworkFull:
		m.limits = append(m.limits, slices.Repeat([]float64{math.Inf(1)}, 5)...)
		m.things["what no entry names"] = true
		for _, p := range slices.Concat(drawnPairs, parent().Isolation.Egress.HostPorts, parent().Isolation.Egress.Ports) {
			m.things["host port "+p], m.things["port "+p] = true, true
		}
	default:
		m.limits = append(m.limits, float64(e.Ask), most(float64(e.MaxConns)), most(float64(e.MaxOutMB)), float64(cmp.Or(e.MaxUses, bawn.UsualUses)), float64(cmp.Or(e.MaxLentMB, bawn.UsualLentMB)))
		m.things["ssh agent"] = e.SSHAgent
		m.things["what no entry names"] = !e.Only
		for _, n := range []string{"npm", "gh", "other"} {
			m.things["secret "+n] = slices.Contains(e.Secrets, n) || slices.Contains(e.Secrets, "*")
		}
		last := map[string]string{}
		for _, p := range e.HostPorts {
			guest, _, _ := strings.Cut(p, ":")
			last[guest] = p
		}
		for _, p := range last {
			m.things["host port "+p] = true
		}
		for _, p := range e.Ports {
			m.things["port "+p] = true
		}
	}
	return m
}

func most(limit float64) float64 {
	if limit == 0 {
		return math.Inf(1)
	}
	return limit
}

// place finds the longest entry: caches first, then mounts.
func place(iso bawn.Isolation, p string) string {
	best, found := "default", ""
	try := func(entry, says string) {
		if entry == "/" || p == entry || strings.HasPrefix(p, entry+"/") {
			if len(entry) >= len(found) {
				best, found = says, entry
			}
		}
	}
	for _, c := range iso.CacheDirs {
		if iso.Caches != bawn.CacheReadOnly {
			try(c, map[bawn.CacheMode]string{bawn.CachePrivate: "cache", bawn.CacheShared: "read-write"}[iso.Caches])
		}
	}
	for _, m := range iso.Mounts {
		try(m.Path, m.Access.String())
	}
	return best
}

// lesser lists what is no more than each place.
var lesser = map[string][]string{
	"hidden": {"hidden"}, "default": {"hidden", "default"}, "read-only": {"hidden", "default", "read-only"}, "private": {"hidden", "private"},
	"cache": {"hidden", "private", "cache"}, "read-write": {"hidden", "default", "read-only", "private", "cache", "read-write"},
}

// variable returns a name's value in the guest, as a provider makes it.
func variable(iso bawn.Isolation, name string) string {
	value := ""
	for _, p := range iso.Env {
		if p == name || strings.HasSuffix(p, "*") && strings.HasPrefix(name, p[:len(p)-1]) {
			value = "the host's " + name
		}
	}
	for _, kv := range iso.SetEnv {
		if n, v, _ := strings.Cut(kv, "="); n == name {
			value = v
		}
	}
	return value
}

// noMore reports whether a can do nothing that b can't, or what it can.
func (a meaning) noMore(b meaning) (string, bool) {
	for p, says := range a.places {
		if !slices.Contains(lesser[b.places[p]], says) {
			return p + " is " + says + ", not " + b.places[p], false
		}
	}
	for n, v := range a.env {
		if v != "" && b.env[n] != v {
			return n + " is " + v + ", not " + b.env[n], false
		}
	}
	for i, v := range a.network {
		if v > b.network[i] {
			what := attempts[i/3%len(attempts)] // behind three proxies
			return fmt.Sprintf("%s %q: %s, not %s", what.Resource, what.Args, v, b.network[i]), false
		}
	}
	for what, has := range a.things {
		if has && !b.things[what] {
			return what, false
		}
	}
	for i, limit := range a.limits {
		if limit > b.limits[i] {
			return "limit", false
		}
	}
	inside := a.workspace == "" || a.workspace == b.workspace || b.workspace != "" && strings.HasPrefix(a.workspace, b.workspace+"/")
	providers := []string{"native", "none", ""}
	return "protection, workspace, trust or provider", (!a.unguarded || b.unguarded) && (!a.unmasked || b.unmasked) && (!a.unlogged || b.unlogged) && inside && lessTrusted(a.trust, b.trust) &&
		slices.Index(providers, a.provider) <= slices.Index(providers, b.provider)
}

// lessTrusted reports whether the meet of both is a's mode and autonomy.
// TestTrustIsWhatThePolicyDoes compares the meets with the policy.
func lessTrusted(a, b bawn.Session) bool {
	mode, autonomy, err := meetTrust(a, b)
	return err == nil && mode == a.Mode && autonomy == a.Autonomy
}
