package gvisor

import (
	"os"
	"path"
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

func facts(uid int) layout.Facts {
	f := laptop.Facts(uid)
	f.Resolver = ""
	f.ReadFile = func(p string) (string, error) {
		if p == resolver {
			return "# by hand\nnameserver 127.0.0.53\nsearch corp.example\noptions edns0\n", nil
		}
		return "", os.ErrNotExist
	}
	return f
}

var laptop = fakemachine.Machine{
	"/", "/tmp/", "/var/tmp/", "/run/", "/etc/resolv.conf", "/etc/shadow", "/proc/acpi/", "/sys/firmware/", "/dev/null", "/dev/tty",
	"/home/ada/", "/home/ada/.ssh/", "/home/ada/.netrc", "/home/ada/.cache/", "/home/ada/.state/", "/home/ada/.state/ca.pem",
	"/home/ada/p/", "/home/ada/p/.git/", "/home/ada/p/.git/hooks/", "/home/ada/p/.git/config", "/home/ada/p/.vscode/", "/home/ada/p/sub/", "/home/ada/p/sub/deep/", "/home/ada/p/sub/deep/kept",
	"/tmp/p/", "/srv/data/",
}

func planned(ws string, network bawn.NetworkMode) sandbox.Request {
	return sandbox.Request{
		Session: bawn.Session{ID: "s1", Isolation: bawn.Isolation{
			Workspace: ws, Protect: true, Env: []string{"PATH"}, Network: network, Mounts: []bawn.Mount{{Path: ws, Access: bawn.ReadWrite, Why: "workspace"}},
			Resources: bawn.Resources{TmpMB: 100, MemoryMB: 1000, PIDs: 50},
		}},
		Argv: []string{"make"}, Dir: ws, Environ: []string{"HOME=/home/ada", "PATH=/usr/bin"}, Hidden: []string{"/home/ada/.state"}, Relay: true,
	}
}

var plans = map[string]struct {
	uid    int
	ws     string
	net    bawn.NetworkMode
	change func(*sandbox.Request)
}{
	"none":           {1000, "/home/ada/p", bawn.NetworkNone, func(*sandbox.Request) {}},
	"root-below-tmp": {0, "/tmp/p", bawn.NetworkFull, func(*sandbox.Request) {}},
	"by-name": {1000, "/home/ada/p", bawn.NetworkAllowlist, func(r *sandbox.Request) {
		r.HostPorts = []uint16{5432}
		iso := &r.Session.Isolation
		iso.Mounts = append(iso.Mounts, bawn.Mount{Path: "/srv/data", Access: bawn.Private, Why: "--private"}, bawn.Mount{Path: "/home/ada/p/sub/deep/kept", Access: bawn.ReadOnly, Why: "--ro"})
		r.Files = []sandbox.File{{Source: "/home/ada/.state/ca.pem", Target: "/run/bawn/ca.pem"}}
	}},
}

func goldenPlan(t *testing.T, name string) *Plan {
	t.Helper()
	g := plans[name]
	r := planned(g.ws, g.net)
	g.change(&r)
	p, err := makePlan(r, facts(g.uid))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPlanGolden compares all that runsc and the launcher are told.
func TestPlanGolden(t *testing.T) {
	for name := range plans {
		t.Run(name, func(t *testing.T) {
			golden.JSON(t, filepath.Join("testdata", name+".golden"), goldenPlan(t, name))
		})
	}
}

// destinations are where gVisor mounts something itself, in order.
func destinations(p *Plan, options ...string) (list []string) {
	for _, m := range p.Config.Mounts {
		if m.Type == "bind" && !slices.ContainsFunc(options, func(o string) bool { return !slices.Contains(m.Options, o) }) {
			list = append(list, m.Destination)
		}
	}
	return list
}

// TestWhatGVisorMustKnow: in writable directories every place that is narrower is
// a mount of gVisor's own, and every directory on the way, or they could be
// removed or renamed.
func TestWhatGVisorMustKnow(t *testing.T) {
	p := goldenPlan(t, "by-name")
	if !p.Config.Root.Readonly {
		t.Error("gVisor's root is writable")
	}
	narrow, open := destinations(p, "ro"), destinations(p, "rw")
	for _, want := range []string{"/home/ada/p/.git", "/home/ada/p/.vscode", "/home/ada/p/sub/deep/kept"} {
		if !slices.Contains(narrow, want) {
			t.Errorf("%s is none of %q", want, narrow)
		}
	}
	for _, want := range []string{"/home/ada/p", "/home/ada/p/sub", "/home/ada/p/sub/deep", "/srv/data"} {
		if !slices.Contains(open, want) {
			t.Errorf("%s is none of %q", want, open)
		}
	}
	seen := map[string]int{}
	for i, m := range p.Config.Mounts {
		seen[m.Destination] = i
	}
	for d, i := range seen {
		if around, ok := seen[path.Dir(d)]; ok && around > i {
			t.Errorf("%s is mounted before what it lies in", d)
		}
	}
}

// TestBindsExist: a bind mount at a place that is not there would make runsc
// create it, on the host.
func TestBindsExist(t *testing.T) {
	for name := range plans {
		p := goldenPlan(t, name)
		for _, d := range destinations(p) {
			_, there := laptop.Facts(0).Lookup(d)
			if !there && !slices.ContainsFunc(p.Layout.Mounts, func(m layout.Mount) bool { return m.Kind == layout.KindTmpfs && (m.Target == d || below(d, m.Target)) }) {
				t.Errorf("%s: %s does not exist", name, d)
			}
		}
	}
}

// TestSocketsAreRefused: none passes the border, and nothing is promised.
func TestSocketsAreRefused(t *testing.T) {
	r := planned("/home/ada/p", bawn.NetworkNone)
	r.Sockets = []string{"/run/bawn/session.sock"}
	if _, err := makePlan(r, facts(1000)); err == nil || !strings.Contains(err.Error(), "/run/bawn/session.sock") {
		t.Errorf("got %v", err)
	}
}

// TestResolver: names are asked of the gateway alone; what else the host's file
// says stays.
func TestResolver(t *testing.T) {
	r := goldenPlan(t, "by-name").Resolver
	if r == nil || r.Target != resolver || r.Make != nil {
		t.Fatalf("%+v", r)
	}
	if want := "nameserver 192.0.0.9\nnameserver fd62:6177:6e00:1::2\nsearch corp.example\noptions edns0\n"; r.Text != want {
		t.Errorf("got %q, want %q", r.Text, want)
	}
	if r := goldenPlan(t, "none").Resolver; r != nil {
		t.Errorf("without a network: %+v", r)
	}
	if got := placesBelow("/run", "/run/systemd/resolve/stub"); !slices.Equal(got, []string{"/run/systemd", "/run/systemd/resolve", "/run/systemd/resolve/stub"}) {
		t.Errorf("got %q", got)
	}
}
