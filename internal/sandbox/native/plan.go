package native

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// A Plan is all that Start will do, as a value. Its JSON form, whose keys are
// spelled as those of the configuration, is printed by --plan and compared in
// golden tests.
type Plan struct {
	Rung       string            `json:"rung"` // "namespaces" or "landlock"
	Namespaces []string          `json:"namespaces"`
	UID        Mapping           `json:"uid"`
	GID        Mapping           `json:"gid"`
	Mounts     []Mount           `json:"mounts"`
	Loopback   bool              `json:"loopback"` // bring lo up in the new network namespace
	NoNetwork  bool              `json:"no_ip_sockets,omitempty"`
	Tmp        string            `json:"temporary_directory,omitempty"` // on rung "landlock"
	Landlock   Landlock          `json:"landlock"`
	Seccomp    string            `json:"seccomp"`
	Supervised bool              `json:"supervised"`
	Protected  []string          `json:"protected_below,omitempty"` // writable places of the host
	ExtraNames []string          `json:"protected_names,omitempty"`
	Absent     []string          `json:"hidden_and_absent,omitempty"` // must not come into being
	Targets    []string          `json:"protected_targets,omitempty"` // where protected names lead that are links
	Limits     bawn.Resources    `json:"limits"`
	Env        []string          `json:"-"`
	EnvNames   []string          `json:"environment"`
	Argv       []string          `json:"argv"`
	Dir        string            `json:"directory"`
	InPart     []bawn.Capability `json:"enforced_in_part,omitempty"`
	Session    string            `json:"-"`
}

// Rungs of the ladder: the second stands where user namespaces are closed.
const (
	rungNamespaces = "namespaces"
	rungLandlock   = "landlock"
)

// Provider returns the name of the provider that carries the plan out.
func (p *Plan) Provider() string {
	if p.Rung == rungLandlock {
		return LandlockName
	}
	return Name
}

// Partly lists what is enforced in part.
func (p *Plan) Partly() []bawn.Capability { return p.InPart }

// A Mapping is one id inside and the same id outside.
type Mapping struct {
	Inside  int `json:"inside"`
	Outside int `json:"outside"`
}

// Landlock is the policy a second time, for the rights this kernel knows.
type Landlock struct {
	ABI      int      `json:"abi"`
	Writable []string `json:"writable"`
	// Readable is set where no mount hides anything: every place that may be
	// read, with the hidden ones left out.
	Readable []string `json:"readable,omitempty"`
}

// Kinds of mount.
const (
	kindRoot    = "root"      // everything, read-only
	kindBind    = "bind"      // a place of the host, writable
	kindBindRO  = "bind-ro"   // a place of the host, read-only
	kindTmpfs   = "tmpfs"     // an empty place of the session's own
	kindProc    = "proc"      //
	kindSysfs   = "sysfs"     //
	kindDev     = "dev"       // a minimal /dev
	kindHideDir = "hide-dir"  // an empty directory nobody may open
	kindHide    = "hide-file" // an empty file nobody may open
)

// A Mount is one step of building the guest's root; order matters.
type Mount struct {
	Kind   string `json:"kind"`
	Source string `json:"source,omitempty"`
	Target string `json:"target"`
	SizeMB int64  `json:"size_mb,omitempty"`
	Mode   uint32 `json:"mode,omitempty"`
	Why    string `json:"why,omitempty"`
	// Make lists what has to be created below a tmpfs before the target is
	// there, outermost first; the last one is a file if File.
	Make []string `json:"make,omitempty"`
	File bool     `json:"file,omitempty"`
	// Devices of /dev.
	Devices []string `json:"devices,omitempty"`

	id Identity
}

// An Identity pins a source to what was there when the plan was made.
type Identity struct{ Dev, Ino uint64 }

// A File is what Facts know of a path.
type File struct {
	Real string // with every symbolic link resolved
	Dir  bool
	ID   Identity
}

// An Entry is a name that a directory holds, and what it leads to.
type Entry struct {
	Name string // as it was asked for; may hold slashes
	File
}

// Facts are what a plan depends on besides the request. They are gathered
// once, so that making a plan touches nothing and a test can state them.
type Facts struct {
	UID, GID             int
	NobodyUID, NobodyGID int // what root is inside
	LandlockABI          int
	Resolver             string // where /etc/resolv.conf leads, if below /run
	Capabilities         []bawn.Capability
	Lookup               func(path string) (File, bool)
	Present              func(dir string, names []string) []Entry       // which of names dir holds
	Follow               func(path string) (links []string, end string) // on the way, and where it leads, there or not
	Links                func(dir string) []string                      // names of the symbolic links in dir
	ReadFile             func(path string) (string, error)              // small files of a git directory
}

