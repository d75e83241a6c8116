package docker

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/fakemachine"
	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

func facts(uid int) Facts {
	return Facts{
		Program: "/usr/lib/bawn/bawn",
		Image: Image{
			ID: "sha256:" + strings.Repeat("ab", 32), Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "JAVA_HOME=/opt/java", "LC_ALL=POSIX"}, Volumes: []string{"/tmp", "/var/lib/data"},
		},
		Host: laptop.Facts(uid),
	}
}

var laptop = fakemachine.Machine{
	"/", "/tmp/", "/var/tmp/", "/run/", "/etc/shadow", "/etc/hosts", "/etc/bawn/", "/proc/acpi/", "/dev/null", "/dev/tty", "/dev/nvidia0", "/run/systemd/resolve/stub-resolv.conf",
	"/home/ada/", "/home/ada/.ssh/", "/home/ada/.netrc", "/home/ada/.cache/", "/home/ada/.cache/bawn/private/x/home%ada%.cache/", "/home/ada/.gitconfig",
	"/home/ada/p/", "/home/ada/p/.git/", "/home/ada/p/.git/hooks/", "/home/ada/p/.git/config", "/home/ada/p/.vscode/", "/home/ada/p/secret/", "/home/ada/p/key", "/home/ada/p/sub/",
	"/srv/data/", "/srv/data/closed/", "/srv/ref/", "/workspace/", "/home/ada/.local/state/bawn/s/", "/home/ada/.local/state/bawn/s/hosts", "/home/ada/.local/state/bawn/s/session.sock",
}

func plain() sandbox.Request {
	rw := bawn.Mount{Path: "/home/ada/p", Access: bawn.ReadWrite, Why: "workspace"}
	return sandbox.Request{
		Session: bawn.Session{ID: "s1", Isolation: bawn.Isolation{
			Profile: "default", Workspace: "/home/ada/p", Protect: true, Env: []string{"HOME", "PATH", "SHELL", "LC_*"}, Mounts: []bawn.Mount{rw},
			Caches: bawn.CachePrivate, CacheDirs: []string{"/home/ada/.cache"},
			Resources: bawn.Resources{TmpMB: 100, MemoryMB: 1000, PIDs: 50, OpenFiles: 1024, FileSizeMB: 500, CPUs: 1.5},
		}},
		Argv: []string{"make"}, Dir: "/home/ada/p/sub", Home: "/home/ada", CacheDir: "/home/ada/.cache/bawn/private/x",
		Environ: []string{"HOME=/home/ada", "PATH=/home/ada/bin:/usr/bin", "SHELL=/bin/zsh", "LC_ALL=C", "API_KEY=x"},
	}
}

func wide() sandbox.Request {
	req := plain()
	iso := &req.Session.Isolation
	iso.Network, req.Relay, req.HostPorts = bawn.NetworkAllowlist, true, []uint16{5432}
	iso.Mounts = append(iso.Mounts,
		bawn.Mount{Path: "/srv/data", Access: bawn.ReadWrite, Why: "--rw"}, bawn.Mount{Path: "/srv/data/closed", Access: bawn.Hidden, Why: "--deny"},
		bawn.Mount{Path: "/srv/ref", Access: bawn.ReadOnly, Why: "--ro"}, bawn.Mount{Path: "/home/ada/p/secret", Access: bawn.Hidden, Why: "--deny"},
		bawn.Mount{Path: "/home/ada/p/key", Access: bawn.Hidden, Why: "--deny"}, bawn.Mount{Path: "/home/ada/.gitconfig", Access: bawn.ReadOnly, Why: "--ro"})
	iso.Devices = []string{"nvidia0"}
	own := "/home/ada/.local/state/bawn/s"
	req.Files = []sandbox.File{{Source: own + "/hosts", Target: "/etc/hosts"}, {Source: own + "/session.sock", Target: "/run/bawn/session.sock"}}
	req.Sockets, req.SetEnv = []string{"/run/bawn/session.sock"}, []string{"SSL_CERT_FILE=/run/bawn/ca.pem"}
	return req
}

// TestPlans compares plans with golden files, which are what the engine gets.
func TestPlans(t *testing.T) {
	full := plain()
	full.Session.Isolation.Network, full.Session.Isolation.Protect = bawn.NetworkFull, false
	extra := Options{
		Image: "registry.example/dev@sha256:" + strings.Repeat("cd", 32), Workspace: "/src", Runtime: "crun", MemorySwapMB: 500,
		ExtraArgs: []string{"--label=team=red", "--hostname", "box", "--pids-limit=20", "--ulimit=core=0", "--tmpfs=/var/cache/x:size=8m", "--device=/dev/fuse", "--cap-drop=ALL", "--ipc=host"},
		Allowed:   []string{"--device=/dev/fuse", "--ipc=host"},
	}
	rootless := facts(1000)
	rootless.Rootless = true
	remapped := facts(0)
	remapped.Remapped, remapped.Unsupervised = true, true
	for name, c := range map[string]struct {
		req   sandbox.Request
		o     Options
		facts Facts
	}{
		"user": {plain(), Options{}, facts(1000)}, "root-wide": {wide(), Options{}, facts(0)}, "full": {full, Options{}, facts(1000)},
		"extra": {wide(), extra, facts(1000)}, "rootless": {plain(), Options{}, rootless}, "remapped": {plain(), Options{}, remapped},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := makePlan(c.req, c.o, c.facts)
			if err != nil {
				t.Fatal(err)
			}
			golden.JSON(t, filepath.Join("testdata", name+".json"), p)
		})
	}
}

