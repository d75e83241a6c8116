package seatbelt

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

// mac is a machine on which /tmp and /var are links, as on every Mac.
func mac() Facts {
	return Facts{Capabilities: capabilities("", ""), Real: func(p string) string {
		for _, dir := range []string{"/tmp", "/var", "/etc"} {
			if p == dir || below(p, dir) {
				return "/private" + p
			}
		}
		return path.Clean(p)
	}}
}

const (
	home      = "/Users/ada"
	workspace = "/Users/ada/p"
)

func request() sandbox.Request {
	return sandbox.Request{
		Session: bawn.Session{ID: "s1", Isolation: bawn.Isolation{
			Profile: "default", Workspace: workspace, Protect: true, Env: []string{"PATH", "LC_*"}, SetEnv: []string{"A=1"},
			Caches: bawn.CacheShared, CacheDirs: []string{home + "/go/pkg/mod"},
			Mounts: []bawn.Mount{
				{Path: workspace, Access: bawn.ReadWrite, Why: "workspace"}, {Path: workspace + "/docs", Access: bawn.ReadOnly, Why: "--ro"},
				{Path: workspace + "/a/secret", Access: bawn.Hidden, Why: "--deny"}, {Path: "/tmp/shared", Access: bawn.ReadWrite, Why: "--rw"},
			},
			Resources: bawn.Resources{OpenFiles: 1024, FileSizeMB: 100, PIDs: 50},
		}},
		Argv: []string{"make"}, Dir: workspace, Home: home, Environ: []string{"HOME=" + home, "PATH=/usr/bin", "LC_ALL=C", "API_KEY=x"},
		Hidden: []string{home + "/.config/bawn", home + "/.local/state/bawn"},
	}
}

func TestPlanGolden(t *testing.T) {
	for name, change := range map[string]func(*sandbox.Request){
		"none": func(*sandbox.Request) {},
		"by-name": func(r *sandbox.Request) {
			r.Session.Isolation.Network, r.Relay, r.Open = bawn.NetworkAllowlist, true, []string{"gh"}
			r.Files = []sandbox.File{{Source: home + "/.local/state/bawn/s1/ca.pem", Target: "/run/bawn/ca.pem"}, {Source: "/tmp/bawn/socket", Target: "/run/bawn/session.sock"}}
			r.Sockets, r.SetEnv = []string{"/run/bawn/session.sock"}, []string{"SSL_CERT_FILE=/run/bawn/ca.pem", "BAWN_SOCKET=/run/bawn/session.sock"}
		},
		"agent": func(r *sandbox.Request) {
			iso := &r.Session.Isolation
			iso.Mounts = append(iso.Mounts, bawn.Mount{Path: home + "/.claude", Access: bawn.ReadWrite, Why: "the state of agent claude"})
			r.Guarded, r.Owned = []string{home + "/.claude/settings.json", home + "/.claude/hooks", home + "/.elsewhere"}, []string{home + "/.claude/.claude.json"}
		},
		"full-unprotected": func(r *sandbox.Request) {
			iso := &r.Session.Isolation
			iso.Network, iso.Protect, iso.Caches, iso.Resources = bawn.NetworkFull, false, bawn.CachePrivate, bawn.Resources{}
			r.Protected = []string{"deploy.sh"}
		},
	} {
		r := request()
		change(&r)
		p, err := Make(r, mac())
		if err != nil {
			t.Fatal(err)
		}
		same(t, name, p)
	}
}

func same(t *testing.T, name string, p *Plan) {
	t.Helper()
	plan := *p
	plan.Profile = ""
	var b bytes.Buffer
	b.WriteString(p.Profile + "-- plan --\n")
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(plan); err != nil {
		t.Fatal(err)
	}
	command := p.command([]string{"make", "-j"}, 5000)
	command[2] = "(the profile)"
	b.WriteString("-- command --\n" + strings.Join(command, "\n") + "\n-- environment --\n" + strings.Join(p.proxied(p.env, 5000), "\n") + "\n")
	golden.Compare(t, filepath.Join("testdata", name+".golden"), b.String())
}