// makePlan turns a request into a plan. It errs when a place that was asked
// for does not exist, or the workspace is one that must not be written.
func makePlan(req sandbox.Request, facts Facts) (*Plan, error) {
	iso := req.Session.Isolation
	facts.Lookup = remembered(facts.Lookup)
	b := &builder{req: req, iso: iso, facts: facts}
	p := &Plan{
		Rung:       rungNamespaces,
		Namespaces: []string{"user", "mount", "pid", "ipc", "uts", "cgroup"},
		UID:        Mapping{facts.UID, facts.UID}, GID: Mapping{facts.GID, facts.GID},
		Limits: iso.Resources, Argv: req.Argv, Session: req.Session.ID, ExtraNames: req.Protected,
	}
	if facts.UID == 0 {
		p.UID.Inside, p.GID.Inside = facts.NobodyUID, facts.NobodyGID
	}
	if iso.Network == bawn.NetworkNone {
		p.Namespaces, p.Loopback = append(p.Namespaces, "net"), true
	}
	if err := checkOpen(req.Open); err != nil {
		return nil, err
	}
	if err := b.workspace(); err != nil {
		return nil, err
	}
	b.base()
	if err := b.asked(); err != nil {
		return nil, err
	}
	p.Mounts, p.Protected = b.finish(), b.writable
	p.Absent, p.Targets = b.unborn(), b.targets
	p.Supervised = true
	p.Seccomp = "guest, supervised"
	p.Landlock = Landlock{ABI: facts.LandlockABI, Writable: landlockWritable(p.Mounts)}
	dir, err := b.directory()
	if err != nil {
		return nil, err
	}
	p.Dir = dir
	p.Env = b.environment()
	p.EnvNames = names(p.Env)
	return p, nil
}

// remembered asks once for each path: many hidden places share a parent, and
// one plan should see one state of the machine.
func remembered(lookup func(string) (File, bool)) func(string) (File, bool) {
	type answer struct {
		f  File
		ok bool
	}
	known := map[string]answer{}
	return func(p string) (File, bool) {
		a, ok := known[p]
		if !ok {
			a.f, a.ok = lookup(p)
			known[p] = a
		}
		return a.f, a.ok
	}
}

// builder collects mounts in the order in which they were asked for.
type builder struct {
	req      sandbox.Request
	iso      bawn.Isolation
	facts    Facts
	fixed    []Mount // system places, before everything else
	mounts   []Mount // places of the request
	writable []string
	root     string // real path of the workspace
	noCache  bool   // ~/.cache does not exist
	absent   []string
	targets  []string
}

// forbidden workspaces: a guest that could write there would own the machine
// or the account, whatever else is denied.
var systemDirs = []string{"/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var", "/var/lib", "/var/tmp"}

// A WorkspaceError says why a directory can't be a workspace.
type WorkspaceError struct{ Path, Why string }

func (e *WorkspaceError) Error() string {
	return fmt.Sprintf("%q can't be a session's workspace: %s", e.Path, e.Why)
}

// workspace resolves the workspace and refuses those that are too wide.
func (b *builder) workspace() error {
	w := b.iso.Workspace
	f, ok := b.facts.Lookup(w)
	home, _ := b.facts.Lookup(b.home())
	switch {
	case !ok:
		return &WorkspaceError{w, "it does not exist"}
	case !f.Dir:
		return &WorkspaceError{w, "it is no directory"}
	case f.Real == home.Real || below(home.Real, f.Real):
		return &WorkspaceError{w, "it is, or holds, your home directory"}
	case slices.Contains(systemDirs, f.Real) || below(f.Real, "/usr") || below(f.Real, "/etc") || below(f.Real, "/proc") || below(f.Real, "/sys") || below(f.Real, "/dev"):
		return &WorkspaceError{w, "it belongs to the system"}
	}
	b.root = f.Real
	return nil
}

func (b *builder) home() string { return lookupEnv(b.req.Environ, "HOME") }

