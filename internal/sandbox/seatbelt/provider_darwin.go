package seatbelt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/symlink"
)

// Provider is the sandbox of macOS.
type Provider struct{ capabilities func() []bawn.Capability }

// New returns the provider. What a profile does here is tried when it is first
// asked for.
func New() *Provider { return &Provider{capabilities: sync.OnceValue(probe)} }

// Name returns "seatbelt".
func (*Provider) Name() string { return Name }

// Capabilities says what is enforced here.
func (p *Provider) Capabilities() []bawn.Capability { return p.capabilities() }

// probeTimeout ends a trial.
const probeTimeout = time.Second

// probe writes a file twice: where a profile allows it, which must work, and
// where it denies it, which must not.
func probe() []bawn.Capability {
	dir, err := os.MkdirTemp("/private/tmp", "bawn-probe-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = try(dir, "allow", true)
	}
	if err == nil {
		err = try(dir, "deny", false)
	}
	if err != nil {
		return capabilities(err.Error(), "see whether "+Program+" works here")
	}
	return capabilities("", "")
}

func try(dir, verdict string, want bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	file := filepath.Join(dir, verdict)
	rules := fmt.Sprintf("(version 1)\n(allow default)\n(%s file-write* %s)", verdict, subpath(dir))
	out, err := exec.CommandContext(ctx, Program, "-p", rules, "/usr/bin/touch", file).CombinedOutput()
	if _, there := os.Lstat(file); (there == nil) != want {
		return fmt.Errorf("a profile that says %q to a file had another outcome (%w): %.200s", verdict, errors.Join(err, there), out)
	}
	return nil
}

// Plan makes a plan. It errs like Provider.Plan.
func (p *Provider) Plan(req sandbox.Request) (sandbox.Plan, error) {
	have := p.Capabilities()
	if _, err := sandbox.Negotiate(req.Session.Isolation, p); err != nil {
		return nil, err
	}
	return Make(req, Facts{Real: real, Follow: symlink.Walk, Capabilities: have})
}

// real follows links as far as the path exists.
func real(path string) string {
	rest := ""
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if to, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(to, rest)
		}
		if dir == "/" || dir == "." {
			return filepath.Clean(path)
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// Start makes the session's directory and, for a network by name, the sockets.
func (p *Provider) Start(n sandbox.Plan, _ func(sandbox.Denial)) (sandbox.Guest, error) {
	own, ok := n.(*Plan)
	if !ok {
		return nil, fmt.Errorf("BUG(bawn): %T is no plan of provider %q", n, Name)
	}
	if err := os.Mkdir(own.Tmp, 0o700); err != nil {
		return nil, fmt.Errorf("make the session's temporary directory: %w", err)
	}
	for _, dir := range ownDirs(own) {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make a temporary directory of the session's own: %w", err)
		}
	}
	g := &guest{plan: own, groups: map[int]bool{}, done: make(chan struct{})}
	if own.Relay {
		var err error
		if g.network, err = sockets(); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	if own.Limits.MemoryMB > 0 || own.Limits.PIDs > 0 {
		go g.watch()
	}
	return g, nil
}

// ownDirs are the session's directories among the user's temporary and cached files, where
// confstr(3) leads: beside Bawn's own TMPDIR, unless that is elsewhere.
func ownDirs(p *Plan) []string {
	user := filepath.Dir(filepath.Clean(os.TempDir()))
	if !strings.HasPrefix(real(user), "/private/var/folders/") {
		return nil
	}
	name := filepath.Base(p.Tmp)
	return []string{filepath.Join(user, "T", name), filepath.Join(user, "C", name)}
}

// sockets listens on the host's loopback. The profile lets the guest connect to
// the proxy alone, so that nothing ever comes to the others.
func sockets() (*sandbox.GuestNetwork, error) {
	n := &sandbox.GuestNetwork{}
	var errs []error
	for _, to := range []*[]*os.File{&n.Connect, &n.DNSStream, &n.Proxy} {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		f, err := l.File()
		n.ProxyPort = uint16(l.Addr().(*net.TCPAddr).Port) // the proxy is the last
		*to, errs = append(*to, f), append(errs, err, l.Close())
	}
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err == nil {
		var f *os.File
		f, err = c.File()
		n.DNS, err = []*os.File{f}, errors.Join(err, c.Close())
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the session's network: %w", err), n.Close())
	}
	return n, nil
}
