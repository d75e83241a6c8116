package layout

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/devices"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Layout turns a request into a plan without touching anything: the guest's
// files, their places, and its environment. It errs when a place that was asked
// for does not exist, or the workspace is one that must not be written. Providers
// that make the sandbox with another engine carry out its Mounts, Env, Dir,
// Limits, Loopback, Network and Landlock, and report themselves what they
// enforce.
func Layout(req sandbox.Request, facts Facts) (*Plan, error) {
	iso := req.Session.Isolation
	facts.Lookup = remembered(facts.Lookup)
	b := &builder{req: req, iso: iso, facts: facts}
	p := &Plan{
		Rung:       RungNamespaces,
		Namespaces: []string{"user", "mount", "pid", "ipc", "uts", "cgroup"},
		UID:        Mapping{facts.UID, facts.UID}, GID: Mapping{facts.GID, facts.GID},
		Limits: iso.Resources, SharedCopy: req.SharedCopy, Argv: req.Argv, Session: req.Session.ID + req.Zone, ExtraNames: req.Protected, OpenNames: iso.Unprotected,
	}
	if facts.UID == 0 {
		p.UID.Inside, p.GID.Inside = facts.NobodyUID, facts.NobodyGID
	}
	if ownNetwork(iso) {
		p.Namespaces, p.Loopback = append(p.Namespaces, "net"), true
	}
	var err error
	if p.Network, err = b.network(); err != nil {
		return nil, err
	}
	if err := errors.Join(checkOpen(req.Open), b.checkTmp(), b.checkDevices()); err != nil {
		return nil, err
	}
	if err := b.workspace(); err != nil {
		return nil, err
	}
	b.base()
	if err := b.asked(); err != nil {
		return nil, err
	}
	if p.Mounts, err = b.finish(); err != nil {
		return nil, err
	}
	if p.Sockets, err = b.sockets(p.Mounts); err != nil {
		return nil, err
	}
	p.Protected = b.writable
	if b.req.Project {
		p.Projects = []string{b.root}
	}
	p.Absent, p.Targets, p.Guarded = b.unborn(), b.targets, b.kept
	p.Owned, p.InHome, p.Denied, p.Unprotected = b.owned(), b.places, b.deniedPatterns(), !iso.Protect
	p.Kept = b.keep(p.Mounts)
	if home, ok := b.facts.Lookup(b.home()); ok {
		p.Home, p.HomeID = home.Real, home.ID
	}
	for _, dir := range b.req.Hidden {
		if f, ok := b.facts.Lookup(dir); ok {
			p.Own = append(p.Own, f.Real)
		}
	}
	p.Supervised = true
	p.Programs, p.Holds = b.req.Programs != nil, b.req.Programs
	p.Seccomp = "guest, supervised"
	p.Landlock = Landlock{ABI: facts.LandlockABI, Writable: landlockWritable(p.Mounts)}
	if p.Dir, err = b.directory(); err != nil {
		return nil, err
	}
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
	found
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
	kept     []string // that the request guards, by their real names
	hidden   []string // places to hide as they were named, there or not
	private  []string // places of private git directories, by their real paths
	denied   []denied // patterns of names that are hidden
	guests   []string // places in which a guest makes names, once asked for
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
	case f.Real == home.Real || Below(home.Real, f.Real):
		return &WorkspaceError{w, "it is, or holds, your home directory"}
	case slices.Contains(systemDirs, f.Real) || Below(f.Real, "/usr") || Below(f.Real, "/etc") || Below(f.Real, "/proc") || Below(f.Real, "/sys") || Below(f.Real, "/dev"):
		return &WorkspaceError{w, "it belongs to the system"}
	}
	b.root = f.Real
	return nil
}

func (b *builder) home() string {
	return cmp.Or(b.req.Home, LookupEnv(b.req.Environ, "HOME"))
}

