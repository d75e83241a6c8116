package native

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/landlock"
	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/linux/seccomp"
	"github.com/bawn-dev/bawn/internal/protect"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// staging is where the new root is assembled before pivot_root. No source of
// a mount lies below /proc, so covering it hides nothing from the program.
const staging = "/proc"

// program is a plan turned into system calls.
type program struct {
	kernel.Steps
	namespaces uintptr
	root       rawproc.Slot    // O_PATH of the guest's root, for the supervisor
	listener   rawproc.Slot    // of the seccomp filter, for the supervisor
	spaces     []rawproc.Slot  // the mount namespace, for the refresher
	copies     []rawproc.Slot  // the mount of a copy, for another sandbox
	taken      *rawproc.Slot   // that of another one; nil where this makes its own
	made       map[string]bool // directories for targets of mounts, where nothing is mounted over them
}

var cloneFlags = map[string]uintptr{
	"user": unix.CLONE_NEWUSER, "mount": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID, "ipc": unix.CLONE_NEWIPC,
	"uts": unix.CLONE_NEWUTS, "net": unix.CLONE_NEWNET,
}

// compile turns the plan into a program in one piece, for a guest without limits.
func compile(p *layout.Plan) (*program, error) {
	c := newProgram()
	c.enter(everyNamespace, p.Namespaces, p.Loopback)
	c.assemble(p)
	return c, c.confine(p)
}

// everyNamespace is for a child for which nobody waits: it starts in all of its
// namespaces at once.
const everyNamespace = ^uintptr(0)

// enter makes the namespaces: the child is born in those of first, and makes the
// others itself.
func (c *program) enter(first uintptr, namespaces []string, loopback bool) {
	var all uintptr
	for _, ns := range namespaces {
		all |= cloneFlags[ns]
	}
	c.namespaces = all & first
	c.Call("die with the parent", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, int(unix.SIGKILL), 0, 0, 0)
	if rest := all &^ first; rest != 0 {
		c.Call("create namespaces", unix.SYS_UNSHARE, rest)
	}
	if loopback {
		c.Loopback()
	}
}

// assemble makes the guest's users, its network, and its tree beside the host's.
func (c *program) assemble(p *layout.Plan) {
	c.Identity(p)
	if p.Network != nil {
		c.Network(p.Network)
	}
	for _, m := range p.Mounts {
		if c.mount(m); m.Kind == layout.KindCopy && p.SharedCopy != nil && c.taken == nil {
			c.give(m)
		}
	}
}

// confine takes everything away that is not the guest's.
func (c *program) confine(p *layout.Plan) error {
	c.Call("new cgroup namespace", unix.SYS_UNSHARE, unix.CLONE_NEWCGROUP)
	c.pivot()
	c.openRoot()
	c.openMounts()
	c.session()
	c.limits(p.Limits)
	c.landlock(p.Landlock)
	c.capabilities()
	rules := seccomp.Guest(p.Supervised)
	if p.OwnFiles {
		rules = seccomp.GuestOfOwnFiles()
	}
	if p.Programs {
		rules = append(rules, seccomp.Programs()...)
	}
	return c.seccomp(rules, p.Supervised)
}

// ready are the descriptors that the program hands back.
func (c *program) ready() []rawproc.Slot {
	return slices.Concat([]rawproc.Slot{c.root, c.listener}, c.Sockets, c.spaces, c.copies)
}

func newProgram() *program {
	c := &program{Steps: kernel.NewSteps(), made: map[string]bool{}}
	c.root, c.listener = c.NewSlot(), c.NewSlot()
	return c
}

// join enters control groups, whose files are open.
func (c *program) join(procs []*os.File) {
	for _, f := range procs {
		c.Call("join "+f.Name(), unix.SYS_WRITE, int(f.Fd()), "0", 1)
	}
}

