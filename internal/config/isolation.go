package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/devices"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/protect"
)

// Isolation returns the isolation of a session in the workspace. Where the
// workspace is not the one the configuration was loaded for, paths below that
// one move along.
//
// An uncovered place is read-only. The planner closes credentials and files
// that the host executes later, see Config.Open and Config.Protected.
func (c *Config) Isolation(workspace string) bawn.Isolation {
	move := func(p string) string { return rebase(p, c.st.paths.workspace, workspace) }
	pass, set := c.st.env()
	return bawn.Isolation{
		Profile: c.Profile, Workspace: workspace,
		Mounts:  c.mounts(move),
		Network: bawn.NetworkMode(c.st.rank(find("isolation.network"))),
		Egress:  c.st.egress(),
		Env:     pass, SetEnv: set,
		Caches:      bawn.CacheMode(c.st.rank(find("isolation.caches"))),
		CacheDirs:   each(c.st.list("cache_dirs"), move),
		Resources:   c.st.resources(),
		Devices:     devices.Expand(devices.Dir, c.st.list("devices")),
		Protect:     c.st.scalars["isolation.protect"].value == true,
		Unprotected: c.st.list("unprotect"),
		MaskEnv:     c.maskEnv(),
		LogPrograms: c.st.scalars["isolation.log_programs"].value == true,
		DockerAPI:   c.st.scalars["isolation.docker_api"].value == true,
	}
}

// WhileAway is the fate of a question that nobody could answer: "deny", "commands"
// or "wait".
func (c *Config) WhileAway() string {
	text, _ := c.st.scalars["isolation.while_away"].value.(string)
	return text
}

// maskEnv reports whether the secrets of the workspace's files are masked.
func (c *Config) maskEnv() bool {
	switch c.st.scalars["isolation.mask_env"].value {
	case "on":
		return true
	case "off":
		return false
	}
	return c.Mode == bawn.ModeStrict
}

// Copy reports whether a session of an agent works on a copy of its workspace. A flag that
// says no counts for every agent.
func (c *Config) Copy(agent string) bool {
	s := c.st.scalars["isolation.copy"]
	return s.value == true || s.at.Layer != Command && slices.Contains(c.st.list("copy_agents"), agent)
}

// Workspace is the one that the configuration was loaded for.
func (c *Config) Workspace() string { return c.st.paths.workspace }

func rebase(p, from, to string) string {
	if !fspath.Below(p, from) {
		return p
	}
	return to + strings.TrimPrefix(p, from)
}

func each(list []string, f func(string) string) []string {
	for i := range list {
		list[i] = f(list[i])
	}
	return list
}

// effective returns each path's access: that of the trusted layers, closed
// further by an untrusted project.
func (c *Config) effective() map[string]reach {
	all := maps.Clone(c.st.reaches)
	for _, n := range c.st.narrowed {
		if old, ok := all[n.path]; c.st.counts(n) && (!ok || n.access < old.access) {
			all[n.path] = n.reach
		}
	}
	for _, path := range c.st.shut {
		all[path] = reach{bawn.Hidden, Place{Via: protect.ClosedHome}}
	}
	return all
}

// mounts returns what each path gives, Bawn's own directories hidden.
func (c *Config) mounts(move func(string) string) []bawn.Mount {
	all := c.effective()
	c.st.keepPrivate(all)
	for _, own := range c.st.paths.own {
		all[own] = reach{bawn.Hidden, Place{Via: "bawn's own state"}}
	}
	var out []bawn.Mount
	for path, r := range all {
		if c.Mode == bawn.ModePlan && !r.at.ofAgent() { // look, do not touch
			r.access = min(r.access, bawn.ReadOnly)
		}
		out = append(out, bawn.Mount{Path: path, Access: r.access, Why: c.why(path, r)})
	}
	slices.SortFunc(out, func(a, b bawn.Mount) int { return cmp.Compare(a.Path, b.Path) })
	out = append(out, c.patterns(out)...)
	for i := range out {
		out[i].Path = move(out[i].Path)
	}
	slices.SortFunc(out, func(a, b bawn.Mount) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// AgentState begins the reason of a mount in which an agent keeps its own files.
const AgentState = "the state of "

func (c *Config) why(path string, r reach) string {
	switch {
	case path == c.st.paths.workspace && r.at == (Place{}):
		return "workspace"
	case slices.Contains(c.st.paths.own, path) || r.at.Via == protect.ClosedHome:
		return r.at.Via
	}
	if r.at.ofAgent() && r.access == bawn.Private {
		return "what " + r.at.Via + " executes, of the session's own"
	}
	if r.at.ofAgent() {
		return AgentState + r.at.Via
	}
	return r.at.why()
}

// counts reports whether a path that the project closes is open after all
// trusted layers; a flag for the same path wins.
func (st *state) counts(n narrowing) bool {
	if r, ok := st.reaches[n.path]; ok && r.at.Layer == Command {
		return false
	}
	return n.access < st.access(n.path)
}

// env splits the entries into names that are passed and names that are set.
// The last value of a name counts.
func (st *state) env() (pass, set []string) {
	for _, e := range st.list("env") {
		name, _, found := strings.Cut(e, "=")
		if !found {
			pass = append(pass, e)
			continue
		}
		set = slices.DeleteFunc(set, func(o string) bool { return strings.HasPrefix(o, name+"=") })
		set = append(set, e)
	}
	return pass, set
}

func (st *state) resources() bawn.Resources {
	return bawn.Resources{
		CPUShares:  limit[int64](st, "cpu_shares"),
		CPUs:       limit[float64](st, "cpus"),
		MemoryMB:   limit[int64](st, "memory_mb"),
		TmpMB:      limit[int64](st, "tmp_mb"),
		PIDs:       limit[int64](st, "pids_limit"),
		OpenFiles:  limit[int64](st, "open_files"),
		FileSizeMB: limit[int64](st, "file_size_mb"),
		Timeout:    limit[time.Duration](st, "timeout"),
	}
}

// limit returns the value in force, zero where none is stated.
func limit[T int64 | float64 | time.Duration](st *state, name string) T {
	v, _ := st.scalars["isolation.resources."+name].value.(T)
	return v
}
