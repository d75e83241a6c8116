package native

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/linux/landlock"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sealed"
)

// Provider is the sandbox made of the kernel's own parts.
type Provider struct {
	facts      Facts
	support    cgroup.Support
	net        netSupport
	spaces     spaceSupport
	probeCache string
	embryo     *Embryo
	early      chan *birth // what Prepare has begun, and nobody has taken
}

// New looks at this machine. What control groups and network namespaces can do
// takes a trial; where probeCache names a file, the outcome is kept there until
// the machine is booted again. A stale outcome only makes Start fail.
func New(probeCache string) *Provider {
	found := probe(probeCache)
	p := &Provider{support: found.groups, net: found.net, spaces: found.spaces, probeCache: probeCache, early: make(chan *birth, 1)}
	abi, _ := landlock.ABI()
	p.facts = Facts{
		UID: os.Geteuid(), GID: os.Getegid(), LandlockABI: abi, IPv6: p.net.ipv6,
		Lookup: lookup, Sealed: lookupSealed, Present: present, Follow: follow, Links: linksIn, ReadFile: readSmall, List: listed, Resolver: resolver(),
	}
	if p.facts.UID == 0 {
		p.facts.NobodyUID, p.facts.NobodyGID = nobody()
	}
	p.facts.Capabilities = p.Capabilities()
	return p
}

// Name returns "native".
func (*Provider) Name() string { return Name }

// Abilities says that all is there: the mounts are the session's own.
func (*Provider) Abilities() sandbox.Abilities { return sandbox.Abilities{Door: true, Split: true} }

// Plan makes a plan without touching anything. It errs with a
// *sandbox.MismatchError when the isolation asks for more than can be
// enforced here.
func (p *Provider) Plan(req sandbox.Request) (sandbox.Plan, error) {
	p = p.again(req.Session.Isolation)
	partly, err := sandbox.Negotiate(req.Session.Isolation, p)
	if err != nil {
		return nil, err
	}
	plan, err := Layout(req, p.facts)
	if err != nil {
		return nil, err
	}
	plan.InPart = partly
	return plan, nil
}

// again looks once more whether a network that is asked for can be had, where
// it could not: a remedy may have been applied since.
func (p *Provider) again(iso bawn.Isolation) *Provider {
	if iso.Network != bawn.NetworkAllowlist || p.net.ok {
		return p
	}
	now := *p
	now.net = probeNetwork()
	now.facts.IPv6 = now.net.ipv6
	if now.net.ok {
		forget(p.probeCache)
	}
	return &now
}

// Start carries a plan out.
func (p *Provider) Start(plan sandbox.Plan, onDenial func(sandbox.Denial)) (sandbox.Guest, error) {
	n, err := own(plan)
	if err != nil {
		return nil, err
	}
	g, err := p.start(n, nil, onDenial)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Launch carries a plan out and starts its first command.
func (p *Provider) Launch(plan sandbox.Plan, c sandbox.Command, onDenial func(sandbox.Denial)) (sandbox.Guest, sandbox.Process, error) {
	n, err := own(plan)
	if err != nil {
		return nil, nil, err
	}
	proc := newProcess()
	first, err := n.command(c, proc)
	if err != nil {
		return nil, nil, err
	}
	g, err := p.start(n, &first, onDenial)
	if err != nil {
		return nil, nil, err
	}
	if proc.pid, err = g.init.First(); err != nil {
		return nil, nil, errors.Join(n.startError(c, err), g.Close())
	}
	proc.guest = g
	return g, proc, nil
}

// own is a plan that this package has made.
func own(plan sandbox.Plan) (*Plan, error) {
	n, ok := plan.(*Plan)
	if !ok {
		return nil, fmt.Errorf("BUG(bawn): %T is no plan of provider %q", plan, Name)
	}
	return n, nil
}

// Facts are those of this machine, for Layout.
func (p *Provider) Facts() Facts { return p.facts }

// Group makes the control group for the limits of a plan that one can enforce
// here; nil where there is none to make. The caller removes it.
func (p *Provider) Group(n *Plan) (*cgroup.Group, error) {
	var l cgroup.Limits
	if p.support.Memory.Version > 0 {
		l.MemoryMB = n.Limits.MemoryMB
	}
	if p.support.PIDs.Version > 0 {
		l.PIDs = n.Limits.PIDs
	}
	if p.support.CPU.Version > 0 {
		l.CPUs, l.CPUShares = n.Limits.CPUs, n.Limits.CPUShares
	}
	if l == (cgroup.Limits{}) {
		return nil, nil
	}
	return cgroup.New(n.Session, l)
}

// lookup finds a path on the host, links followed.
func lookup(p string) (File, bool) {
	fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return File{}, false
	}
	defer unix.Close(fd)
	return fileOf(fd)
}

// lookupSealed finds a path in a sealed directory of Bawn's. It is not for paths
// that a user or a guest names.
func lookupSealed(p string) (File, bool) {
	f, err := sealed.Reach(p)
	if err != nil {
		return File{}, false
	}
	defer f.Close()
	return fileOf(int(f.Fd()))
}

func fileOf(fd int) (File, bool) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return File{}, false
	}
	real, err := pathOf(fd)
	if err != nil {
		return File{}, false
	}
	kind := st.Mode & unix.S_IFMT
	return File{Real: real, Dir: kind == unix.S_IFDIR, Socket: kind == unix.S_IFSOCK, ID: Identity{st.Dev, st.Ino}}, true
}

