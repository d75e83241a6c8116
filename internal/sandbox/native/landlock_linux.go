package native

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/landlock"
	"github.com/bawn-dev/bawn/internal/linux/seccomp"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// LandlockProvider is the next rung, for machines where user namespaces are
// closed. It has Landlock, a stricter seccomp filter and the supervisor, but no
// own file system, process table or terminal devices for the guest. It is used
// only by name, and reports what it can't enforce.
type LandlockProvider struct{ native *Provider }

// NewLandlock looks at this machine.
func NewLandlock(probeCache string) *LandlockProvider {
	return &LandlockProvider{New(probeCache)}
}

// Name returns "landlock".
func (*LandlockProvider) Name() string { return layout.LandlockName }

// Capabilities says what this rung enforces here.
func (p *LandlockProvider) Capabilities() []bawn.Capability {
	abi := p.native.facts.LandlockABI
	if abi < 1 {
		_, err := landlock.ABI()
		return []bawn.Capability{{Attribute: sandbox.FSWrite, Why: fmt.Sprint(err), Remedy: "boot with lsm=landlock,... or use Linux 5.13 or newer"}}
	}
	partly := func(attribute, how, why string) bawn.Capability {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Partly, How: how, Why: why, Remedy: "use provider \"native\""}
	}
	all := []bawn.Capability{
		partly(sandbox.FSWrite, fmt.Sprintf("Landlock (ABI %d) and the supervisor", abi), "modes, times and attributes of the user's own files can be changed"),
		partly(sandbox.FSRead, "Landlock", "names and sizes of hidden files can be seen"),
		partly(sandbox.FSPrivate, "a temporary directory of the session's own", "/tmp, /run and /dev/shm are the host's, read-only"),
		partly(sandbox.Processes, "no signal and no ptrace leaves the session", "the host's processes can be seen"),
		partly(sandbox.IPC, "System V and POSIX calls refused; UNIX sockets connected by the supervisor", "none may be used inside either"),
	}
	all = append(all, bawn.Capability{Attribute: sandbox.DevicesByName, Strength: bawn.Enforced, How: "Landlock: no other device can be opened"})
	if abi < confinesSignals {
		all[3].Why += "; this kernel's Landlock does not confine signals, and a guest outlives a Bawn that is killed"
	}
	all = append(all, bawn.Capability{Attribute: sandbox.NetAllow, Why: "without a network namespace nothing leads the guest's connections to the relay", Remedy: "use provider \"native\", or --net none"})
	all = append(all, bawn.Capability{Attribute: sandbox.FSPatterns, Why: "Landlock can't close a file inside a place that is open", Remedy: "use provider \"native\""})
	for _, c := range p.native.promised() {
		switch c.Attribute {
		case sandbox.FSProtect, sandbox.Kernel, sandbox.NetFull, sandbox.LimitMemory, sandbox.LimitCPU,
			sandbox.LimitFiles, sandbox.LimitFileSize, sandbox.LimitTime:
			all = append(all, c)
		case sandbox.Terminal:
			all = append(all, partly(c.Attribute, c.How, "/dev/pts is the host's, so that the guest opens no terminal but its own: tmux and its like do not work inside"))
		case sandbox.NetNone:
			c.How = "no IP sockets, not even on loopback"
			all = append(all, c)
		case sandbox.LimitPIDs:
			if p.native.Groups().PIDs.Version == 0 {
				c.Strength, c.How = bawn.Partly, "RLIMIT_NPROC: counts all of the user's processes"
			}
			all = append(all, c)
		}
	}
	return all
}

// Plan makes a plan. It errs like Provider.Plan.
func (p *LandlockProvider) Plan(req sandbox.Request) (sandbox.Plan, error) {
	partly, err := sandbox.Negotiate(req.Session.Isolation, p)
	if err != nil {
		return nil, err
	}
	if req.Tmp != "" {
		return nil, fmt.Errorf("provider %q can't share a /tmp between sandboxes; use provider %q", layout.LandlockName, layout.NativeName)
	}
	if len(req.Files) > 0 {
		return nil, fmt.Errorf("provider %q can't show %q to the guest at %q; use provider %q", layout.LandlockName, req.Files[0].Source, req.Files[0].Target, layout.NativeName)
	}
	req.Git, req.GitPool = nil, "" // nothing can be mounted: the host's stay read-only
	plan, err := layout.Layout(req, p.native.facts)
	if err != nil {
		return nil, err
	}
	own := p.lower(plan, partly)
	for _, m := range plan.Mounts {
		hides := m.Kind == layout.KindHide || m.Kind == layout.KindHideDir || m.Kind == layout.KindBindRO && m.Why != layout.WhyProtected && m.Why != layout.WhyHostGit && m.Why != layout.WhyGuarded // those the supervisor keeps, by their names
		if hides && slices.ContainsFunc(own.Landlock.Writable, func(w string) bool { return layout.Below(m.Target, w) }) {
			return nil, fmt.Errorf("provider %q can't close %q inside a writable place; use provider %q", layout.LandlockName, m.Target, layout.NativeName)
		}
	}
	return own, nil
}