// TestProfileDecides reads the profile as the kernel is said to, the last rule
// that matches counting: attacks, with the nearest thing that must work.
func TestProfileDecides(t *testing.T) {
	r := request()
	r.Protected, r.Session.Isolation.Mounts = []string{"deploy.sh", "ci/run"}, append(r.Session.Isolation.Mounts, bawn.Mount{Path: home + "/.claude", Access: bawn.ReadWrite}, bawn.Mount{Path: workspace + "/.vscode/ext", Access: bawn.ReadWrite})
	p, err := Make(r, mac())
	if err != nil {
		t.Fatal(err)
	}
	rules := forms(t, p.Profile)
	const (
		read   = "file-read-data"
		write  = "file-write-data"
		create = "file-write-create"
		unlink = "file-write-unlink"
	)
	for _, c := range []struct {
		operation, path string
		want            bool
	}{
		{read, workspace + "/main.go", true}, {write, workspace + "/main.go", true}, {create, workspace + "/new/deep", true}, {unlink, workspace + "/main.go", true},
		{read, "/usr/bin/make", true}, {write, "/usr/bin/make", false}, {create, "/usr/local/new", false}, {write, home + "/x", false}, {write, workspace + "x", false}, {unlink, workspace, false},
		{read, home + "/.ssh/id_ed25519", false}, {write, home + "/.ssh/authorized_keys", false}, {create, home + "/.netrc", false}, {read, home + "/.sshx", true}, {read, home + "/notes", true},
		{read, home + "/Library/Keychains/login.keychain-db", false}, {read, home + "/Library/Containers/com.apple.mail/x", false}, {read, home + "/Library/Fonts/x", true},
		{read, home + "/.config/bawn/config.toml", false}, {write, home + "/.local/state/bawn/audit", false}, {read, home + "/.config/other", true},
		{read, home + "/.claude/settings.json", true}, {write, home + "/.claude/x", true}, // opened again
		{write, workspace + "/docs/x", false}, {read, workspace + "/docs/x", true}, {unlink, workspace + "/docs", false}, {read, workspace + "/a/secret/x", false}, {create, workspace + "/a/secret", false},
		{unlink, workspace + "/a", false}, {unlink, workspace + "/a/other", true}, {write, workspace + "/a/other", true}, // what holds a secret stays
		{write, workspace + "/.git/index", true}, {create, workspace + "/.git/objects/aa/bb", true}, {create, workspace + "/.git/refs/heads/hooks", true}, {write, workspace + "/.git/HEAD", true},
		{create, workspace + "/.git/hooks/pre-commit", false}, {create, workspace + "/.git/hooks", false}, {write, workspace + "/.git/config", false}, {write, workspace + "/sub/.git/config", false}, {write, workspace + "/.GIT/Config", false},
		{unlink, workspace + "/.git", false}, {create, workspace + "/sub/.git", false}, {create, workspace + "/.git/config.lock", false}, {create, workspace + "/x.git/hooks/y", true},
		{create, workspace + "/.vscode", false}, {create, workspace + "/.vscode/tasks.json", false}, {create, workspace + "/.VSCode/tasks.json", false}, {create, workspace + "/deep/er/.envrc", false}, {create, workspace + "/.envrc2", true}, {write, workspace + "/vscode", true},
		{write, workspace + "/.vscode/ext/x", true}, {write, workspace + "/.vscode/ext/.envrc", false}, // named by --rw
		{create, workspace + "/.github/hooks/x", false}, {create, workspace + "/.github", false}, {write, workspace + "/.github/workflows/x.yml", true},
		{write, workspace + "/deploy.sh", false}, {write, workspace + "/x/DEPLOY.sh", false}, {write, workspace + "/ci/run", false}, {create, workspace + "/ci", false}, {write, workspace + "/ci/other", true}, {write, workspace + "/deployXsh", true},
		{write, "/private/tmp/bawn-s1/x", true}, {create, "/private/tmp/bawn-s1/.envrc", true}, {read, "/private/tmp/bawn-s2/x", false}, {write, "/private/tmp/x", false}, {write, "/private/tmp/shared/x", true}, {read, "/private/var/folders/aa/T/x", false},
		{write, "/private/var/folders/zz/bb/T/bawn-s1/tmp.x", true}, {create, "/private/var/folders/zz/bb/C/bawn-s1", true}, {read, "/private/var/folders/zz/bb/T/other", false}, {write, "/private/var/folders/zz/bb/T/bawn-s2/x", false}, {write, "/private/var/folders/zz/bb/C/xcrun_db", false}, {"file-read-metadata", "/private/var/folders/zz/bb/T", true}, {read, "/private/var/folders/zz/bb/T", false},
		{read, guestsTerminal, true}, {write, guestsTerminal, true}, {"file-read-metadata", "/dev/ttys003", true}, {"file-ioctl", "/dev/ttys003", true}, {"file-read-metadata", "/dev/disk0", false},
		{write, "/dev/fd/3", true}, {read, "/dev/fd/0", true}, {write, "/dev/dtracehelper", true}, {"file-ioctl", "/dev/dtracehelper", true}, {write, "/dev/fdx", false},
		{read, "/System/Library/CoreServices/SystemVersion.plist", true}, {read, "/System/Volumes/Preboot/Cryptexes/OS/System/Library/dyld/x", true}, {read, "/System/Volumes/Data/Users/ada/.ssh/id", false}, {write, "/System/Volumes/Data/Users/ada/p/.git/hooks/x", false},
		{"file-read-metadata", "/private/tmp", true}, {"file-read-metadata", "/private/tmp/bawn-s2", false}, {read, "/private/tmp", false}, {"file-read-metadata", home + "/.ssh", false},
		{read, "/dev/disk0", false}, {read, "/dev/rdisk0s1", false}, {write, "/dev/bpf0", false}, {read, "/dev/ttys003", false}, {write, "/dev/ttys003", false}, {write, "/dev/null", true}, {read, "/dev/urandom", true}, {create, "/dev/null2", false}, {write, "/dev/tty", true},
		{"mach-lookup", "", false}, {"file-link", workspace + "/x", false}, {"process-exec", "/bin/sh", true}, {"mach-priv-task-port", "", false},
		{"iokit-open", "", false}, {"appleevent-send", "", false}, {"job-creation", "", false}, {"file-mount", "", false}, {"signal", "", false}, {"nvram-set", "", false}, {"lsopen", "", false},
	} {
		if got := decide(t, rules, c.operation, c.path); got != c.want {
			t.Errorf("%s %s: %v; want %v", c.operation, c.path, got, c.want)
		}
	}
}

