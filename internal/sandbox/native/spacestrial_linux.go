package native

import (
	"errors"
	"os"
	"strconv"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// A spaceSupport says whether a guest's own namespaces, mounts and filter can
// be made here.
type spaceSupport struct {
	ok  bool
	err string // why not
	fix string // and what to do about it
}

// probeSpaces makes the least of all sandboxes and lets it go.
func probeSpaces() spaceSupport {
	err := trySpaces()
	if err == nil {
		return spaceSupport{ok: true}
	}
	failed := &kernel.StartError{Err: err}
	_ = errors.As(explain(err), &failed)
	return spaceSupport{err: err.Error(), fix: failed.Remedy}
}

// spaceFields is how many fields the cache file has for it.
const spaceFields = 3

func (s spaceSupport) fields() []string { return []string{strconv.FormatBool(s.ok), s.err, s.fix} }

// parseSpaces reads what fields writes, or tries again.
func parseSpaces(f []string) spaceSupport {
	if len(f) == spaceFields {
		if ok, err := strconv.ParseBool(f[0]); err == nil {
			return spaceSupport{ok: ok, err: f[1], fix: f[2]}
		}
	}
	return probeSpaces()
}

// trySpaces makes the same namespaces as a start, for a guest with only the
// host's root, and starts no command.
func trySpaces() error {
	uid, gid := os.Geteuid(), os.Getegid()
	c, err := compile(&layout.Plan{
		Rung: layout.RungNamespaces, Namespaces: []string{"user", "mount", "pid", "ipc", "uts", "net"},
		UID: layout.Mapping{Inside: uid, Outside: uid}, GID: layout.Mapping{Inside: gid, Outside: gid}, Loopback: true, Supervised: true,
		Mounts: []layout.Mount{
			{Kind: layout.KindRoot, Source: "/", Target: "/"}, {Kind: layout.KindProc, Target: "/proc"},
			{Kind: layout.KindDev, Target: "/dev", SizeMB: 1, Devices: []string{"null"}}, {Kind: layout.KindTmpfs, Target: "/tmp", SizeMB: 1, Mode: 0o1777},
		},
	})
	if err != nil {
		return err
	}
	in, err := rawproc.Start(rawproc.Config{Namespaces: c.namespaces, Program: &c.Program, Ready: c.ready()})
	if err == nil {
		in.Kill()
	}
	return err
}

// unless takes back all that stands on namespaces of the guest's own.
func (s spaceSupport) unless(list []bawn.Capability) []bawn.Capability {
	if s.ok {
		return list
	}
	out := make([]bawn.Capability, len(list))
	for i, c := range list {
		out[i] = bawn.Capability{Attribute: c.Attribute, Why: s.err, Remedy: s.fix}
	}
	return out
}
