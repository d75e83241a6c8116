package bwrap

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// Name of the provider.
const Name = "bwrap"

// A Plan is what Start will do: native's layout, and the words by which
// bubblewrap makes it. They go to it over a descriptor, so that no list of
// processes shows them and none is too long.
type Plan struct {
	*layout.Plan
	Words   []string `json:"bwrap"`         // options; without a leading "bwrap"
	Command []string `json:"bwrap_command"` // what it starts as the sandbox's first process

	sources []source // descriptors from firstSource on, in this order
	targets []string // of the host, which must be there when bwrap mounts on them
	facts   Facts
}

// Provider returns "bwrap".
func (*Plan) Provider() string { return Name }

// A source is a descriptor that bwrap is handed, and closes.
type source struct {
	path string // "" for an empty file
	id   layout.Identity
}

// Descriptors of bwrap: 0 is the control socket, which the first process gets;
// 1 and 2 take what goes wrong.
const (
	argsFD      = 3
	infoFD      = 4
	firstSource = 5
)

// Program is where the sandbox's first process finds itself. It lies in /dev,
// which every sandbox has of its own.
const program = "/dev/.bawn"

// maxWords is what bwrap takes (MAX_ARGS of bubblewrap.c).
const maxWords = 9000

// Facts are what a plan depends on besides native's.
type Facts struct {
	// Interfaces are the directories of the host's /sys that hold network
	// interfaces, links resolved. bwrap can't mount a /sys of the guest's own.
	Interfaces []string
}

// makePlan turns a layout into a plan of bwrap's. It errs where bwrap could not
// carry it out.
func makePlan(guestLayout *layout.Plan, facts Facts) (*Plan, error) {
	t := &translator{layout: guestLayout, facts: facts}
	t.namespaces()
	for i, m := range guestLayout.Mounts {
		if m.Kind == layout.KindHide && shown(guestLayout.Mounts[i+1:], m.Target) {
			continue // nothing can be mounted on what bwrap hides a file with
		}
		if err := t.mount(m); err != nil {
			return nil, err
		}
	}
	t.add("--chdir", "/")
	if len(t.words) > maxWords {
		return nil, fmt.Errorf("the sandbox takes %d words of bwrap, which takes %d; hide or protect fewer places", len(t.words), maxWords)
	}
	return &Plan{Plan: guestLayout, Words: t.words, Command: []string{program, inside.Argument}, sources: t.sources, targets: t.targets, facts: facts}, nil
}

// shown reports whether one of mounts puts something of the host at target.
func shown(mounts []layout.Mount, target string) bool {
	return slices.ContainsFunc(mounts, func(m layout.Mount) bool {
		return m.Target == target && (m.Kind == layout.KindBind || m.Kind == layout.KindBindRO)
	})
}

// translator collects words.
type translator struct {
	layout  *layout.Plan
	facts   Facts
	words   []string
	sources []source
	targets []string
}

func (t *translator) add(words ...string) { t.words = append(t.words, words...) }

// source has bwrap handed one more descriptor, and returns its number.
func (t *translator) source(s source) string {
	t.sources = append(t.sources, s)
	return strconv.Itoa(firstSource + len(t.sources) - 1)
}

// namespaces says which are new: each by its name, because --unshare-all goes
// on without those it can't have. bwrap as root keeps every capability unless
// told otherwise. Where the network opens by name, or the workspace is a copy, the first
// process makes it so, and drops what that takes before anything of the guest's runs.
func (t *translator) namespaces() {
	for _, ns := range t.layout.Namespaces {
		if ns != "mount" { // always new
			t.add("--unshare-" + ns)
		}
	}
	t.add("--uid", strconv.Itoa(t.layout.UID.Inside), "--gid", strconv.Itoa(t.layout.GID.Inside),
		"--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL")
	var added []string
	if t.layout.Network != nil {
		added = []string{"CAP_NET_ADMIN"}
	}
	if copyOf(t.layout) != nil {
		added = append(added, copyCapabilities...)
	}
	if len(added) > 0 {
		added = append(added, "CAP_SETPCAP") // to drop the others for good
	}
	for _, c := range added {
		t.add("--cap-add", c)
	}
}

