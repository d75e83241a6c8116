package config

import (
	"fmt"
	"strings"
)

// Flags are the command line's values. What is nil or empty was not given.
// They mean what the keys of the same name mean, and are checked the same way.
type Flags struct {
	Profile, Provider, Mode, Autonomy, Agent *string

	Net, Caches, Timeout *string  // Timeout as in "90m"
	CPUs                 *float64 // cores
	Memory, PIDs         *int64   // MiB; processes and threads

	// Paths are absolute, below ~, or relative to the workspace.
	RW, RO, Deny, Open []string
	// Env has NAME, PREFIX* or NAME=value.
	Env, Hosts, Devices, Protected []string
}

// settings turns the flags into settings; each error names the flag.
func (f Flags) settings(p paths) (*file, error) {
	b := flagReader{paths: p, out: &file{}}
	b.text("--profile", "isolation.policy_profile", f.Profile)
	b.text("--provider", "isolation.provider", f.Provider)
	b.text("--mode", "mode", f.Mode)
	b.text("--autonomy", "autonomy", f.Autonomy)
	b.text("--agent", "agent", f.Agent)
	b.text("--net", "isolation.network", f.Net)
	b.text("--caches", "isolation.caches", f.Caches)
	b.text("--timeout", "isolation.resources.timeout", f.Timeout)
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
	b.list("--host", "isolation.hosts", f.Hosts)
	b.list("--device", "isolation.devices", f.Devices)
	b.list("--protect", "isolation.protected", f.Protected)
	return b.out, b.errs.err()
}

type flagReader struct {
	paths paths
	out   *file
	errs  Errors
}

func flagPlace(flag string) Place { return Place{Layer: Command, Via: flag} }

func (b *flagReader) keep(s setting) { b.out.settings = append(b.out.settings, s) }

// refuse notes an error in the words of the command line: who typed the flag
// need not know the key.
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