// present returns those of names that are in dir. What is plainly there costs
// one system call; what is reached through a directory or a link of its own is
// looked up in full.
func present(dir string, names []string) []Entry {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	base, err := pathOf(fd)
	if err != nil {
		return nil
	}
	var list []Entry
	for _, n := range spelledOut(dir, names) {
		var st unix.Stat_t
		if unix.Fstatat(fd, strings.TrimPrefix(n, "/"), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		if strings.Contains(n, "/") || st.Mode&unix.S_IFMT == unix.S_IFLNK {
			f, _ := lookup(path.Join(dir, n)) // nothing, for a link that leads nowhere
			list = append(list, Entry{n, f})
			continue
		}
		list = append(list, Entry{n, File{Real: path.Join(base, n), Dir: st.Mode&unix.S_IFMT == unix.S_IFDIR, ID: Identity{st.Dev, st.Ino}}})
	}
	return list
}

// pathOf is the path of an open file, links resolved.
func pathOf(fd int) (string, error) {
	link := "/proc/self/fd/" + strconv.Itoa(fd)
	var short [256]byte // few paths are longer, and it takes no allocation
	n, err := unix.Readlink(link, short[:])
	if err != nil || n < len(short) {
		return string(short[:max(n, 0)]), err
	}
	long := make([]byte, unix.PathMax)
	n, err = unix.Readlink(link, long)
	return string(long[:max(n, 0)]), err
}

// readSmall reads a file of a git directory: regular, not through a link.
func readSmall(p string) (string, error) {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), p)
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return "", fmt.Errorf("%q is no regular file", p)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxConfig))
	return string(text), err
}

// resolver returns where /etc/resolv.conf leads if that is below /run, which
// is private in a session.
func resolver() string {
	if f, ok := lookup("/etc/resolv.conf"); ok && below(f.Real, "/run") {
		return f.Real
	}
	return ""
}

// nobody returns the ids that root has inside: those of user "nobody", so that
// programs find a name for them.
func nobody() (uid, gid int) {
	const overflow = 65534
	text, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return overflow, overflow
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 || f[0] != "nobody" {
			continue
		}
		u, err1 := strconv.Atoi(f[2])
		g, err2 := strconv.Atoi(f[3])
		if err1 == nil && err2 == nil && u > 0 && g > 0 {
			return u, g
		}
	}
	return overflow, overflow
}

// Capabilities says what this provider enforces here: nothing, where the sandbox
// can't be made.
func (p *Provider) Capabilities() []bawn.Capability { return p.spaces.unless(p.promised()) }

// promised is what each mechanism is worth where the sandbox can be made.
func (p *Provider) promised() []bawn.Capability {
	yes := func(attribute, how string) bawn.Capability {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Enforced, How: how}
	}
	write := "read-only mounts"
	if p.facts.LandlockABI > 0 {
		write += fmt.Sprintf(" and Landlock (ABI %d)", p.facts.LandlockABI)
	}
	return []bawn.Capability{
		yes(sandbox.FSWrite, write),
		yes(sandbox.FSRead, "covered by empty mounts"),
		sandbox.PatternsSupervised(),
		yes(sandbox.FSProtect, "seccomp user notification: the supervisor opens and names files itself"),
		yes(sandbox.FSPrivate, "tmpfs"),
		yes(sandbox.Processes, "PID namespace that ends with the session"),
		yes(sandbox.IPC, "IPC namespace; UNIX sockets connected by the supervisor"),
		yes(sandbox.Kernel, "seccomp filter, no capability, no new privileges"),
		yes(sandbox.Terminal, "new session, own pseudo-terminal, TIOCSTI and TIOCLINUX refused"),
		yes(sandbox.NetNone, "empty network namespace"),
		yes(sandbox.NetFull, "the host's network"),
		p.net.capability(),
		limit(sandbox.LimitMemory, p.support.Memory, "RLIMIT_DATA: each process by itself", bawn.Partly),
		limit(sandbox.LimitPIDs, p.support.PIDs, "RLIMIT_NPROC in the user namespace", p.nproc()),
		limit(sandbox.LimitCPU, p.support.CPU, "", bawn.Unenforced),
		yes(sandbox.LimitFiles, "RLIMIT_NOFILE"),
		yes(sandbox.LimitFileSize, "RLIMIT_FSIZE"),
		yes(sandbox.LimitTime, "the whole session is killed"),
		yes(sandbox.DevicesByName, "bound into a minimal /dev"),
	}
}

// Limits says what each limit is worth here, whether or not the sandbox can be
// made: for other engines, which hold a guest by the same means.
func (p *Provider) Limits() []bawn.Capability {
	return slices.DeleteFunc(p.promised(), func(c bawn.Capability) bool { return !strings.HasPrefix(c.Attribute, "limits.") })
}

// limit describes one limit: by control group, or else by something weaker.
func limit(attribute string, c cgroup.Controller, otherwise string, strength bawn.Strength) bawn.Capability {
	switch {
	case c.Version == 0:
		return bawn.Capability{Attribute: attribute, Strength: strength, How: otherwise, Why: c.Why, Remedy: c.Remedy}
	case c.Partly != "":
		return bawn.Capability{Attribute: attribute, Strength: bawn.Partly, How: fmt.Sprintf("control group v%d", c.Version), Why: c.Partly, Remedy: c.Remedy}
	}
	return bawn.Capability{Attribute: attribute, Strength: bawn.Enforced, How: fmt.Sprintf("control group v%d", c.Version)}
}

// nproc is what RLIMIT_NPROC is worth: the kernel never applies it to root
// (setrlimit(2)).
func (p *Provider) nproc() bawn.Strength {
	if p.facts.UID == 0 {
		return bawn.Unenforced
	}
	return bawn.Enforced
}

// maxConfig bounds what is read of a git directory's small files.
const maxConfig = 64 << 10