// mount says how one step of the layout is done.
func (t *translator) mount(m layout.Mount) error {
	if err := t.prepare(m); err != nil {
		return err
	}
	switch m.Kind {
	case layout.KindRoot:
		t.add("--ro-bind", m.Source, m.Target)
	case layout.KindBind, layout.KindPool:
		t.add("--bind-fd", t.source(source{m.Source, m.ID}), m.Target)
	case layout.KindBindRO:
		t.add("--ro-bind-fd", t.source(source{m.Source, m.ID}), m.Target)
	case layout.KindCopy:
		t.copied(m)
	case layout.KindTmpfs:
		t.tmpfs(m.Target, m.Mode, m.SizeMB<<20)
		for _, dir := range initialDirs(m) {
			t.add("--perms", "0755", "--dir", dir)
		}
	case layout.KindProc:
		t.add("--proc", m.Target, "--remount-ro", m.Target)
	case layout.KindSysfs:
		t.interfaces()
	case layout.KindDev:
		t.dev(m)
	case layout.KindHideDir:
		t.cover(m.Target, 0)
	case layout.KindHide:
		t.add("--perms", "0000", "--ro-bind-data", t.source(source{}), m.Target)
	default:
		return fmt.Errorf("BUG(bawn): bwrap is to make a mount of kind %q", m.Kind)
	}
	return nil
}

// prepare makes the directories that lead to a target in an empty place. Every
// other target exists: bwrap would make a missing one, on the host.
func (t *translator) prepare(m layout.Mount) error {
	if strings.Contains(m.Target, "\x00") || strings.Contains(m.Source, "\x00") {
		return errors.New("BUG(bawn): a path holds a zero byte")
	}
	switch {
	case initialDirs(m) != nil || m.Kind == layout.KindDev:
		t.targets = append(t.targets, m.Target)
	case len(m.Make) > 0:
		for _, dir := range m.Make[:len(m.Make)-1] {
			t.add("--perms", "0755", "--dir", dir)
		}
	case m.Kind != layout.KindRoot && m.Kind != layout.KindPool:
		t.targets = append(t.targets, m.Target)
	}
	return nil
}

// initialDirs are the directories that a tmpfs is to hold from the start.
func initialDirs(m layout.Mount) []string {
	if m.Kind == layout.KindTmpfs && len(m.Make) > 0 && m.Make[0] != m.Target && strings.HasPrefix(m.Make[0], m.Target+"/") {
		return m.Make
	}
	return nil
}

func (t *translator) tmpfs(target string, mode uint32, size int64) {
	t.add("--perms", fmt.Sprintf("%04o", mode))
	if size > 0 {
		t.add("--size", strconv.FormatInt(size, 10))
	}
	t.add("--tmpfs", target)
}

// cover hides a directory behind an empty one, which is read-only so that its
// owner, who is the guest, can't open it with chmod.
func (t *translator) cover(target string, mode uint32) {
	t.tmpfs(target, mode, 4096)
	t.add("--remount-ro", target)
}

// interfaces hides the host's network interfaces from a guest that has a network
// of its own.
func (t *translator) interfaces() {
	for _, dir := range t.facts.Interfaces {
		t.targets = append(t.targets, dir)
		t.cover(dir, 0o555)
	}
}

// dev builds a minimal /dev and makes it read-only; devices stay usable. bwrap's
// own --dev would show the host's console and put the guest in a second user
// namespace, whose capabilities do not apply to the network. Start mounts
// /dev/pts.
func (t *translator) dev(m layout.Mount) {
	t.tmpfs(m.Target, 0o755, 1<<20)
	for _, d := range m.Devices {
		t.add("--dev-bind", "/dev/"+d, path.Join(m.Target, d))
	}
	for _, dir := range m.Make { // for a pool
		t.add("--perms", "0000", "--dir", dir)
	}
	t.add("--dir", m.Target+"/pts", "--perms", "0000", "--dir", layout.HiddenDir, "--perms", "0000", "--file", t.source(source{}), layout.HiddenFile)
	for _, link := range [][2]string{{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"}} {
		t.add("--symlink", link[1], path.Join(m.Target, link[0]))
	}
	t.tmpfs(m.Target+"/shm", 0o1777, m.SizeMB<<20)
	t.add("--ro-bind-fd", t.source(source{path: self}), program, "--remount-ro", m.Target)
}

// self is the program that runs.
const self = "/proc/self/exe"

// Environ is the guest's environment.
func (p *Plan) Environ() []string { return slices.Clone(p.Env) }

var _ sandbox.Plan = (*Plan)(nil)
