package bwrap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/fakemachine"
	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

var laptop = fakemachine.Machine{
	"/", "/tmp/", "/var/tmp/", "/run/", "/run/systemd/resolve/stub-resolv.conf", "/etc/shadow", "/etc/bawn/", "/proc/acpi/", "/proc/kpagecount", "/sys/firmware/", "/sys/fs/cgroup/",
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/nvidia0",
	"/home/ada/", "/home/ada/.ssh/", "/home/ada/.netrc", "/home/ada/.config/", "/home/ada/.config/gh/", "/home/ada/.cache/",
	"/home/ada/.state/", "/home/ada/.state/s/", "/home/ada/.state/s/ca.pem", "/home/ada/.state/s/session.sock", "/home/ada/.state/s/tmp/",
	"/home/ada/p/", "/home/ada/p/.git/", "/home/ada/p/.git/hooks/", "/home/ada/p/.git/config", "/home/ada/p/.vscode/", "/home/ada/p/sub/", "/home/ada/p/secret",
	"/srv/data/", "/root/", "/root/p/",
}

var made = Facts{Interfaces: []string{"/sys/class/net", "/sys/devices/virtual/net", "/sys/devices/pci0000:00/0000:00:03.0/net"}}

// request is a session in workspace ws with the default profile's parts.
func request(ws string, network bawn.NetworkMode) sandbox.Request {
	return sandbox.Request{
		Session: bawn.Session{ID: "s1", Isolation: bawn.Isolation{
			Profile: "default", Workspace: ws, Protect: true, Env: []string{"PATH"}, Caches: bawn.CacheReadOnly, CacheDirs: []string{"/home/ada/.cache"}, Network: network,
			Mounts:    []bawn.Mount{{Path: ws, Access: bawn.ReadWrite, Why: "workspace"}},
			Resources: bawn.Resources{TmpMB: 100, MemoryMB: 1000, PIDs: 50},
		}},
		Argv: []string{"make"}, Dir: ws, Environ: []string{"HOME=/home/ada", "PATH=/usr/bin", "API_KEY=x"}, Hidden: []string{"/home/ada/.state"}, CacheDir: "/home/ada/.cache/bawn/private/x",
	}
}

// plans are those that are compared as a whole.
var plans = map[string]struct {
	uid     int
	network bawn.NetworkMode
	change  func(*sandbox.Request)
}{
	"user": {1000, bawn.NetworkNone, func(*sandbox.Request) {}},
	"root, the host's network": {0, bawn.NetworkFull, func(r *sandbox.Request) {
		r.Environ[0] = "HOME=/root"
		r.Session.Isolation.Workspace, r.Dir, r.Session.Isolation.Mounts[0].Path = "/root/p", "/root/p", "/root/p"
	}},
	"by name": {1000, bawn.NetworkAllowlist, func(r *sandbox.Request) {
		iso := &r.Session.Isolation
		iso.Devices, r.Relay, r.HostPorts, r.Tmp = []string{"nvidia0"}, true, []uint16{5432}, "/home/ada/.state/s/tmp"
		iso.Mounts = append(iso.Mounts, bawn.Mount{Path: "/srv/data", Access: bawn.Private, Why: "--private"},
			bawn.Mount{Path: "/home/ada/p/sub", Access: bawn.ReadOnly, Why: "--ro"}, bawn.Mount{Path: "/home/ada/p/secret", Access: bawn.Hidden, Why: "--deny"})
		r.Files = []sandbox.File{
			{Source: "/home/ada/.state/s/ca.pem", Target: "/run/bawn/tls/ca.pem"}, {Source: "/home/ada/.state/s/session.sock", Target: "/run/bawn/session.sock"},
			{Source: "/home/ada/.state/s/ca.pem", Target: "/home/ada/.config/gh/hosts.yml"}, {Source: "/home/ada/.state/s/ca.pem", Target: "/home/ada/.netrc"},
		}
		r.Sockets = []string{"/run/bawn/session.sock"}
	}},
}

