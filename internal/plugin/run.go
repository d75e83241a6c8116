package plugin

import (
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A Place says where a plugin is started.
type Place struct {
	Home      string   // the human's, absolute
	Workspace string   // the project's, absolute; relative paths of the manifest start there
	Own       string   // the plugin's own directory, absolute: it is writable, and the plugin's home
	Fetch     bool     // package managers may fetch what they need; otherwise it must be there
	Hidden    []string // further directories that it does not see, see Elsewhere
}

// RunFlags are the flags of bawn run with which the plugin is started, up to
// the "--" before its Argv. CacheDirs come on top.
func (m *Manifest) RunFlags(at Place) []string {
	l := m.Limits.Filled()
	flags := []string{"--only", "--agent", m.agent(), "--cwd", m.dir(at), "--ask-timeout", "0s",
		"--memory", strconv.FormatInt(l.MemoryMB, 10) + "m", "--pids", strconv.FormatInt(l.PIDs, 10), "--timeout", l.Time.String()}
	if l.CPUs != 0 {
		flags = append(flags, "--cpus", strconv.FormatFloat(l.CPUs, 'f', -1, 64))
	}
	if hosts := m.hosts(at.Fetch); len(hosts) == 0 {
		flags = append(flags, "--net", "none")
	} else {
		flags = append(flags, "--net", "allowlist")
		flags = each(flags, "--allow", hosts)
		flags = each(flags, "--secret", m.Secrets)
	}
	if m.Run.Image != "" {
		flags = append(flags, "--provider", "docker", "--image", m.Run.Image)
	}
	flags = append(flags, m.paths(at)...)
	for _, name := range slices.Sorted(maps.Keys(m.Env)) {
		flags = append(flags, "--env", name+"="+m.Env[name])
	}
	flags = append(flags, "--env", "HOME="+m.home(at))
	if !m.Fetched() {
		return flags
	}
	flags = append(flags, "--caches", "shared")
	for _, set := range at.offline() {
		if name, _, _ := strings.Cut(set, "="); !at.Fetch && m.Env[name] == "" {
			flags = append(flags, "--env", set)
		}
	}
	return flags
}

// CacheDirs are the directories, in the plugin's own, where the package manager
// keeps its downloads; empty if nothing is fetched.
func (m *Manifest) CacheDirs(at Place) (dirs []string) {
	if !m.Fetched() {
		return nil
	}
	for _, dir := range caches {
		dirs = append(dirs, path.Join(at.Own, dir))
	}
	return dirs
}

// caches are where npx, uvx and go keep their downloads, in the plugin's own
// directory. Packages hold any names: also ones that are protected elsewhere.
var caches = []string{".npm", ".cache", "go"}

// offline makes npx, uvx and go use what they have fetched before. Go asks about
// later versions, which its own cache answers, and has compared all with its
// database of sums when it was fetched.
func (at Place) offline() []string {
	return []string{"npm_config_offline=true", "UV_OFFLINE=1", "GOPROXY=file://" + path.Join(at.Own, "go/pkg/mod/cache/download"), "GOSUMDB=off"}
}

// agent is the plugin's name in the log.
func (m *Manifest) agent() string {
	if m.Kind == Hook {
		return "hook-" + m.Name
	}
	return "mcp-" + m.Name
}

// Fetched reports whether a package manager fetches the plugin's program.
func (m *Manifest) Fetched() bool { return m.Run.NPX != "" || m.Run.UVX != "" || m.Run.Go != "" }

// containerWork is where a container has the directory that it starts in.
const containerWork = "/workspace"

// home is the plugin's own directory, as the plugin sees it.
func (m *Manifest) home(at Place) string {
	if m.Run.Image != "" && m.dir(at) == at.Own {
		return containerWork
	}
	return at.Own
}

// paths hides the human's files and opens those that the manifest names. Of two
// entries for one path the stricter counts, so each is named once.
func (m *Manifest) paths(at Place) []string {
	write, read := at.below(m.Files.Write), at.below(m.Files.Read)
	named := map[string]bool{at.Own: true}
	flags := []string{"--rw", at.Own}
	for _, list := range []struct {
		flag  string
		paths []string
	}{{"--rw", write}, {"--ro", read}, {"--deny", slices.Concat([]string{at.Home, at.Workspace}, at.Hidden)}} {
		for _, p := range list.paths {
			if !named[p] {
				named[p] = true
				flags = append(flags, list.flag, p)
			}
		}
	}
	return flags
}

// dir is where the plugin starts: in the workspace if it sees anything of it. A
// container's is mounted as a whole.
func (m *Manifest) dir(at Place) string {
	if m.Run.Image != "" && !slices.Contains(slices.Concat(m.Files.Read, m.Files.Write), ".") {
		return at.Own
	}
	for _, p := range slices.Concat(m.Files.Read, m.Files.Write) {
		if p[0] != '/' && p[0] != '~' {
			return at.Workspace
		}
	}
	return at.Own
}

// system are the directories of the root that hold programs and their files.
const system = " bin boot cores dev etc lib lib32 lib64 libx32 nix opt proc run sbin snap sys tmp usr var Applications Library System private "

// Elsewhere lists the directories of the root that are neither the system's nor
// symbolic links: people's data there is not a plugin's.
func Elsewhere() []string {
	entries, err := os.ReadDir("/")
	if err != nil {
		return nil // nobody can look, the plugin neither
	}
	var hidden []string
	for _, e := range entries {
		if e.IsDir() && !strings.Contains(system, " "+e.Name()+" ") {
			hidden = append(hidden, "/"+e.Name())
		}
	}
	return hidden
}

func each(flags []string, flag string, values []string) []string {
	for _, v := range values {
		flags = append(flags, flag, v)
	}
	return flags
}

// below makes paths of a manifest absolute.
func (at Place) below(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		switch p[0] {
		case '~':
			out[i] = at.Home + p[1:]
		case '/':
			out[i] = p
		default:
			out[i] = path.Join(at.Workspace, p)
		}
	}
	return out
}

// Argv is the command of the plugin.
func (m *Manifest) Argv() []string {
	r := m.Run
	switch {
	case r.NPX != "":
		return append([]string{"npx", "--yes", r.NPX}, r.Args...)
	case r.UVX != "":
		return append([]string{"uvx", r.UVX}, r.Args...)
	case r.Go != "":
		return append([]string{"go", "run", r.Go}, r.Args...)
	}
	return append(slices.Clone(r.Command), r.Args...)
}

// hosts are those of the manifest, and, while it is fetched, where its package
// comes from: a registry takes packages too, so that it is a way out.
func (m *Manifest) hosts(fetch bool) []string {
	hosts := slices.Clone(m.Hosts)
	switch {
	case !fetch:
	case m.Run.NPX != "":
		hosts = append(hosts, "*.npmjs.org:443")
	case m.Run.UVX != "":
		hosts = append(hosts, "pypi.org:443", "*.pythonhosted.org:443")
	case m.Run.Go != "":
		hosts = append(hosts, "*.golang.org:443")
	}
	return slices.Compact(hosts)
}

// Filled puts the defaults where nothing is stated.
func (l Limits) Filled() Limits {
	d := DefaultLimits
	pick(&d.MemoryMB, l.MemoryMB)
	pick(&d.PIDs, l.PIDs)
	pick(&d.CPUs, l.CPUs)
	pick(&d.Time, l.Time)
	pick(&d.ResultBytes, l.ResultBytes)
	pick(&d.CallsAtOnce, l.CallsAtOnce)
	return d
}

func pick[T comparable](to *T, stated T) {
	if stated != *new(T) {
		*to = stated
	}
}