// joinLater is join for files that come with the opening of a gate.
func (c *program) joinLater(procs []*os.File, slots []rawproc.Slot) {
	for i, f := range procs {
		c.Call("join "+f.Name(), unix.SYS_WRITE, slots[i], "0", 1)
		c.Call("close "+f.Name(), unix.SYS_CLOSE, slots[i])
	}
}

// at is where a place of the guest is while its root is assembled.
func at(target string) string {
	if target == "/" {
		return staging
	}
	return staging + target
}

func (c *program) mount(m layout.Mount) {
	c.makeTargets(m)
	maps.DeleteFunc(c.made, func(p string, _ bool) bool { return layout.Below(p, m.Target) })
	switch m.Kind {
	case layout.KindRoot, layout.KindBind, layout.KindBindRO, layout.KindPool:
		c.bind(m)
	case layout.KindCopy:
		c.copied(m)
	case layout.KindTmpfs:
		c.fs("tmpfs", m.Target, unix.MS_NOSUID|unix.MS_NODEV, tmpfsOptions(m.SizeMB, m.Mode))
		for _, d := range madeInside(m) {
			c.Call("mkdir "+d, unix.SYS_MKDIRAT, unix.AT_FDCWD, at(d), 0o755).Ignoring(unix.EEXIST)
		}
	case layout.KindProc:
		c.fs("proc", m.Target, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "")
	case layout.KindSysfs:
		c.fs("sysfs", m.Target, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "")
	case layout.KindDev:
		c.dev(m)
	case layout.KindHideDir:
		c.cover(m, layout.HiddenDir)
	case layout.KindHide:
		c.cover(m, layout.HiddenFile)
	}
}

// madeInside are the directories a tmpfs is to be born with; for every other
// mount Make names what its own target needs.
func madeInside(m layout.Mount) []string {
	if len(m.Make) > 0 && layout.Below(m.Make[0], m.Target) {
		return m.Make
	}
	return nil
}

func (c *program) makeTargets(m layout.Mount) {
	if madeInside(m) != nil {
		return
	}
	for i, p := range m.Make {
		if m.File && i == len(m.Make)-1 || m.Kind == layout.KindHide && i == len(m.Make)-1 {
			c.Call("create "+p, unix.SYS_MKNODAT, unix.AT_FDCWD, at(p), unix.S_IFREG|0o644, 0).Ignoring(unix.EEXIST)
		} else if !c.made[p] {
			c.Call("mkdir "+p, unix.SYS_MKDIRAT, unix.AT_FDCWD, at(p), 0o755).Ignoring(unix.EEXIST)
			c.made[p] = true
		}
	}
}