func goldenPlan(t *testing.T, name string) *Plan {
	t.Helper()
	g := plans[name]
	ws := "/home/ada/p"
	r := request(ws, g.network)
	g.change(&r)
	layout, err := layout.Layout(r, laptop.Facts(g.uid))
	if err != nil {
		t.Fatal(err)
	}
	p, err := makePlan(layout, made)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// text prints a plan's words, an option a line, and what the descriptors are.
func (p *Plan) text() string {
	var b strings.Builder
	for i, w := range p.Words {
		switch {
		case i > 0 && strings.HasPrefix(w, "--"):
			b.WriteString("\n")
		case i > 0:
			b.WriteString(" ")
		}
		b.WriteString(w)
	}
	fmt.Fprintf(&b, "\n-- %s\n", strings.Join(p.Command, " "))
	for i, s := range p.sources {
		fmt.Fprintf(&b, "%d is %q %v\n", firstSource+i, s.path, s.id)
	}
	fmt.Fprintf(&b, "must be there: %s\n", strings.Join(p.targets, " "))
	return b.String()
}

// TestPlanGolden compares every word that bwrap gets.
func TestPlanGolden(t *testing.T) {
	for name := range plans {
		t.Run(name, func(t *testing.T) {
			got := goldenPlan(t, name).text()
			file := filepath.Join("testdata", strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(name)+".golden")
			golden.Compare(t, file, got)
		})
	}
}

// TestPlanShowsItsWords wants --plan to print what bwrap is told, beside native's
// layout.
func TestPlanShowsItsWords(t *testing.T) {
	p := goldenPlan(t, "user")
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"bwrap":["--unshare-user"`, `"mounts":[`, `"/dev/.bawn"`} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	if p.Provider() != Name {
		t.Errorf("the plan is one of %q", p.Provider())
	}
}

// TestEveryNamespaceByName wants no option that goes on without what it can't
// have.
func TestEveryNamespaceByName(t *testing.T) {
	for name := range plans {
		for _, w := range goldenPlan(t, name).Words {
			if w == "--unshare-all" || w == "--share-net" || strings.HasPrefix(w, "--") && strings.HasSuffix(w, "-try") {
				t.Errorf("%s: %s", name, w)
			}
		}
	}
}

// TestTargetsAreThere wants every target below a writable place of the host to
// be among those that Start looks at, so that bwrap makes nothing there.
func TestTargetsAreThere(t *testing.T) {
	for name := range plans {
		p := goldenPlan(t, name)
		for _, m := range p.Mounts {
			inOwn := slices.ContainsFunc(p.Mounts, func(o layout.Mount) bool {
				return o.Kind == layout.KindTmpfs && strings.HasPrefix(m.Target, o.Target+"/")
			})
			if m.Kind != layout.KindRoot && m.Kind != layout.KindSysfs && !inOwn && !slices.Contains(p.targets, m.Target) {
				t.Errorf("%s: nobody looks whether %s is there", name, m.Target)
			}
		}
	}
}

// TestTooManyWords wants an error instead of bwrap's.
func TestTooManyWords(t *testing.T) {
	guestLayout := goldenPlan(t, "user").Plan
	for i := range maxWords / 3 {
		guestLayout.Mounts = append(guestLayout.Mounts, layout.Mount{Kind: layout.KindHideDir, Target: fmt.Sprint("/home/ada/", i)})
	}
	if _, err := makePlan(guestLayout, made); err == nil || !strings.Contains(err.Error(), "9000") {
		t.Errorf("got %v", err)
	}
}

// TestMountsThatBwrapCannotMake wants no guess.
func TestMountsThatBwrapCannotMake(t *testing.T) {
	for _, m := range []layout.Mount{{Kind: "fuse", Target: "/mnt"}, {}, {Kind: layout.KindBind, Source: "/a\x00--bind\x00/", Target: "/b"}, {Kind: layout.KindTmpfs, Target: "/a\x00/b"}} {
		layout := &layout.Plan{Mounts: []layout.Mount{m}}
		if p, err := makePlan(layout, made); err == nil {
			t.Errorf("%+v: got %q", m, p.Words)
		}
	}
}
