package config

import (
	"fmt"
	"strings"

	"github.com/bawn-dev/bawn"
)

// Flags are the command line's values. Nil or empty ones were not given. They
// have the meaning of the keys of the same name, and are checked the same way.
type Flags struct {
	Profile, Provider, Image, Mode, Autonomy, Agent *string

	Net, Caches, Timeout, AskTimeout *string  // Timeout as in "90m"
	CPUs                             *float64 // cores
	Memory, PIDs                     *int64   // MiB; processes and threads

	// Paths are absolute, below ~, or relative to the workspace.
	RW, RO, Deny, Open []string
	// Env has NAME, PREFIX* or NAME=value.
	Env, Devices, Protected []string
	Unprotected             []string
	MaskEnv, WhileAway      *string
	CacheDirs               []string // directories of downloads
	// Entries of the keys about the network, in the forms of package netrule.
	// Where Net is nil any of them but Ports makes the network "allowlist".
	Hosts, HTTP, Git, HostPorts, Ports, Secrets []string
	SSHAgent, DockerAPI                         bool
	NoAgentProfile                              bool
	// Only takes away what no flag gives: places that are written, credentials,
	// hosts, secrets, variables, devices and ports of files and profiles.
	Only bool
	Copy *bool
	// Of a split session. Models alone do not split one.
	Split          *bool
	SplitWorkspace *string
	Models         []string
}

// An egressFlag is a flag about the destinations of the network "allowlist".
type egressFlag struct {
	flag, key string
	entries   []string
}

func (f Flags) egress() []egressFlag {
	return []egressFlag{
		{"--allow", "isolation.hosts", f.Hosts}, {"--http", "isolation.http", f.HTTP}, {"--git", "isolation.git", f.Git},
		{"--host-port", "isolation.host_ports", f.HostPorts}, {"--secret", "isolation.secrets", f.Secrets}, {"--publish", "isolation.ports", f.Ports},
	}
}

// settings turns the flags into settings; each error names the flag.
func (f Flags) settings(p paths) (*file, error) {
	b := flagReader{paths: p, out: &file{}}
	b.text("--profile", "isolation.policy_profile", f.Profile)
	b.text("--provider", "isolation.provider", f.Provider)
	b.text("--image", dockerTable+"image", f.Image)
	b.text("--mode", "mode", f.Mode)
	b.text("--autonomy", "autonomy", f.Autonomy)
	b.text("--agent", "agent", f.Agent)
	b.text("--net", "isolation.network", f.Net)
	b.text("--while-away", "isolation.while_away", f.WhileAway)
	b.text("--mask-env", "isolation.mask_env", f.MaskEnv)
	b.text("--caches", "isolation.caches", f.Caches)
	b.text("--timeout", "isolation.resources.timeout", f.Timeout)
	b.text("--ask-timeout", "isolation.ask_timeout", f.AskTimeout)
	if f.CPUs != nil {
		b.scalar("--cpus", "isolation.resources.cpus", *f.CPUs, *f.CPUs)
	}
	b.whole("--memory", "isolation.resources.memory_mb", f.Memory)
	b.whole("--pids", "isolation.resources.pids_limit", f.PIDs)
	b.list("--rw", "isolation.rw", f.RW)
	b.list("--ro", "isolation.ro", f.RO)
	b.list("--deny", "isolation.deny", f.Deny)
	b.list("--open", "isolation.open", f.Open)
	b.list("--env", "isolation.env", f.Env)
	b.egress(f)
	if f.SSHAgent {
		b.keep(setting{key: find("isolation.ssh_agent"), value: true, at: flagPlace("--ssh-agent")})
	}
	if f.DockerAPI {
		b.keep(setting{key: find("isolation.docker_api"), value: true, at: flagPlace("--docker")})
	}
	if f.NoAgentProfile {
		b.keep(setting{key: find(agentProfileKey), value: false, at: flagPlace("--no-agent-profile")})
	}
	if f.Split != nil {
		b.keep(setting{key: find("isolation.split"), value: *f.Split, at: flagPlace("--split")})
	}
	if f.Copy != nil {
		b.keep(setting{key: find("isolation.copy"), value: *f.Copy, at: flagPlace(map[bool]string{true: "--copy", false: "--no-copy"}[*f.Copy])})
	}
	b.text("--split-workspace", "isolation.split_workspace", f.SplitWorkspace)
	b.list("--model", "isolation.models", f.Models)
	b.list("--device", "isolation.devices", f.Devices)
	b.list("the plugin's caches", "isolation.cache_dirs", f.CacheDirs)
	b.list("--protect", "isolation.protected", f.Protected)
	b.list("--unprotect", "isolation.unprotect", f.Unprotected)
	return b.out, b.errs.err()
}

// egress reads the flags about the network. A flag that names a destination
// implies --net allowlist.
func (b *flagReader) egress(f Flags) {
	implied := f.Net != nil
	for _, e := range f.egress() {
		b.list(e.flag, e.key, e.entries)
		if len(e.entries) > 0 && e.flag != "--publish" && !implied {
			implied = true
			b.keep(setting{key: find("isolation.network"), value: bawn.NetworkAllowlist.String(), at: flagPlace(e.flag)})
		}
	}
}

type flagReader struct {
	paths paths
	out   *file
	errs  Errors
}

func flagPlace(flag string) Place { return Place{Layer: Command, Via: flag} }

func (b *flagReader) keep(s setting) { b.out.settings = append(b.out.settings, s) }

// refuse notes an error in terms of the command line: the user of a flag need
// not know the key.
func (b *flagReader) refuse(flag string, k *key, e *Error) {
	e.Place = flagPlace(flag)
	e.Problem = strings.TrimPrefix(e.Problem, k.path+": ")
	if rest, ok := strings.CutPrefix(e.Problem, k.path+" is "); ok {
		value, want, _ := strings.Cut(rest, "; want ")
		e.Problem = value + " is refused; want " + want
	}
	b.errs.add(e)
}

func (b *flagReader) text(flag, path string, v *string) {
	if v == nil {
		return
	}
	k := find(path)
	value, err := textValue(k, *v, b.paths)
	if err != nil {
		b.refuse(flag, k, err)
		return
	}
	b.keep(setting{key: k, value: value, at: flagPlace(flag)})
}

func (b *flagReader) whole(flag, path string, v *int64) {
	if v != nil {
		b.scalar(flag, path, *v, float64(*v))
	}
}

// scalar keeps a number whose rank is in the key's range.
func (b *flagReader) scalar(flag, path string, v any, rank float64) {
	k := find(path)
	if err := k.inRange(rank, fmt.Sprint(v)); err != nil {
		b.refuse(flag, k, err)
		return
	}
	b.keep(setting{key: k, value: v, at: flagPlace(flag)})
}

func (b *flagReader) list(flag, path string, entries []string) {
	s := setting{key: find(path), at: flagPlace(flag)}
	for _, e := range entries {
		text, err := s.key.entry(e, b.paths)
		if err != nil {
			b.errs.addf(s.at, "%v", err)
			continue
		}
		s.items = append(s.items, item{text, s.at})
	}
	if len(s.items) > 0 {
		b.keep(s)
	}
}