// base lays out the system places.
func (b *builder) base() {
	tmp := b.iso.Resources.TmpMB
	b.fixed = append(b.fixed,
		Mount{Kind: KindRoot, Source: "/", Target: "/", Why: "the system, read-only"},
		Mount{Kind: KindProc, Target: "/proc"})
	if ownNetwork(b.iso) {
		b.fixed = append(b.fixed, Mount{Kind: KindSysfs, Target: "/sys"})
	}
	b.fixed = append(b.fixed, Mount{Kind: KindDev, Target: "/dev", SizeMB: tmp, Devices: b.devices()})
	for _, place := range []string{"/tmp", "/var/tmp"} {
		if f, ok := b.facts.Lookup(place); ok && f.Dir && f.Real == place {
			b.fixed = append(b.fixed, b.temporary(place))
		}
	}
	if f, ok := b.facts.Lookup("/run"); ok && f.Dir {
		b.fixed = append(b.fixed, Mount{Kind: KindTmpfs, Target: "/run", SizeMB: tmp, Mode: 0o755, Make: runDirs(b.inside())})
	}
	hidden := systemHidden
	if b.facts.UID == 0 {
		hidden = append(slices.Clip(hidden), rootSecrets...)
	}
	for _, e := range b.there("/", hidden) {
		hideFile(&b.fixed, e.File, "the system's own")
	}
	if b.iso.Network == bawn.NetworkFull && b.facts.Resolver != "" {
		b.mounts = append(b.mounts, Mount{Kind: KindBindRO, Source: b.facts.Resolver, Target: b.facts.Resolver, File: true, Why: "name resolution"})
	}
}

// whySharedTmp marks the /tmp that the zones of a session share: a directory that
// Bawn has made for the session, empty when its sandboxes are made.
const whySharedTmp = "shared by the session's zones"

// temporary is the mount of /tmp or /var/tmp: an empty place, unless the
// request shares a /tmp.
func (b *builder) temporary(place string) Mount {
	if f, ok := b.facts.Lookup(b.req.Tmp); ok && place == "/tmp" && b.req.Tmp != "" {
		return Mount{Kind: KindBind, Source: f.Real, Target: place, Why: whySharedTmp, ID: f.ID}
	}
	return Mount{Kind: KindTmpfs, Target: place, SizeMB: b.iso.Resources.TmpMB, Mode: 0o1777}
}

