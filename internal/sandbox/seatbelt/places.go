package seatbelt

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/symlink"
)

// A Place is what the guest may do below one path. The longest path counts.
type Place struct {
	Path   string      `json:"path"`
	Access bawn.Access `json:"access"`
	Why    string      `json:"why"`
}

// systemHidden describes the machine, or exists for the session in another form: others'
// temporary files are hidden, it has a directory of its own. /System/Volumes/Data is the
// target of firmlinks: the kernel reports its files as /Users, and where it does not,
// nothing may be open by the other name.
var systemHidden = []string{"/private/tmp", "/private/var/tmp", "/private/var/folders", "/private/var/db/dslocal", "/private/var/root", "/private/etc/bawn", "/private/etc/sudoers", "/private/etc/sudoers.d", "/private/etc/master.passwd", "/Library/Keychains", "/Volumes", "/System/Volumes/Data", "/Network", "/dev"}

// places lists what a request comes to, in the order in which rules are written.
func (m *maker) places() ([]Place, error) {
	credentials, err := layout.CredentialPaths("darwin", m.req.Home, m.req.Open)
	if err != nil {
		return nil, err
	}
	m.add(bawn.ReadOnly, "the system", "/")
	m.add(bawn.Hidden, "system", systemHidden...)
	m.add(bawn.ReadOnly, "system", devicesRead...)
	m.add(bawn.Hidden, "credentials", credentials...)
	m.caches()
	if err := m.planted(); err != nil {
		return nil, err
	}
	for _, mt := range m.req.Session.Isolation.Mounts {
		access := mt.Access
		if access == bawn.Private { // there are no mounts: what is to be empty is closed
			access = bawn.Hidden
		}
		m.add(access, mt.Why, mt.Path)
	}
	for _, f := range m.req.Files {
		m.add(bawn.ReadOnly, "shown by bawn", f.Source)
	}
	m.add(bawn.ReadWrite, "temporary files of the session's own", m.tmp)
	m.add(bawn.Hidden, "bawn's own", m.req.Hidden...)
	return m.list, m.err
}

// planted refuses places that are named by a link which a guest may have made.
func (m *maker) planted() error {
	if m.facts.Follow == nil {
		return nil
	}
	iso := m.req.Session.Isolation
	guests := []string{m.facts.Real(iso.Workspace)}
	named := slices.Clone(iso.Mounts)
	if iso.Caches == bawn.CacheShared {
		for _, dir := range iso.CacheDirs {
			named = append(named, bawn.Mount{Path: dir, Access: bawn.ReadWrite, Why: "cache directory"})
		}
	}
	for _, mt := range named {
		if mt.Access == bawn.ReadWrite {
			guests = append(guests, m.facts.Real(mt.Path))
		}
	}
	for _, mt := range named {
		links, end := m.facts.Follow(mt.Path)
		if err := symlink.Planted(mt.Why, mt.Path, links, end, guests, m.req.GuestWrote); err != nil {
			return err
		}
	}
	return nil
}

// caches lets shared caches be written. Copies of the session's own can't be put
// in their places, so private ones are read-only here.
func (m *maker) caches() {
	iso := m.req.Session.Isolation
	if iso.Caches == bawn.CacheShared {
		m.add(bawn.ReadWrite, "shared cache", iso.CacheDirs...)
	}
}

// add notes places by the paths that links lead to. Of the same path the later
// counts, but what hides Bawn's own and what was asked to be hidden stays.
func (m *maker) add(access bawn.Access, why string, paths ...string) {
	for _, p := range paths {
		p = m.facts.Real(p)
		if err := checkText(p); err != nil && m.err == nil {
			m.err = err
		}
		i := slices.IndexFunc(m.list, func(o Place) bool { return o.Path == p })
		switch {
		case i < 0:
			m.list = append(m.list, Place{p, access, why})
		case access == bawn.ReadOnly && m.list[i].Access == bawn.Hidden: // not opened by --ro
		default:
			m.list[i] = Place{p, access, why}
		}
	}
	slices.SortStableFunc(m.list, func(a, b Place) int { return cmp.Compare(len(a.Path), len(b.Path)) })
}

func below(p, dir string) bool {
	return p != dir && strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// above lists the directories between a writable place and what lies in it,
// including that place. Moving one of them would move a path away from its
// rule.
func above(list []Place) []string {
	var out []string
	for _, p := range list {
		for _, root := range list {
			if root.Access != bawn.ReadWrite || !below(p.Path, root.Path) {
				continue
			}
			for dir := path.Dir(p.Path); dir == root.Path || below(dir, root.Path); dir = path.Dir(dir) {
				out = append(out, dir)
			}
		}
	}
	for _, p := range list {
		if p.Access == bawn.ReadWrite {
			out = append(out, p.Path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ways are filters for the directories that lead through hidden places to open
// ones: programs look at them to find out where they are.
func ways(list []Place) []string {
	var out []string
	for _, p := range list {
		if p.Access == bawn.Hidden {
			continue
		}
		for dir := path.Dir(p.Path); dir != "/"; dir = path.Dir(dir) {
			hides := func(h Place) bool { return h.Access == bawn.Hidden && (h.Path == dir || below(dir, h.Path)) }
			if slices.ContainsFunc(list, hides) && !slices.Contains(out, literal(dir)) {
				out = append(out, literal(dir))
			}
		}
	}
	return out
}

// A WorkspaceError says that a directory can't be a workspace.
type WorkspaceError struct{ Path, Why string }

// Error names the directory and why.
func (e *WorkspaceError) Error() string { return fmt.Sprintf("workspace %q %s", e.Path, e.Why) }

// check refuses what can't be carried out.
func (m *maker) check() error {
	iso := m.req.Session.Isolation
	ws := m.facts.Real(iso.Workspace)
	switch home := m.facts.Real(m.req.Home); {
	case ws == "/" || ws == home || below(home, ws):
		return &WorkspaceError{ws, "would make your home directory writable; want a directory in it"}
	case m.req.Tmp != "":
		return unsupported("share a /tmp between two sandboxes")
	case len(iso.Devices) > 0:
		return unsupported("give devices by name")
	}
	for _, mt := range iso.Mounts {
		if m.facts.Real(mt.Path) == "/" && mt.Access == bawn.ReadWrite {
			return &WorkspaceError{"/", "would make the whole machine writable"}
		}
	}
	for _, f := range m.req.Files {
		if !below(f.Target, ownPlace) {
			return unsupported(fmt.Sprintf("show %q at %q", f.Source, f.Target))
		}
	}
	return nil
}

// ownPlace is where a session finds what Bawn shows it, on systems with mounts.
// Here it stays where it is, and variables that name it are changed.
const ownPlace = "/run/bawn"

// moved puts the place where a file is into a variable that names it as shown.
func moved(kv string, files []sandbox.File) string {
	for _, f := range files {
		kv = strings.ReplaceAll(kv, f.Target, f.Source)
	}
	return kv
}