// base lays out the system places.
func (b *builder) base() {
	tmp := b.iso.Resources.TmpMB
	b.fixed = append(b.fixed,
		Mount{Kind: kindRoot, Source: "/", Target: "/", Why: "the system, read-only"},
		Mount{Kind: kindProc, Target: "/proc"})
	if b.iso.Network == bawn.NetworkNone {
		b.fixed = append(b.fixed, Mount{Kind: kindSysfs, Target: "/sys"})
	}
	b.fixed = append(b.fixed, Mount{Kind: kindDev, Target: "/dev", SizeMB: tmp, Devices: b.devices()})
	for _, place := range []string{"/tmp", "/var/tmp"} {
		if f, ok := b.facts.Lookup(place); ok && f.Dir && f.Real == place {
			b.fixed = append(b.fixed, Mount{Kind: kindTmpfs, Target: place, SizeMB: tmp, Mode: 0o1777})
		}
	}
	if f, ok := b.facts.Lookup("/run"); ok && f.Dir {
		b.fixed = append(b.fixed, Mount{Kind: kindTmpfs, Target: "/run", SizeMB: tmp, Mode: 0o755, Make: runDirs(b.inside())})
	}
	hidden := systemHidden
	if b.facts.UID == 0 {
		hidden = append(slices.Clip(hidden), rootSecrets...)
	}
	for _, e := range b.there("/", hidden) {
		hideFile(&b.fixed, e.File, "the system's own")
	}
	if b.iso.Network == bawn.NetworkFull && b.facts.Resolver != "" {
		b.mounts = append(b.mounts, Mount{Kind: kindBindRO, Source: b.facts.Resolver, Target: b.facts.Resolver, File: true, Why: "name resolution"})
	}
}

func (b *builder) inside() int {
	if b.facts.UID == 0 {
		return b.facts.NobodyUID
	}
	return b.facts.UID
}

// runDirs are made in the private /run: XDG_RUNTIME_DIR.
func runDirs(uid int) []string {
	return []string{"/run/user", fmt.Sprintf("/run/user/%d", uid), "/run/lock"}
}

// systemHidden tells a guest about the machine or lets it at the host's
// control groups.
var systemHidden = []string{"/etc/bawn", "/proc/acpi", "/proc/scsi", "/proc/keys", "/proc/key-users", "/proc/timer_list", "/proc/sched_debug", "/sys/firmware", "/sys/fs/cgroup"}

// rootSecrets are read by root alone, and so by a guest that root started.
var rootSecrets = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/security/opasswd",
	"/etc/ssl/private", "/etc/krb5.keytab", "/var/spool/cron", "/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet",
	"/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key", "/etc/wireguard", "/etc/NetworkManager/system-connections",
	// kcore, kmsg, kallsyms, iomem and their like ask for a capability instead.
	"/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/proc/slabinfo", "/proc/vmallocinfo",
	"/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf", "/sys/fs/pstore",
}