// bind clones a part of the host's tree, makes the clone private, so that later
// mounts of the host do not appear in it, and sets its flags as a whole. Only
// then it attaches the clone.
func (c *program) bind(m layout.Mount) {
	fd := c.FD
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if m.Kind != layout.KindBind && m.Kind != layout.KindPool {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	c.Call("clone "+m.Source, unix.SYS_OPEN_TREE, unix.AT_FDCWD, m.Source,
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW).Into(fd)
	if m.ID != (layout.Identity{}) {
		c.ExpectIdentity("find the same "+m.Source+" as before", fd, rawproc.Identity(m.ID))
	}
	c.Call("set flags of "+m.Target, unix.SYS_MOUNT_SETATTR, fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
		rawproc.Put(&c.Program, attr), int(unsafe.Sizeof(attr)))
	c.Call("attach "+m.Target, unix.SYS_MOVE_MOUNT, fd, "", unix.AT_FDCWD, at(m.Target), unix.MOVE_MOUNT_F_EMPTY_PATH)
	c.Call("close "+m.Source, unix.SYS_CLOSE, fd)
}

func (c *program) fs(fstype, target string, flags int, options string) {
	c.Call("mount "+fstype+" on "+target, unix.SYS_MOUNT, fstype, at(target), fstype, flags, options)
}

func tmpfsOptions(sizeMB int64, mode uint32) string {
	options := fmt.Sprintf("mode=%o,nr_inodes=1m", mode)
	if sizeMB > 0 {
		options += fmt.Sprintf(",size=%dm", sizeMB)
	}
	return options
}

// cover hides a place. The cover comes from a read-only mount, so that its
// owner, the guest, can't open it up with chmod. What is gone again in a closed home
// needs none: only names that were there at the start are hidden.
func (c *program) cover(m layout.Mount, with string) {
	step := c.Call("hide "+m.Target, unix.SYS_MOUNT, at(with), at(m.Target), 0, unix.MS_BIND, 0)
	if m.Why == protect.ClosedHome {
		step.Ignoring(unix.ENOENT)
	}
}

// dev builds a minimal /dev and makes it read-only; devices stay usable.
func (c *program) dev(m layout.Mount) {
	dir := m.Target
	c.fs("tmpfs", dir, unix.MS_NOSUID|unix.MS_NOEXEC, tmpfsOptions(1, 0o755))
	for _, d := range m.Devices {
		c.device(path.Join(dir, d), "/dev/"+d)
	}
	for _, d := range []string{dir + "/pts", dir + "/shm"} {
		c.Call("mkdir "+d, unix.SYS_MKDIRAT, unix.AT_FDCWD, at(d), 0o755)
	}
	c.Call("mkdir "+layout.HiddenDir, unix.SYS_MKDIRAT, unix.AT_FDCWD, at(layout.HiddenDir), 0)
	for _, d := range m.Make { // for a pool
		c.Call("mkdir "+d, unix.SYS_MKDIRAT, unix.AT_FDCWD, at(d), 0)
	}
	c.Call("create "+layout.HiddenFile, unix.SYS_MKNODAT, unix.AT_FDCWD, at(layout.HiddenFile), unix.S_IFREG, 0)
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		c.Call("link /dev/"+name, unix.SYS_SYMLINKAT, to, unix.AT_FDCWD, at(dir+"/"+name))
	}
	c.fs("devpts", dir+"/pts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	c.fs("tmpfs", dir+"/shm", unix.MS_NOSUID|unix.MS_NODEV, tmpfsOptions(m.SizeMB, 0o1777))
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC}
	c.Call("make /dev read-only", unix.SYS_MOUNT_SETATTR, unix.AT_FDCWD, at(dir), 0, rawproc.Put(&c.Program, attr), int(unsafe.Sizeof(attr)))
}

// device binds one device of the host, creating the directories on the way.
func (c *program) device(target, source string) {
	for i, r := range target[len("/dev/"):] {
		if r == '/' {
			c.Call("mkdir for "+target, unix.SYS_MKDIRAT, unix.AT_FDCWD, at(target[:len("/dev/")+i]), 0o755).Ignoring(unix.EEXIST)
		}
	}
	c.Call("create "+target, unix.SYS_MKNODAT, unix.AT_FDCWD, at(target), unix.S_IFREG|0o644, 0)
	c.Call("bind "+source, unix.SYS_MOUNT, source, at(target), 0, unix.MS_BIND, 0)
}

// pivot makes the staged tree the root and releases the old one.
func (c *program) pivot() {
	c.Call("enter the new root", unix.SYS_CHDIR, staging)
	c.Call("pivot_root", unix.SYS_PIVOT_ROOT, ".", ".")
	c.Call("let go of the old root", unix.SYS_UMOUNT2, ".", unix.MNT_DETACH)
	c.Call("enter /", unix.SYS_CHDIR, "/")
}

