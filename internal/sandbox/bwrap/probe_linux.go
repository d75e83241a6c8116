package bwrap

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// support is what was found out by trying.
type support struct {
	why, fix       string // why no sandbox can be had, "" where one can
	netWhy, netFix string // why networks by name are impossible
	ipv6           bool   // such networks have IPv6, too
}

// install says how to get it.
const install = "install it: sudo apt-get install bubblewrap"

// probe finds bwrap and what it can do here, from the cache if that knows.
func (p *Provider) probe() (path string, s support) {
	if path = find(p.search); path == "" {
		return "", support{why: "bwrap is not in PATH", fix: install}
	}
	now, known := under(path)
	if p.cache != "" && known {
		if text, err := cgroup.ReadFile(p.cache); err == nil {
			if rest, ok := strings.CutPrefix(text, now); ok {
				if s, ok := parseSupport(rest); ok {
					return path, s
				}
			}
		}
	}
	p.path = path
	ctx, cancel := context.WithTimeout(context.Background(), p.patience)
	defer cancel()
	s = p.try(ctx)
	if p.cache != "" && known && ctx.Err() == nil && os.MkdirAll(filepath.Dir(p.cache), 0o700) == nil {
		_ = atomicfile.Write(p.cache, []byte(now+formatSupport(s)), 0o600) // costs the next one a trial
	}
	return path, s
}

// find returns the first program of that name in a list of directories, "" for
// none.
func find(searchPath string) string {
	for _, dir := range filepath.SplitList(searchPath) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(dir, Name)); err == nil {
			return path
		}
	}
	return ""
}

// probePatience is how long all trials may take. They take a tenth of a second
// where nothing hangs; what was found out after that long is not kept.
const probePatience = 3 * time.Second

// separator stands between the fields of the cache file.
const separator = "\x00"

// under is what a cached outcome must have been found under: this boot, our
// control groups, this user, this bwrap.
func under(path string) (string, bool) {
	boot, err1 := cgroup.ReadFile("/proc/sys/kernel/random/boot_id")
	groups, err2 := cgroup.ReadFile("/proc/self/cgroup")
	var st unix.Stat_t
	err3 := unix.Stat(path, &st)
	is := fmt.Sprint(os.Geteuid(), path, st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim)
	return strings.Join([]string{boot, groups, is, ""}, separator), err1 == nil && err2 == nil && err3 == nil
}

func formatSupport(s support) string {
	return strings.Join([]string{s.why, s.fix, s.netWhy, s.netFix, strconv.FormatBool(s.ipv6)}, separator)
}

func parseSupport(text string) (s support, ok bool) {
	f := strings.Split(text, separator)
	if len(f) != 5 {
		return s, false
	}
	ipv6, err := strconv.ParseBool(f[4])
	return support{why: f[0], fix: f[1], netWhy: f[2], netFix: f[3], ipv6: ipv6}, err == nil
}

// forget drops a cached outcome that proved wrong.
func forget(cache string) {
	if cache != "" {
		_ = os.Remove(cache)
	}
}

// try starts sandboxes that have everything which is claimed: first with a
// network by name, then with less.
func (p *Provider) try(ctx context.Context) support {
	own4, own6 := netip.AddrFrom4([4]byte{192, 0, 0, 8}), netip.MustParseAddr("fd62:6177:6e00:1::1")
	first := p.trial(ctx, own4, own6)
	if first == nil {
		return support{ipv6: true}
	}
	if ctx.Err() != nil { // it hangs
		return support{why: first.Error(), fix: remedy(first)}
	}
	without := p.trial(ctx, own4)
	if without == nil {
		return support{}
	}
	if err := p.trial(ctx); err != nil {
		return support{why: err.Error(), fix: remedy(err)}
	}
	return support{netWhy: without.Error(), netFix: remedy(without)}
}

