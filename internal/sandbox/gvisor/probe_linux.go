package gvisor

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// Capabilities says what this provider enforces here, which it finds out by
// making a sandbox, unless that was done since the machine was booted.
func (p *Provider) Capabilities() []bawn.Capability {
	p.look()
	return p.found.capabilities(p.options.Unprotected)
}

// remedy says how to come by runsc.
const remedy = "install gVisor's runsc (https://gvisor.dev/docs/user_guide/install), or build it with \"make runsc\" in Bawn's source"

// runsc returns the program's path.
func (o *Options) runsc() (string, error) {
	if o.Runsc != "" {
		return o.Runsc, executable(o.Runsc)
	}
	for _, dir := range filepath.SplitList(o.Path) {
		if p := filepath.Join(dir, "runsc"); filepath.IsAbs(p) && executable(p) == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%q: %w", "runsc", exec.ErrNotFound)
}

func executable(p string) error {
	st, err := os.Stat(p)
	if err == nil && (!st.Mode().IsRegular() || st.Mode()&0o111 == 0) {
		err = fmt.Errorf("%q can't be executed", p)
	}
	return err
}

// A cached finding is one under the circumstances that it was made in.
type cached struct {
	Key     string
	Finding finding
}

// key names the circumstances: this boot, user, control groups and runsc, by
// what changes when it is replaced.
func key(runsc string) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	st, err := os.Stat(runsc)
	if err != nil {
		return "", err
	}
	var inode uint64
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		inode = s.Ino
	}
	return fmt.Sprintf("1 %s %d %s %d %d %s", boot, os.Geteuid(), runsc, inode, st.ModTime().UnixNano(), groups), nil
}

// find looks for runsc and tries it. What failed is tried again every time: a
// remedy may have been applied since.
func (p *Provider) find() finding {
	runsc, err := p.options.runsc()
	if err != nil {
		return finding{Why: "runsc is not there: " + err.Error(), Remedy: remedy}
	}
	now, err := key(runsc)
	if err == nil && p.options.Cache != "" {
		var c cached
		text, rerr := os.ReadFile(p.options.Cache)
		if rerr == nil && json.Unmarshal(text, &c) == nil && c.Key == now {
			c.Finding.Path = runsc // never what a file names
			return c.Finding
		}
	}
	f := p.try(runsc)
	if err != nil || p.options.Cache == "" || f.Why != "" || !f.Network {
		return f
	}
	if text, err := json.Marshal(cached{now, f}); err == nil && os.MkdirAll(filepath.Dir(p.options.Cache), 0o700) == nil {
		_ = atomicfile.Write(p.options.Cache, text, 0o600) // without it the next one tries again
	}
	return f
}

// forget drops a finding that proved wrong.
func (p *Provider) forget() {
	if p.options.Cache != "" {
		_ = os.Remove(p.options.Cache)
	}
}

// try makes sandboxes, the one that asks for most first.
func (p *Provider) try(runsc string) finding {
	f := finding{Path: runsc, Groups: cgroup.Probe(), Root: os.Geteuid() == 0}
	all := p.trial(runsc, true, true)
	if all == nil {
		f.Network, f.IPv6 = true, true
		return f
	}
	if all = p.trial(runsc, true, false); all == nil {
		f.Network = true
		return f
	}
	f.NoName = oneLine(all)
	if err := p.trial(runsc, false, false); err != nil {
		f.Why, f.Remedy = oneLine(err), "\"bawn doctor\" shows what this machine can enforce; "+remedy
	}
	return f
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// trial makes a sandbox with nothing in it, and ends it.
func (p *Provider) trial(runsc string, network, ipv6 bool) error {
	facts := p.machine.Facts()
	l := &layout.Plan{
		UID: layout.Mapping{Inside: facts.UID, Outside: facts.UID}, GID: layout.Mapping{Inside: facts.GID, Outside: facts.GID},
		Loopback: true, Session: "trial", Dir: "/",
		Mounts: []layout.Mount{{Kind: layout.KindRoot, Source: "/", Target: "/"}, {Kind: layout.KindTmpfs, Target: "/run", Mode: 0o755}, {Kind: layout.KindDev, Target: "/dev"}},
	}
	if facts.UID == 0 {
		l.UID.Inside, l.GID.Inside = facts.NobodyUID, facts.NobodyGID
	}
	mode := bawn.NetworkNone
	var g *Gateway
	if network {
		mode, g = bawn.NetworkAllowlist, NewGateway(layout.NewNetwork(ipv6))
	}
	plan := &Plan{Layout: l, Gateway: g, Runsc: flags(mode), Config: newSpec(l, g)}
	s, err := start(plan, nil, runsc, p.options, trialTime)
	if err != nil {
		return err
	}
	return s.Close()
}

// Abilities says what Bawn can do with this provider: no socket of the host
// passes its border, so that guests have no socket to their session.
func (*Provider) Abilities() sandbox.Abilities { return sandbox.Abilities{Copy: true} }