// devices are the ones asked for, beyond the minimal set.
func (b *builder) devices() []string {
	var list []string
	for _, d := range append([]string{"null", "zero", "full", "random", "urandom", "tty"}, b.iso.Devices...) {
		if _, ok := b.facts.Lookup("/dev/" + d); ok && !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	return list
}

// hide covers a path with something empty, if it is there.
func (b *builder) hide(list *[]Mount, p, why string) {
	if f, ok := b.facts.Lookup(p); ok {
		hideFile(list, f, why)
	} else {
		b.absent = append(b.absent, p)
	}
}

// unborn returns, by their real paths, the hidden places that do not exist but
// could be made below a writable place.
func (b *builder) unborn() []string {
	var list []string
	for _, p := range b.absent {
		for dir, rest := path.Dir(p), path.Base(p); ; dir, rest = path.Dir(dir), path.Join(path.Base(dir), rest) {
			if f, ok := b.facts.Lookup(dir); ok {
				p = path.Join(f.Real, rest)
				break
			}
			if dir == "/" {
				break
			}
		}
		if slices.ContainsFunc(b.writable, func(w string) bool { return below(p, w) }) {
			list = append(list, p)
		}
	}
	sort.Strings(list)
	return slices.Compact(list)
}

func hideFile(list *[]Mount, f File, why string) {
	kind := kindHide
	if f.Dir {
		kind = kindHideDir
	}
	*list = append(*list, Mount{Kind: kind, Target: f.Real, Why: why})
}

// asked adds the places of the isolation.
func (b *builder) asked() error {
	b.credentials()
	b.scratchPlaces()
	for _, d := range b.req.Hidden {
		b.hide(&b.mounts, d, "bawn's own")
	}
	b.caches()
	for _, m := range b.iso.Mounts {
		if err := b.mount(m); err != nil {
			return err
		}
	}
	b.linkedWorktree()
	return nil
}

// mount adds one place that was asked for by name.
func (b *builder) mount(m bawn.Mount) error {
	f, ok := b.facts.Lookup(m.Path)
	if m.Access == bawn.Hidden {
		b.hide(&b.mounts, m.Path, m.Why)
		return nil
	}
	if !ok {
		return fmt.Errorf("%s: %q does not exist; create it first", m.Why, m.Path)
	}
	if m.Access == bawn.ReadOnly && b.isCredential(f.Real) && !b.opened("", m.Path) && !b.opened("", f.Real) {
		return fmt.Errorf("%s: %q holds credentials, which --ro does not open; use --open", m.Why, m.Path)
	}
	switch m.Access {
	case bawn.Private:
		b.mounts = append(b.mounts, Mount{Kind: kindTmpfs, Target: f.Real, SizeMB: b.iso.Resources.TmpMB, Mode: 0o700, Why: m.Why})
	case bawn.ReadOnly:
		b.mounts = append(b.mounts, Mount{Kind: kindBindRO, Source: f.Real, Target: f.Real, Why: m.Why, File: !f.Dir, id: f.ID})
	case bawn.ReadWrite:
		if f.Real == "/" {
			return fmt.Errorf("%s: the whole file system can't be writable; name the directories", m.Why)
		}
		b.mounts = append(b.mounts, Mount{Kind: kindBind, Source: f.Real, Target: f.Real, Why: m.Why, File: !f.Dir, id: f.ID})
		b.writable = append(b.writable, f.Real)
	}
	return nil
}

// directory returns the working directory inside, with links resolved: the
// guest must not start somewhere else than where the plan looked.
func (b *builder) directory() (string, error) {
	f, ok := b.facts.Lookup(b.req.Dir)
	if !ok || !f.Dir {
		return "", fmt.Errorf("working directory %q does not exist", b.req.Dir)
	}
	return f.Real, nil
}

// finish orders the mounts, outer ones first, drops what a later entry for
// the same target replaces, protects what is there already below writable
// places, and says what must be created on the way.
func (b *builder) finish() []Mount {
	byTarget := map[string]Mount{}
	for _, m := range b.mounts {
		byTarget[m.Target] = m
	}
	var list []Mount
	for _, m := range byTarget {
		list = append(list, m)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Target < list[j].Target })
	b.writable = b.writable[:0]
	for _, m := range list {
		if m.Kind == kindBind && m.Why != whyPrivateCache {
			b.writable = append(b.writable, m.Target)
		}
	}
	if b.iso.Protect {
		list = append(list, b.present(byTarget)...)
		sort.Strings(b.targets)
	}
	all := append(slices.Clip(b.fixed), list...)
	makeTargets(all)
	return all
}

// makeTargets fills Make: what has to be created below an empty place before
// a mount inside it has a target.
func makeTargets(all []Mount) {
	for i := range all {
		m := &all[i]
		outer := ""
		for _, o := range all[:i] {
			if below(m.Target, o.Target) && o.Kind != kindRoot && len(o.Target) > len(outer) {
				outer = o.Target
			}
		}
		if k := kindAt(all[:i], outer); outer == "" || (k != kindTmpfs && k != kindHideDir) {
			continue
		}
		for p := m.Target; p != outer; p = path.Dir(p) {
			m.Make = append([]string{p}, m.Make...)
		}
	}
	for i := range all { // a hidden directory that holds something must be able to
		if all[i].Kind == kindHideDir && holds(all[i+1:], all[i].Target) {
			all[i].Kind, all[i].Mode, all[i].SizeMB = kindTmpfs, 0o755, 1
		}
	}
}

func kindAt(mounts []Mount, target string) string {
	for i := len(mounts) - 1; i >= 0; i-- {
		if mounts[i].Target == target {
			return mounts[i].Kind
		}
	}
	return ""
}

func holds(mounts []Mount, dir string) bool {
	return slices.ContainsFunc(mounts, func(m Mount) bool { return below(m.Target, dir) })
}

// landlock lists the places that Landlock leaves writable.
func landlockWritable(mounts []Mount) []string {
	list := []string{"/dev"}
	for _, m := range mounts {
		if m.Kind == kindTmpfs || m.Kind == kindBind {
			list = append(list, m.Target)
		}
	}
	sort.Strings(list)
	return slices.Compact(list)
}

// below reports whether p lies strictly below dir; both are absolute and clean.
func below(p, dir string) bool {
	return p != dir && strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// Names of the providers.
const (
	Name         = "native"
	LandlockName = "landlock"
)