// openRoot opens the supervisor's descriptors of the guest.
func (c *program) openRoot() {
	c.Call("open the new root", unix.SYS_OPENAT, unix.AT_FDCWD, "/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC).Into(c.root)
}

// openMounts opens the refresher's descriptors of the guest. From outside an
// ordinary user could not: PID 1 is not dumpable later.
func (c *program) openMounts() {
	ns := c.NewSlot()
	c.Call("open the mount namespace", unix.SYS_OPENAT, unix.AT_FDCWD, "/proc/self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC).Into(ns)
	c.spaces = []rawproc.Slot{ns}
}

// session leaves the user's terminal behind and gives PID 1 nothing to read.
func (c *program) session() {
	fd := c.FD
	c.Call("new session", unix.SYS_SETSID)
	c.Call("open /dev/null", unix.SYS_OPENAT, unix.AT_FDCWD, "/dev/null", unix.O_RDWR|unix.O_CLOEXEC).Into(fd)
	for i := range 3 {
		c.Call("close the user's terminal", unix.SYS_DUP3, fd, i, 0)
	}
	c.Call("close /dev/null", unix.SYS_CLOSE, fd)
	c.Call("hide PID 1's memory", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// limits sets rlimits: never above the caller's.
func (c *program) limits(r bawn.Resources) {
	for _, l := range append(layout.Rlimits(r), layout.Pending()) {
		c.Call("limit "+l.Name, unix.SYS_PRLIMIT64, 0, l.Resource, rawproc.Put(&c.Program, unix.Rlimit{Cur: l.Value, Max: l.Value}), 0)
	}
}

// landlock states the write policy a second time, and keeps signals and
// abstract sockets inside, as far as this kernel's version goes.
func (c *program) landlock(l layout.Landlock) {
	c.Call("no new privileges", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if l.ABI == 0 {
		return
	}
	attr, size := landlock.Handled(l.ABI)
	ruleset := c.NewSlot()
	c.Call("create a Landlock ruleset", unix.SYS_LANDLOCK_CREATE_RULESET, rawproc.Put(&c.Program, attr), size, 0).Into(ruleset)
	for _, r := range l.Rules() {
		c.landlockRule(ruleset, r.Path, r.Rights&attr.FS, slices.Contains(l.Readable, r.Path))
	}
	c.Call("restrict by Landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, landlock.RestrictFlags(l.ABI))
	c.Call("close the ruleset", unix.SYS_CLOSE, ruleset)
}

// landlockRule opens one place to the guest. A place that may be gone then has
// no rule, which only closes more: its descriptor is -1.
func (c *program) landlockRule(ruleset rawproc.Slot, p string, rights uint64, mayBeGone bool) {
	var absent, none []unix.Errno
	if mayBeGone {
		absent, none = []unix.Errno{unix.ENOENT}, []unix.Errno{unix.EBADF}
	}
	if fi, err := os.Stat(p); err == nil && !fi.IsDir() {
		rights &= landlock.FileRights
	}
	fd := c.FD
	beneath := rawproc.Put(&c.Program, *landlock.NewPathBeneath(rights))
	c.Call("open "+p, unix.SYS_OPENAT, unix.AT_FDCWD, p, unix.O_PATH|unix.O_CLOEXEC).Ignoring(absent...).Into(fd).StoreFD((*landlock.PathBeneath)(beneath).FD())
	c.Call("allow "+p, unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, beneath, 0).Ignoring(none...)
	c.Call("close "+p, unix.SYS_CLOSE, fd).Ignoring(none...)
}

// capabilities permanently drops all of them, for root as for anybody.
func (c *program) capabilities() {
	const last = 63 // the kernel answers EINVAL above its own last one
	for i := range last + 1 {
		c.Call("drop a capability for good", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, i, 0, 0, 0).Ignoring(unix.EINVAL, unix.EPERM)
	}
	c.Call("drop ambient capabilities", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	c.Call("drop capabilities", unix.SYS_CAPSET, rawproc.Put(&c.Program, header), rawproc.Put(&c.Program, [2]unix.CapUserData{}))
}

// seccomp is the last step: from here on PID 1 is under its own filter.
func (c *program) seccomp(rules []seccomp.Rule, supervised bool) error {
	filter, err := seccomp.Compile(rules)
	if err != nil {
		return err
	}
	prog := rawproc.Put(&c.Program, unix.SockFprog{Len: uint16(len(filter)), Filter: rawproc.Array(&c.Program, filter)})
	flags := 0
	if supervised {
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	c.Call("load the seccomp filter", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, prog).Into(c.listener)
	return nil
}