// TestNoSecretReachesTheEngine wants nothing of the session's variables in what
// the engine is told, which everybody may read who may ask it.
func TestNoSecretReachesTheEngine(t *testing.T) {
	req := wide()
	req.SetEnv = append(req.SetEnv, "TOKEN=hunter2")
	p, err := makePlan(req, Options{}, facts(1000))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(p.Environ(), "TOKEN=hunter2") {
		t.Error("control: the guest does not have the variable")
	}
	o, err := p.create("/run/x", map[string]string{"dev.bawn.session": "s1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{o, p} {
		if text, err := json.Marshal(v); err != nil || bytes.Contains(text, []byte("hunter2")) {
			t.Errorf("it is there, or %v: %s", err, text)
		}
	}
}

// TestCreateFillsIn has nothing of the plan's stand-ins left, and the plan as it
// was.
func TestCreateFillsIn(t *testing.T) {
	p, err := makePlan(wide(), Options{}, facts(1000))
	if err != nil {
		t.Fatal(err)
	}
	before, _ := json.Marshal(p)
	o, err := p.create("/run/user/1000/bawn/docker/1-2-x", map[string]string{"dev.bawn.session": "s1"})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(o.HostConfig)
	if strings.Contains(string(text), sessionPlace) || !strings.Contains(string(text), "/1-2-x/control") || o.Config.Labels["dev.bawn.session"] != "s1" {
		t.Errorf("%s", text)
	}
	if after, _ := json.Marshal(p); !bytes.Equal(before, after) {
		t.Error("the plan has changed")
	}
}

// TestPlansAreRefused has requests that a container can't keep.
func TestPlansAreRefused(t *testing.T) {
	for want, change := range map[string]func(*sandbox.Request, *Options){
		"has the root of its image":      func(r *sandbox.Request, _ *Options) { addMount(r, "/", bawn.ReadOnly) },
		"the guest has its workspace at": func(r *sandbox.Request, _ *Options) { addMount(r, "/workspace", bawn.ReadOnly) },
		"is made anew":                   func(r *sandbox.Request, _ *Options) { addMount(r, "/dev/nvidia0", bawn.ReadOnly) },
		"is not in the container":        func(r *sandbox.Request, _ *Options) { r.Dir = "/srv/ref" },
		"the isolation hides it":         func(r *sandbox.Request, _ *Options) { r.Session.Isolation.Mounts[0].Access = bawn.Hidden },
		"no place for a workspace":       func(_ *sandbox.Request, o *Options) { o.Workspace = "/proc/x" },
		"not exist":                      func(r *sandbox.Request, _ *Options) { r.Session.Isolation.Workspace = "/nowhere" },
		"would cover the workspace":      func(_ *sandbox.Request, o *Options) { o.Workspace, o.ExtraArgs = "/src", []string{"--tmpfs=/src/x"} },
		"may have":                       func(r *sandbox.Request, _ *Options) { r.Session.Isolation.Devices = []string{"sda"} },
		"a volume at \"/var/lib/data\"":  func(_ *sandbox.Request, o *Options) { o.Workspace = "/var/lib" },
		"every wall":                     func(_ *sandbox.Request, o *Options) { o.ExtraArgs = []string{"--privileged"} },
	} {
		req, o := plain(), Options{}
		change(&req, &o)
		if _, err := makePlan(req, o, facts(1000)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
}

func addMount(r *sandbox.Request, p string, a bawn.Access) {
	r.Session.Isolation.Mounts = append(r.Session.Isolation.Mounts, bawn.Mount{Path: p, Access: a, Why: "--ro"})
}

// TestPlaces says in the host's paths what a guest sees.
func TestPlaces(t *testing.T) {
	p, err := makePlan(wide(), Options{}, facts(1000))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range p.Places() {
		got[m.Path] = m.Access.String()
	}
	for path, want := range map[string]string{
		"/home/ada/p": "read-write", "/home/ada/p/.git": "read-only", "/home/ada/p/secret": "hidden", "/home/ada/p/key": "hidden", "/srv/data": "read-write",
		"/srv/data/closed": "hidden", "/srv/ref": "read-only", "/home/ada": "private", "/tmp": "private", "/home/ada/.cache": "private", "/etc/shadow": "",
	} {
		if got[path] != want {
			t.Errorf("%s: got %q, want %q", path, got[path], want)
		}
	}
}

func TestImagesArePinned(t *testing.T) {
	id := "sha256:" + strings.Repeat("0a", 32)
	for image, ok := range map[string]bool{
		id: true, "debian@" + id: true, "reg.example:5000/a/b:tag@" + id: true,
		"": false, "debian": false, "debian:12": false, "debian@sha256:12": false, "@" + id: false, id + "x": false, strings.ToUpper(id): false, "debian@" + id + "@" + id: false,
	} {
		var oe *OptionError
		if err := (Options{Image: image}).check(); ok && err != nil || !ok && !errors.As(err, &oe) {
			t.Errorf("%q: %v", image, err)
		}
	}
}

func TestHosts(t *testing.T) {
	for host, ok := range map[string]bool{
		"unix:///run/docker.sock": true,
		"tcp://10.0.0.1:2376":     false, "ssh://box": false, "unix://run/docker.sock": false, "/run/docker.sock": false, "npipe:////./pipe/x": false, "": false,
	} {
		if err := checkHost(host); (err == nil) != ok {
			t.Errorf("%q: %v", host, err)
		}
	}
	env := func(name string) string { return map[string]string{"DOCKER_HOST": "tcp://x"}[name] }
	for configured, want := range map[string]string{"/run/p.sock": "unix:///run/p.sock", "unix:///a": "unix:///a", "": "tcp://x"} {
		if got := findHost(configured, env); got != want {
			t.Errorf("%q: got %q, want %q", configured, got, want)
		}
	}
}