// TestProfileNetwork: only the proxy of the relay, or all but UNIX sockets, or nothing; and
// what a guest serves, and its own sockets, in each.
func TestProfileNetwork(t *testing.T) {
	const (
		out = "network-outbound"
		bnd = "network-bind"
		in  = "network-inbound"
	)
	for _, c := range []struct {
		operation, what  string
		none, name, full bool
	}{
		{out, "ip:localhost:5000", false, true, true}, {out, "ip:localhost:5001", false, false, true}, {out, "ip:192.0.2.1:443", false, false, true},
		{bnd, "ip:localhost:3000", true, true, true}, {in, "ip:localhost:3000", true, true, true}, {bnd, "ip:*:3000", false, false, true}, {in, "ip:192.0.2.1:3000", false, false, true},
		{bnd, "unix:/private/tmp/bawn-s1/tmux", true, true, true}, {out, "unix:/private/tmp/bawn-s1/tmux", true, true, true}, {in, "unix:/private/tmp/bawn-s1/tmux", true, true, true},
		{out, "unix:/private/tmp/com.apple.launchd.x/Listeners", false, false, false}, {out, "unix:/private/tmp/bawn-s2/tmux", false, false, false}, {bnd, "unix:/private/tmp/x", false, false, false},
		{out, "unix:/private/var/run/docker.sock", false, false, false}, {out, "unix:/Users/ada/.docker/run/docker.sock", false, false, false}, {out, "unix:/opt/x.sock", false, false, false},
		{out, "unix:/private/var/run/mDNSResponder", false, false, true}, {out, "unix:/private/tmp/bawn/socket", true, true, true},
	} {
		for mode, want := range map[bawn.NetworkMode]bool{bawn.NetworkNone: c.none, bawn.NetworkAllowlist: c.name, bawn.NetworkFull: c.full} {
			r := request()
			r.Session.Isolation.Network, r.Relay = mode, true
			r.Files, r.Sockets = []sandbox.File{{Source: "/tmp/bawn/socket", Target: "/run/bawn/session.sock"}}, []string{"/run/bawn/session.sock"}
			p, err := Make(r, mac())
			if err != nil {
				t.Fatal(err)
			}
			command := p.command([]string{"true"}, 5000)
			if got := decide(t, forms(t, command[2]), c.operation, c.what); got != want {
				t.Errorf("%v: %s %s: %t; want %t", mode, c.operation, c.what, got, want)
			}
			if trust := strings.Contains(p.Profile, "trustd"); trust != (mode == bawn.NetworkFull) {
				t.Errorf("%v: trustd, which fetches by itself: %t", mode, trust)
			}
			if strings.Contains(command[2], "string-append") || strings.Contains(command[2], proxyPort) {
				t.Errorf("%v: a port that is not written out", mode)
			}
		}
	}
}

