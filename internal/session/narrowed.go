package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// Why something is not given.
const (
	whyParent = "the session that starts this one has less"
	whyProxy  = "the sessions are behind different proxies"
)

// A report collects what was asked for and not given.
type report []Narrowed

// value reports a value that is another one than asked.
func (r *report) value(attribute string, asked, given any) {
	if a, g := fmt.Sprint(asked), fmt.Sprint(given); a != g {
		*r = append(*r, Narrowed{Attribute: attribute, Asked: a, Given: g, Why: whyParent})
	}
}

// list reports entries that are not given in full; parts tells which part is.
func (r *report) list(attribute string, asked, given []string, covers func(given, asked string) bool, parts func(given, asked string) bool) {
	for _, a := range asked {
		if slices.ContainsFunc(given, func(g string) bool { return covers(g, a) }) {
			continue
		}
		var some []string
		for _, g := range given {
			if parts(g, a) {
				some = append(some, g)
			}
		}
		*r = append(*r, Narrowed{Attribute: attribute, Asked: a, Given: strings.Join(some, " "), Why: whyParent})
	}
}

func equal(a, b string) bool { return a == b }

func inside(given, asked string) bool { return covers(asked, given) }

// narrowed lists what of asked is not given.
func narrowed(parent, asked, given bawn.Session) []Narrowed {
	var r report
	a, g := asked.Isolation, given.Isolation
	r.value("mode", asked.Mode, given.Mode)
	r.value("autonomy", asked.Autonomy, given.Autonomy)
	if asked.Provider != "" {
		r.value("provider", asked.Provider, given.Provider)
	}
	r.value("workspace", a.Workspace, g.Workspace)
	r.places(a, g)
	r.network(parent.Isolation, a, g)
	r.list("env", notSet(a), g.Env, covers, inside)
	r.list("env", textsOf(setOf(a)), g.SetEnv, equal, equal)
	r.resources(a.Resources, g.Resources)
	r.list("devices", a.Devices, g.Devices, equal, equal)
	r.value("protect", a.Protect, g.Protect)
	r.list("unprotect", a.Unprotected, g.Unprotected, equal, equal)
	r.value("mask_env", a.MaskEnv, g.MaskEnv)
	r.value("log_programs", a.LogPrograms, g.LogPrograms)
	r.value("docker_api", a.DockerAPI, g.DockerAPI)
	return r
}

// notSet lists the names to pass, without those that are set anyway.
func notSet(iso bawn.Isolation) []string {
	set := setOf(iso)
	return slices.DeleteFunc(slices.Clone(iso.Env), func(n string) bool {
		_, is := set[n]
		return is
	})
}

func textsOf(set map[string]string) []string {
	var out []string
	for n, v := range set {
		if v != "" {
			out = append(out, n+"="+v)
		}
	}
	return sortedSet(out)
}

func (r *report) places(asked, given bawn.Isolation) {
	ta, tg := tableOf(asked), tableOf(given)
	for _, p := range paths(ta, tg) {
		va, _ := ta.at(p)
		if vg, _ := tg.at(p); va != vg {
			*r = append(*r, Narrowed{Attribute: "mounts", Path: p, Asked: p + " " + powerNames[va], Given: powerNames[vg], Why: whyParent})
		}
	}
}

func (r *report) network(parent, asked, given bawn.Isolation) {
	r.value("network", asked.Network, given.Network)
	a, g := asked.Egress, given.Egress
	switch {
	case asked.Network != bawn.NetworkAllowlist:
		return
	case given.Network == bawn.NetworkNone && parent.Network == bawn.NetworkAllowlist:
		*r = append(*r, Narrowed{Attribute: "egress.proxy", Asked: proxyOf(a), Why: whyProxy})
		return
	case given.Network == bawn.NetworkNone:
		return
	}
	r.reach(reachOf(a), reachOf(g))
	r.list("egress.host_ports", hostPorts(a), g.HostPorts, equal, equal)
	r.list("egress.ports", published(a), g.Ports, equal, equal)
	r.list("egress.secrets", a.Secrets, g.Secrets, covers, inside)
	r.value("egress.ssh_agent", a.SSHAgent, g.SSHAgent)
	r.value("egress.only", a.Only, g.Only)
	r.value("egress.ask", a.Ask, g.Ask)
	r.value("egress.max_connections", a.MaxConns, g.MaxConns)
	r.value("egress.max_out_mb", a.MaxOutMB, g.MaxOutMB)
	r.value("egress.max_secret_requests", a.MaxUses, g.MaxUses)
	r.value("egress.max_secret_out_mb", a.MaxLentMB, g.MaxLentMB)
}

// reach reports every cell of which less is given than asked.
func (r *report) reach(asked, given reach) {
	for _, name := range names(asked, given) {
		for _, cell := range cells(name, asked, given) {
			if a, g := asked.of(cell), given.of(cell); !a.same(g) {
				*r = append(*r, Narrowed{Attribute: "egress", Asked: a.text(cell.String()), Given: g.text(cell.String()), Why: whyParent})
			}
		}
	}
}

func (s saying) text(host string) string {
	var out []string
	switch {
	case s.closed:
		return host + " closed"
	case s.silent():
		return host + " not named"
	case s.host:
		out = append(out, host)
	}
	return strings.Join(append(append(out, sorted(s.http)...), sorted(s.git)...), "; ")
}

func (r *report) resources(a, g bawn.Resources) {
	r.value("cpu_shares", meetShares(a.CPUShares, a.CPUShares), g.CPUShares)
	r.value("cpus", a.CPUs, g.CPUs)
	r.value("memory_mb", a.MemoryMB, g.MemoryMB)
	r.value("tmp_mb", a.TmpMB, g.TmpMB)
	r.value("pids_limit", a.PIDs, g.PIDs)
	r.value("open_files", a.OpenFiles, g.OpenFiles)
	r.value("file_size_mb", a.FileSizeMB, g.FileSizeMB)
	r.value("timeout", a.Timeout, g.Timeout)
}