// trial starts a sandbox with one mount of each kind, and ends it.
func (p *Provider) trial(ctx context.Context, own ...netip.Addr) error {
	facts := p.machine.Facts()
	guestLayout := &layout.Plan{
		Rung: layout.RungNamespaces, Namespaces: []string{"user", "mount", "pid", "ipc", "uts", "cgroup", "net"}, Session: "probe", Loopback: true,
		UID: layout.Mapping{Inside: facts.UID, Outside: facts.UID}, GID: layout.Mapping{Inside: facts.GID, Outside: facts.GID},
		Mounts: []layout.Mount{
			{Kind: layout.KindRoot, Source: "/", Target: "/"}, {Kind: layout.KindProc, Target: "/proc"}, {Kind: layout.KindSysfs, Target: "/sys"},
			{Kind: layout.KindDev, Target: "/dev", SizeMB: 1, Devices: []string{"null"}},
			{Kind: layout.KindTmpfs, Target: "/tmp", Mode: 0o1777, SizeMB: 1},
			{Kind: layout.KindBind, Source: "/usr", Target: "/tmp/b", Make: []string{"/tmp/b"}}, {Kind: layout.KindBindRO, Source: "/usr", Target: "/tmp/r", Make: []string{"/tmp/r"}},
			{Kind: layout.KindHideDir, Target: "/tmp/d", Make: []string{"/tmp/d"}}, {Kind: layout.KindHide, Target: "/tmp/f", Make: []string{"/tmp/f"}, File: true},
		},
		Landlock: layout.Landlock{ABI: facts.LandlockABI, Writable: []string{"/dev", "/tmp"}}, Supervised: true, Dir: "/",
	}
	if facts.UID == 0 {
		guestLayout.UID.Inside, guestLayout.GID.Inside = facts.NobodyUID, facts.NobodyGID
	}
	if own != nil {
		guestLayout.Network = &layout.Network{Listen: 61001, DNS: 61053, Proxy: 61128, HostPorts: []uint16{1}, Own: own}
	}
	plan, err := makePlan(guestLayout, p.facts)
	if err != nil {
		return err
	}
	g, err := p.start(ctx, plan, func(sandbox.Denial) {})
	if err != nil && passing(err) {
		g, err = p.start(ctx, plan, func(sandbox.Denial) {})
	}
	if err != nil {
		return err
	}
	return g.Close()
}

// Capabilities says what this provider enforces here, by having tried it.
func (p *Provider) Capabilities() []bawn.Capability {
	s := p.look()
	if s.why != "" {
		return none(s.why, s.fix)
	}
	yes := func(attribute, how string) bawn.Capability {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Enforced, How: how}
	}
	write := "bwrap's read-only mounts"
	if abi := p.machine.Facts().LandlockABI; abi > 0 {
		write += fmt.Sprintf(" and Landlock (ABI %d)", abi)
	}
	return append([]bawn.Capability{
		yes(sandbox.FSWrite, write),
		yes(sandbox.FSRead, "covered by empty mounts of bwrap's"),
		sandbox.PatternsSupervised(),
		yes(sandbox.FSProtect, "seccomp user notification: the supervisor opens and names files itself"),
		yes(sandbox.FSPrivate, "tmpfs"),
		yes(sandbox.Processes, "PID namespace of bwrap's that ends with the session"),
		yes(sandbox.IPC, "IPC namespace of bwrap's; UNIX sockets connected by the supervisor"),
		yes(sandbox.Kernel, "seccomp filter, no capability, no new privileges"),
		yes(sandbox.Terminal, "new session, own pseudo-terminal, TIOCSTI and TIOCLINUX refused"),
		yes(sandbox.NetNone, "empty network namespace of bwrap's"),
		yes(sandbox.NetFull, "the host's network"),
		s.named(),
		yes(sandbox.DevicesByName, "bound into a minimal /dev"),
	}, p.machine.Limits()...) // the first process joins the same control groups, and sets the same rlimits
}

// named describes network "allowlist".
func (s support) named() bawn.Capability {
	if s.netWhy != "" {
		return bawn.Capability{Attribute: sandbox.NetAllow, Why: s.netWhy, Remedy: s.netFix}
	}
	c := bawn.Capability{Attribute: sandbox.NetAllow, Strength: bawn.Enforced, How: "network namespace of bwrap's; nftables leads TCP and DNS to the relay and refuses the rest"}
	if !s.ipv6 {
		c.How += "; guests have IPv4 only"
	}
	return c
}