// checkTmp refuses a shared /tmp that is not a directory or has no absolute path.
func (b *builder) checkTmp() error {
	if b.req.Tmp == "" {
		return nil
	}
	if f, ok := b.facts.Lookup(b.req.Tmp); !ok || !f.Dir || !path.IsAbs(b.req.Tmp) {
		return fmt.Errorf("a shared /tmp at %q: want a directory, by its absolute path", b.req.Tmp)
	}
	if f, ok := b.facts.Lookup("/tmp"); !ok || !f.Dir || f.Real != "/tmp" {
		return fmt.Errorf("a shared /tmp: %q is no directory here, or a link", "/tmp")
	}
	return nil
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

// devices are the minimal set, as far as it is there, and those asked for.
func (b *builder) devices() []string {
	var list []string
	for _, d := range append([]string{"null", "zero", "full", "random", "urandom", "tty"}, b.iso.Devices...) {
		if _, ok := b.facts.Lookup("/dev/" + d); ok && !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	return list
}

// checkDevices refuses devices that no session may have, and those that are not
// there.
func (b *builder) checkDevices() error {
	for _, d := range b.iso.Devices {
		if !devices.Allowed(d) {
			return fmt.Errorf("device %q is not of a kind that a session may have", d)
		}
		if _, ok := b.facts.Lookup("/dev/" + d); !ok {
			return fmt.Errorf("device %q does not exist; leave it out", d)
		}
	}
	return nil
}

// hide covers a path with something empty, if it is there.
func (b *builder) hide(list *[]Mount, p, why string) {
	b.hidden = append(b.hidden, p)
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
		if slices.ContainsFunc(b.writable, func(w string) bool { return Below(p, w) }) {
			list = append(list, p)
		}
	}
	sort.Strings(list)
	return slices.Compact(list)
}

func hideFile(list *[]Mount, f File, why string) {
	kind := KindHide
	if f.Dir {
		kind = KindHideDir
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
	if err := b.caches(); err != nil {
		return err
	}
	for _, m := range b.iso.Mounts {
		if err := b.mount(m); err != nil {
			return err
		}
	}
	if err := b.git(); err != nil {
		return err
	}
	return b.denyAll()
}

// mount adds one place that was asked for by name.
func (b *builder) mount(m bawn.Mount) error {
	if isPattern(m) {
		return b.deny(m)
	}
	f, ok, err := b.resolve(m.Why, m.Path)
	if err != nil {
		return err
	}
	if m.Access == bawn.Hidden {
		return b.hideNamed(m, ok)
	}
	if !ok {
		return fmt.Errorf("%s: %q does not exist; create it first", m.Why, m.Path)
	}
	if m.Access == bawn.ReadOnly && b.isCredential(f.Real) && !b.opened("", m.Path) && !b.opened("", f.Real) {
		return fmt.Errorf("%s: %q holds credentials, which --ro does not open; use --open", m.Why, m.Path)
	}
	switch m.Access {
	case bawn.Private:
		b.mounts = append(b.mounts, Mount{Kind: KindTmpfs, Target: f.Real, SizeMB: b.iso.Resources.TmpMB, Mode: 0o700, Why: m.Why})
	case bawn.ReadOnly:
		if b.isCopied(f) && b.looksOn() {
			return b.copied(f, true)
		}
		b.mounts = append(b.mounts, Mount{Kind: KindBindRO, Source: f.Real, Target: f.Real, Why: m.Why, File: !f.Dir, ID: f.ID})
	case bawn.ReadWrite:
		private := slices.ContainsFunc(b.req.Git, func(g bawn.GitDir) bool { return g.Path == f.Real })
		if path.Base(f.Real) == ".git" && !private {
			return fmt.Errorf("%s: %q is a git directory of the host, which a session can't write; run the session in that repository", m.Why, m.Path)
		}
		if b.isCopied(f) {
			return b.copied(f, false)
		}
		if f.Real == "/" {
			return fmt.Errorf("%s: the whole file system can't be writable; name the directories", m.Why)
		}
		b.mounts = append(b.mounts, Mount{Kind: KindBind, Source: f.Real, Target: f.Real, Why: m.Why, File: !f.Dir, ID: f.ID})
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

// finish orders the mounts, outer ones first, and drops those that a later one
// for the same target replaces. It protects existing names below writable
// places, adds the files of the request, and lists what must be created on the
// way.
func (b *builder) finish() ([]Mount, error) {
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
		if m.Kind == KindBind && m.Why != WhyPrivateCache && m.Why != WhyPrivateGit {
			b.writable = append(b.writable, m.Target)
		}
	}
	b.ways()
	list = append(list, b.guarded(byTarget)...)
	if b.iso.Protect {
		list = append(list, b.present(byTarget)...)
	}
	sort.Strings(b.targets)
	// Protected mounts are ordered by their place too: mounted last they would
	// uncover hidden places below.
	slices.SortStableFunc(list, func(x, y Mount) int { return strings.Compare(x.Target, y.Target) })
	list = slices.CompactFunc(list, func(x, y Mount) bool { return x.Target == y.Target })
	all := append(slices.Clip(b.fixed), list...)
	all = append(all, b.users(all)...)
	files, err := b.files(all)
	if err != nil {
		return nil, err
	}
	all = append(all, files...)
	makeTargets(all)
	return all, nil
}

// landlock lists the places that Landlock leaves writable.
func landlockWritable(mounts []Mount) []string {
	list := []string{"/dev"}
	for _, m := range mounts {
		if m.Kind == KindTmpfs || m.Kind == KindBind || m.Kind == KindCopy && !m.ReadOnly {
			list = append(list, m.Target)
		}
	}
	sort.Strings(list)
	return slices.Compact(list)
}

// Below reports whether p lies strictly below dir; both are absolute and clean.
func Below(p, dir string) bool {
	dir = strings.TrimSuffix(dir, "/")
	return len(p) > len(dir)+1 && p[len(dir)] == '/' && p[:len(dir)] == dir
}

// Names of the providers.
const (
	NativeName   = "native"
	LandlockName = "landlock"
)