// lower turns a plan with mounts into one without.
func (p *LandlockProvider) lower(plan *layout.Plan, partly []bawn.Capability) *layout.Plan {
	hidden, own := []string{"/dev"}, *plan // a guest of root's could read the disks
	var writable []string
	for _, m := range plan.Mounts {
		switch m.Kind {
		case layout.KindDev:
			for _, d := range m.Devices {
				writable = append(writable, "/dev/"+d)
			}
		case layout.KindHide, layout.KindHideDir:
			if !layout.Below(m.Target, "/proc") && !layout.Below(m.Target, "/sys") { // their entries come and go
				hidden = append(hidden, m.Target)
			}
		case layout.KindBind:
			if m.Why != layout.WhyPrivateCache { // it lies in a sealed place, which only a mount leads past
				writable = append(writable, m.Source)
			}
		}
	}
	tmp := path.Join(os.TempDir(), "bawn-"+plan.Session)
	own.Rung, own.Namespaces, own.Mounts, own.InPart = layout.RungLandlock, nil, nil, partly
	own.Programs, own.Holds = false, nil // a guest's program could keep its words from being read
	own.UID, own.GID = layout.Mapping{Inside: plan.UID.Outside, Outside: plan.UID.Outside}, layout.Mapping{Inside: plan.GID.Outside, Outside: plan.GID.Outside}
	own.NoNetwork, own.Loopback, own.Tmp = plan.Loopback, false, tmp
	own.Landlock.Writable = append(writable, tmp, "/dev/ptmx")
	own.Landlock.Readable = append(carve(hidden, listDir), "/dev/shm")
	own.Seccomp = "guest, supervised, without IPC" + map[bool]string{true: " and IP"}[own.NoNetwork]
	own.Env = replaceEnv(plan.Env, "TMPDIR", tmp)
	for _, m := range plan.Mounts {
		if m.Kind == layout.KindTmpfs && slices.ContainsFunc(writable, func(w string) bool { return layout.Below(m.Target, w) }) { // this rung mounts no tmpfs: places that it would cover stay unchanged
			own.Guarded = append(slices.Clip(own.Guarded), m.Target)
		}
	}
	return &own
}

// replaceEnv returns env with name set to value.
func replaceEnv(env []string, name, value string) []string {
	list := slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	return append(list, name+"="+value)
}

// Start carries a plan out.
func (p *LandlockProvider) Start(plan sandbox.Plan, onDenial func(sandbox.Denial)) (sandbox.Guest, error) {
	n, ok := plan.(*layout.Plan)
	if !ok || n.Rung != layout.RungLandlock {
		return nil, fmt.Errorf("BUG(bawn): %T is no plan of provider %q", plan, layout.LandlockName)
	}
	sweepTmp(path.Dir(n.Tmp))
	held, err := holdTmp(n.Tmp)
	if err != nil {
		return nil, &kernel.StartError{Err: err, Remedy: "make the temporary directory writable"}
	}
	g, err := p.native.Start(n, onDenial)
	if err == nil && n.Landlock.ABI >= confinesSignals {
		if err = g.(*guest).init.EndAll(); err != nil {
			err = errors.Join(err, g.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(n.Tmp), held.Close())
	}
	return &landlockGuest{g.(*guest), held}, nil
}

// landlockGuest ends what no PID namespace ends.
type landlockGuest struct {
	*guest
	tmp *os.File // locked
}

// Close ends every process of the session and removes its temporary directory.
func (g *landlockGuest) Close() error {
	return errors.Join(g.guest.Close(), os.RemoveAll(g.plan.Tmp), g.tmp.Close())
}

// carve lists the readable places around hidden ones. Landlock only ever
// allows, so each directory on the way to a hidden place is replaced by its
// entries. Files created there later can't be read.
func carve(hidden []string, list func(string) []string) []string {
	var out []string
	var walk func(dir string)
	walk = func(dir string) {
		for _, name := range list(dir) {
			p := path.Join(dir, name)
			switch {
			case slices.Contains(hidden, p):
			case slices.ContainsFunc(hidden, func(h string) bool { return layout.Below(h, p) }):
				walk(p)
			default:
				out = append(out, p)
			}
		}
	}
	walk("/")
	sort.Strings(out)
	return out
}

// listDir returns a directory's entries, except links: their targets have
// entries of their own.
func listDir(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			names = append(names, e.Name())
		}
	}
	return names
}

// compileLandlock is compile for a plan without namespaces.
func compileLandlock(p *layout.Plan, joins []*os.File) (*program, error) {
	c := newProgram()
	if p.Landlock.ABI < confinesSignals { // else it ends when its socket closes, with all others
		c.Call("die with the parent", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, int(unix.SIGKILL), 0, 0, 0)
	}
	c.Call("adopt orphans", unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	c.join(joins)
	c.openRoot()
	c.session()
	c.limits(p.Limits)
	c.landlock(p.Landlock)
	c.capabilities()
	rules := append(seccomp.WithoutIPC(), seccomp.Guest(true)...)
	if p.NoNetwork {
		rules = append(seccomp.WithoutIP(), rules...)
	}
	return c, c.seccomp(rules, true)
}

// endDescendants kills the remaining processes of a session without a PID
// namespace.
func endDescendants(g *guest) {
	if g.group != nil {
		_ = g.group.Kill() // Remove reports what is left
	}
	if g.plan.Landlock.ABI >= confinesSignals {
		_ = g.init.Signal(everybody, unix.SIGKILL) // Landlock keeps this inside the session
	}
	for _, pid := range descendants(g.init.PID()) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// confinesSignals is the first ABI of Landlock that keeps signals inside a session.
const confinesSignals = 6

// everybody is the process group number by which kill(2) means all processes.
const everybody = 1

// descendants lists the processes below pid. Orphans are among them: the
// session's first process adopts them.
func descendants(pid int) []int {
	var all []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}