// TestPortIsNoPath: a path that is called like the rule with the port stays as it is.
func TestPortIsNoPath(t *testing.T) {
	r := request()
	odd := workspace + "/" + toProxy(proxyPort)
	r.Session.Isolation.Network, r.Relay = bawn.NetworkAllowlist, true
	r.Session.Isolation.Mounts = append(r.Session.Isolation.Mounts, bawn.Mount{Path: odd, Access: bawn.Hidden})
	p, err := Make(r, mac())
	if err != nil {
		t.Fatal(err)
	}
	rules := forms(t, p.command([]string{"true"}, 5000)[2])
	if decide(t, rules, "file-read-data", odd) || !decide(t, rules, "network-outbound", "ip:localhost:5000") || decide(t, rules, "network-outbound", "ip:localhost:"+proxyPort) {
		t.Error("the port stands in another rule")
	}
}

// TestFewExpressions: the kernel tries every expression, so the names of a place are one.
func TestFewExpressions(t *testing.T) {
	p, err := Make(request(), mac())
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(p.Profile, "(regex "); n > 20 {
		t.Errorf("%d expressions", n)
	}
}

func TestMakeRefuses(t *testing.T) {
	for name, change := range map[string]func(*sandbox.Request){
		"the home directory":     func(r *sandbox.Request) { r.Session.Isolation.Workspace = home },
		"what holds it":          func(r *sandbox.Request) { r.Session.Isolation.Workspace = "/Users" },
		"the root":               func(r *sandbox.Request) { r.Session.Isolation.Workspace = "/" },
		"everything writable":    func(r *sandbox.Request) { r.Session.Isolation.Mounts[0].Path = "/" },
		"a shared /tmp":          func(r *sandbox.Request) { r.Tmp = "/x" },
		"a device":               func(r *sandbox.Request) { r.Session.Isolation.Devices = []string{"null"} },
		"a file elsewhere":       func(r *sandbox.Request) { r.Files = []sandbox.File{{Source: "/a", Target: home + "/.npmrc"}} },
		"a network nobody leads": func(r *sandbox.Request) { r.Session.Isolation.Network = bawn.NetworkAllowlist },
		"an unknown name":        func(r *sandbox.Request) { r.Open = []string{"gihub"} },
	} {
		r := request()
		change(&r)
		if p, err := Make(r, mac()); err == nil {
			t.Errorf("%s: got a plan %+v", name, p)
		}
	}
}

// TestNothingIsCalledEnforced: nobody has seen it hold.
func TestNothingIsCalledEnforced(t *testing.T) {
	have := map[string]bool{}
	for _, c := range append(capabilities("", ""), capabilities("why", "remedy")...) {
		have[c.Attribute] = true
		if c.Strength == bawn.Enforced || c.Why == "" || c.Strength == bawn.Partly && !strings.Contains(c.Why, untried) || c.Strength == bawn.Unenforced && c.Remedy == "" {
			t.Errorf("%+v", c)
		}
	}
	if len(have) != len(sandbox.Attributes()) {
		t.Errorf("%d attributes; want all %d", len(have), len(sandbox.Attributes()))
	}
}

// TestStartWithoutSupport: elsewhere it plans, and never starts.
func TestStartWithoutSupport(t *testing.T) {
	if runtime.GOOS == "darwin" {
		return
	}
	p := New()
	plan, err := p.Plan(request())
	if err != nil || plan.Provider() != Name {
		t.Fatal(err)
	}
	if g, err := p.Start(plan, nil); !errors.Is(err, sandbox.ErrUnsupported) || g != nil {
		t.Errorf("Start = %v, %v", g, err)
	}
	if _, err := sandbox.Negotiate(request().Session.Isolation, p); err == nil {
		t.Error("it can enforce something here")
	}
}
