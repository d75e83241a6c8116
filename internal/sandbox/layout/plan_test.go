package layout

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

// machine is a made-up host: absolute paths, directories ending in a slash,
// links as "from -> to".
type machine []string

func (m machine) find(p string) (File, bool) {
	for _, e := range m {
		if from, to, ok := strings.Cut(e, " -> "); ok && (p == from || Below(p, from)) {
			return m.find(to + strings.TrimPrefix(p, from))
		}
	}
	for i, e := range m {
		if strings.TrimSuffix(e, "/") == p || e == p {
			return File{Real: p, Dir: strings.HasSuffix(e, "/"), ID: Identity{Dev: 1, Ino: uint64(i + 1)}}, true
		}
	}
	return File{}, false
}

func (m machine) facts(uid int) Facts {
	return Facts{
		UID: uid, GID: uid, NobodyUID: 65534, NobodyGID: 65534, LandlockABI: 7, IPv6: true, Lookup: m.find, List: m.list,
		Present: func(dir string, names []string) []Entry {
			var list []Entry
			for _, n := range names {
				p := path.Join(dir, n)
				if f, ok := m.find(p); ok || slices.ContainsFunc(m, func(e string) bool { return strings.HasPrefix(e, p+" -> ") }) {
					list = append(list, Entry{n, f})
				}
			}
			return list
		},
		Follow: func(p string) ([]string, string) {
			for _, e := range m {
				if from, to, ok := strings.Cut(e, " -> "); ok && (p == from || Below(p, from)) {
					return []string{from}, to + strings.TrimPrefix(p, from)
				}
			}
			return nil, p
		},
		Links: func(dir string) (names []string) {
			for _, e := range m {
				if from, _, ok := strings.Cut(e, " -> "); ok && path.Dir(from) == dir {
					names = append(names, path.Base(from))
				}
			}
			return names
		},
		ReadFile: func(p string) (string, error) {
			switch p {
			case "/home/ada/l/.git":
				return "gitdir: store\n", nil
			case "/home/ada/l/store/config":
				return "[core]\n\thooksPath = dev/hooks\n\tfsmonitor = dev/tool\n[remote \"o\"]\n\turl = dev\n[branch \"dev\"]\n\tdescription = dev/tool\n", nil
			case "/home/ada/wt/.git":
				return "gitdir: /home/ada/p/.git/worktrees/wt\n", nil
			case "/home/ada/p/.git/worktrees/wt/gitdir":
				return "/home/ada/wt/.git\n", nil
			case "/home/ada/forged/.git":
				return "gitdir: /home/ada/p/.git/worktrees/wt\n", nil
			}
			return "", os.ErrNotExist
		},
	}
}

var laptop = machine{
	"/", "/tmp/", "/var/tmp/", "/run/", "/etc/shadow", "/etc/bawn/", "/proc/acpi/", "/proc/kpagecount", "/sys/firmware/", "/sys/fs/cgroup/",
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/nvidia0", "/dev/sda", "/dev/shm/",
	"/home/ada/", "/home/ada/.ssh/", "/home/ada/.netrc", "/home/ada/.config/", "/home/ada/.config/gh/", "/home/ada/.config/bawn/", "/home/ada/.aws -> /mnt/stick/aws", "/mnt/stick/aws/",
	"/home/ada/.cache/", "/home/ada/.cache/bawn/private/x/home%ada%.cache/", "/home/ada/.local/state/bawn/",
	"/home/ada/.local/state/bawn/s/", "/home/ada/.local/state/bawn/s/ca.pem",
	"/home/ada/p/", "/home/ada/p/.git/", "/home/ada/p/.git/hooks/", "/home/ada/p/.git/config", "/home/ada/p/.vscode/", "/home/ada/p/.vscode/settings.json", "/home/ada/p/sub/",
	"/home/ada/l/", "/home/ada/l/.git", "/home/ada/l/store/", "/home/ada/l/store/hooks/", "/home/ada/l/store/config", "/home/ada/l/store/hooks/pre-push -> /home/ada/l/bin/push", "/home/ada/l/bin/push",
	"/home/ada/l/.envrc -> /home/ada/l/env/dev", "/home/ada/l/env/dev", "/home/ada/l/.vscode -> /home/ada/l/tools/vs", "/home/ada/l/.claude -> /srv/data", "/home/ada/l/.config -> /home/ada/l/conf", "/home/ada/l/conf/",
	"/home/ada/l/dev/", "/home/ada/l/dev/tool",
	"/home/ada/wt/", "/home/ada/wt/.git", "/home/ada/forged/", "/home/ada/forged/.git", "/tmp/p/", "/srv/data/", "/root/", "/root/p/",
}

func plain(ws string) sandbox.Request {
	return sandbox.Request{
		Session: bawn.Session{ID: "s1", Isolation: bawn.Isolation{
			Profile: "default", Workspace: ws, Protect: true, Env: []string{"PATH", "LC_*"}, Caches: bawn.CachePrivate, CacheDirs: []string{"/home/ada/.cache"},
			Mounts:    []bawn.Mount{{Path: ws, Access: bawn.ReadWrite, Why: "workspace"}},
			Resources: bawn.Resources{TmpMB: 100, MemoryMB: 1000, PIDs: 50},
		}},
		Argv: []string{"make"}, Dir: ws, Environ: []string{"HOME=/home/ada", "PATH=/usr/bin", "LC_ALL=C", "API_KEY=x"},
		Hidden: []string{"/home/ada/.local/state/bawn", "/home/ada/.config/bawn"}, CacheDir: "/home/ada/.cache/bawn/private/x",
	}
}

func TestPlanGolden(t *testing.T) {
	cases := map[string]struct {
		uid    int
		change func(*sandbox.Request)
	}{
		"user": {1000, func(*sandbox.Request) {}},
		"root": {0, func(r *sandbox.Request) {
			r.Environ[0] = "HOME=/root"
			r.Session.Isolation.Workspace, r.Dir = "/root/p", "/root/p"
			r.Session.Isolation.Mounts[0].Path = "/root/p"
		}},
		"network, paths and devices": {1000, func(r *sandbox.Request) {
			iso := &r.Session.Isolation
			iso.Network, iso.Devices, r.Open = bawn.NetworkFull, []string{"nvidia0"}, []string{"gh"}
			iso.Mounts = append(iso.Mounts, bawn.Mount{Path: "/srv/data", Access: bawn.ReadWrite, Why: "--rw"},
				bawn.Mount{Path: "/home/ada/p/sub", Access: bawn.ReadOnly, Why: "--ro"}, bawn.Mount{Path: "/etc/shadow", Access: bawn.Hidden, Why: "--deny"})
		}},
		"hosts by name, and files": {1000, func(r *sandbox.Request) {
			r.Session.Isolation.Network, r.Relay = bawn.NetworkAllowlist, true
			r.HostPorts = []uint16{6379, 5432, 5432}
			r.SetEnv = []string{"SSL_CERT_FILE=/run/bawn/ca.pem", "PWD=/x"}
			r.Files = []sandbox.File{
				{Source: "/home/ada/.local/state/bawn/s/ca.pem", Target: "/run/bawn/ca.pem"}, {Source: "/home/ada/.local/state/bawn/s/", Target: "/run/bawn/s"},
				{Source: "/home/ada/.local/state/bawn/s/ca.pem", Target: "/home/ada/.netrc"}, {Source: "/home/ada/.local/state/bawn/s/ca.pem", Target: "/home/ada/.config/gh/hosts.yml"},
				{Source: "/home/ada/.local/state/bawn/s/ca.pem", Target: "/home/ada/.aws/new/credentials"}, {Source: "/home/ada/.local/state/bawn/s/ca.pem", Target: "/home/ada/p/.git/config"},
			}
		}},
		"below tmp, read-only": {1000, func(r *sandbox.Request) {
			r.Session.Isolation.Workspace, r.Dir = "/tmp/p", "/tmp/p"
			r.Session.Isolation.Mounts[0] = bawn.Mount{Path: "/tmp/p", Access: bawn.ReadOnly, Why: "workspace"}
		}},
		"links and another git directory": {1000, func(r *sandbox.Request) {
			r.Session.Isolation.Workspace, r.Dir = "/home/ada/l", "/home/ada/l"
			r.Session.Isolation.Mounts[0].Path = "/home/ada/l"
		}},
		"linked worktree": {1000, func(r *sandbox.Request) {
			r.Session.Isolation.Workspace, r.Dir = "/home/ada/wt", "/home/ada/wt"
			r.Session.Isolation.Mounts[0].Path = "/home/ada/wt"
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := plain("/home/ada/p")
			c.change(&req)
			p, err := Layout(req, laptop.facts(c.uid))
			if err != nil {
				t.Fatal(err)
			}
			golden.JSON(t, filepath.Join("testdata", "plan", strings.ReplaceAll(name, " ", "-")+".golden"), p)
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	cases := map[string]func(*sandbox.Request){
		"the home directory":  func(r *sandbox.Request) { r.Session.Isolation.Workspace = "/home/ada" },
		"the root":            func(r *sandbox.Request) { r.Session.Isolation.Workspace = "/" },
		"an absent workspace": func(r *sandbox.Request) { r.Session.Isolation.Workspace = "/home/ada/none" },
		"an absent path":      func(r *sandbox.Request) { r.Session.Isolation.Mounts[0].Path = "/none" },
		"everything writable": func(r *sandbox.Request) { r.Session.Isolation.Mounts[0].Path = "/" },
		"credentials by --ro": func(r *sandbox.Request) {
			r.Session.Isolation.Mounts = append(r.Session.Isolation.Mounts, bawn.Mount{Path: "/home/ada/.ssh", Access: bawn.ReadOnly, Why: "--ro"})
		},
		"an unknown name":     func(r *sandbox.Request) { r.Open = []string{"gihub"} },
		"an absent directory": func(r *sandbox.Request) { r.Dir = "/home/ada/none" },
		"an absent device":    func(r *sandbox.Request) { r.Session.Isolation.Devices = []string{"nvidia1"} },
		"a disk":              func(r *sandbox.Request) { r.Session.Isolation.Devices = []string{"nvidia0", "sda"} },
		"a directory":         func(r *sandbox.Request) { r.Session.Isolation.Devices = []string{"shm"} },
	}
	for name, change := range cases {
		req := plain("/home/ada/p")
		change(&req)
		if p, err := Layout(req, laptop.facts(1000)); err == nil {
			t.Errorf("%s: got a plan %+v", name, p)
		}
	}
}

// fake is a provider with the capabilities it is given.
type fake struct {
	sandbox.Provider
	name string
	caps []bawn.Capability
}

func (f fake) Name() string                    { return f.name }
func (f fake) Capabilities() []bawn.Capability { return f.caps }

func TestNegotiateNamesEverythingUnmet(t *testing.T) {
	iso := bawn.Isolation{Network: bawn.NetworkAllowlist, Resources: bawn.Resources{MemoryMB: 1}}
	var all, some []bawn.Capability
	for _, a := range sandbox.Needs(iso) {
		all = append(all, bawn.Capability{Attribute: a, Strength: bawn.Enforced})
		if a != sandbox.NetAllow && a != sandbox.LimitMemory {
			some = append(some, bawn.Capability{Attribute: a, Strength: bawn.Enforced})
		}
	}
	if partly, err := sandbox.Negotiate(iso, fake{name: "a", caps: all}); err != nil || partly != nil {
		t.Errorf("all met: got %v, %v", partly, err)
	}
	_, err := sandbox.Negotiate(iso, fake{name: "b", caps: some}, fake{name: "a", caps: all})
	var m *sandbox.MismatchError
	if !errors.As(err, &m) || len(m.Unmet) != 2 || !slices.Equal(m.Others[sandbox.NetAllow], []string{"a"}) {
		t.Errorf("two unmet: got %v", err)
	}
	if _, err := sandbox.Negotiate(bawn.Isolation{}, fake{name: "none"}); err == nil {
		t.Error("a provider that enforces nothing was accepted")
	}
	partly, err := sandbox.Negotiate(iso, fake{name: "c", caps: append(slices.Clone(some),
		bawn.Capability{Attribute: sandbox.NetAllow, Strength: bawn.Partly}, bawn.Capability{Attribute: sandbox.LimitMemory, Strength: bawn.Enforced})})
	if err != nil || len(partly) != 1 || partly[0].Attribute != sandbox.NetAllow {
		t.Errorf("one in part: got %v, %v", partly, err)
	}
}

// TestNothingUncoversWhatIsHidden: of two mounts the one further in comes later,
// so that no protected directory brings back what is hidden below it.
func TestNothingUncoversWhatIsHidden(t *testing.T) {
	req := plain("/home/ada/p")
	iso := &req.Session.Isolation
	for _, hidden := range []string{"/home/ada/p/.vscode/settings.json", "/home/ada/p/sub"} {
		iso.Mounts = append(iso.Mounts, bawn.Mount{Path: hidden, Access: bawn.Hidden, Why: "--deny"})
	}
	req.Guarded = []string{"/home/ada/p/.vscode"}
	p, err := Layout(req, laptop.facts(1000))
	if err != nil {
		t.Fatal(err)
	}
	hides := 0
	for i, m := range p.Mounts {
		if m.Kind != KindHide && m.Kind != KindHideDir || m.Why != "--deny" {
			continue
		}
		hides++
		for _, later := range p.Mounts[i+1:] {
			if later.Kind != KindHide && (Below(m.Target, later.Target) || m.Target == later.Target) {
				t.Errorf("%s covers %s, which is hidden", later.Target, m.Target)
			}
		}
	}
	if hides != 2 {
		t.Errorf("%d are hidden; want 2", hides)
	}
}

// TestGitDirectories: private ones lie over the host's, whatever is asked for
// beside; what can't be mounted is refused.
func TestGitDirectories(t *testing.T) {
	home := append(slices.Clone(laptop), "/home/ada/.state/", "/home/ada/.state/git/", "/home/ada/.state/pool/", "/home/ada/p/.git/objects/")
	own := bawn.GitDir{Path: "/home/ada/p/.git", Private: "/home/ada/.state/git", Objects: []bawn.GitObjects{{Source: "/home/ada/p/.git/objects", Target: "/run/bawn/git/0"}}}
	for name, c := range map[string]struct {
		change func(*sandbox.Request)
		ok     bool
	}{
		"as it is":              {func(*sandbox.Request) {}, true},
		"asked for by --rw":     {func(r *sandbox.Request) { addMount(r, "/home/ada/p/.git", bawn.ReadWrite) }, true},
		"a part by --rw":        {func(r *sandbox.Request) { addMount(r, "/home/ada/p/.git/hooks", bawn.ReadWrite) }, false},
		"a part by --ro":        {func(r *sandbox.Request) { addMount(r, "/home/ada/p/.git/config", bawn.ReadOnly) }, false},
		"around it by --rw":     {func(r *sandbox.Request) { addMount(r, "/home/ada/p", bawn.ReadWrite) }, true},
		"no private one":        {func(r *sandbox.Request) { r.Git[0].Private = "/home/ada/none" }, false},
		"a file":                {func(r *sandbox.Request) { r.Git[0].Private = "/home/ada/p/.git/config" }, false},
		"itself":                {func(r *sandbox.Request) { r.Git[0].Private = r.Git[0].Path }, false},
		"in itself":             {func(r *sandbox.Request) { r.Git[0].Private = "/home/ada/p/.git/hooks" }, false},
		"objects elsewhere":     {func(r *sandbox.Request) { r.Git[0].Objects[0].Target = "/home/ada/p/objects" }, false},
		"no objects":            {func(r *sandbox.Request) { r.Git[0].Objects[0].Source = "/home/ada/none" }, false},
		"a pool that is absent": {func(r *sandbox.Request) { r.GitPool = "/home/ada/none" }, false},
		"a pool":                {func(r *sandbox.Request) { r.GitPool = "/home/ada/.state/pool" }, true},
		"another by --rw":       {func(r *sandbox.Request) { r.Git = nil; addMount(r, "/home/ada/p/.git", bawn.ReadWrite) }, false},
	} {
		req := plain("/home/ada/p")
		req.Hidden, req.Git = []string{"/home/ada/.state"}, []bawn.GitDir{own}
		req.Git[0].Objects = slices.Clone(own.Objects)
		c.change(&req)
		p, err := Layout(req, home.facts(1000))
		if (err == nil) != c.ok {
			t.Errorf("%s: got %v; want a plan: %v", name, err, c.ok)
		}
		if err != nil {
			continue
		}
		last := ""
		for _, m := range p.Mounts {
			if m.Target == "/home/ada/p/.git" || Below(m.Target, "/home/ada/p/.git") {
				last += m.Kind + " " + m.Source + " " + m.Target + "\n"
			}
		}
		if want := "bind /home/ada/.state/git /home/ada/p/.git\n"; last != want {
			t.Errorf("%s: got %q, want %q", name, last, want)
		}
	}
}

// TestBorrowedObjects: objects that a repository borrows from one that is hidden are shown
// at their own place too, and nothing else of that one.
func TestBorrowedObjects(t *testing.T) {
	const objects = "/home/ada/lib/.git/objects"
	facts := append(slices.Clone(laptop), "/home/ada/.state/", "/home/ada/.state/git/", "/home/ada/p/.git/objects/", "/home/ada/lib/", "/home/ada/lib/.git/", objects+"/")
	for _, hidden := range []bool{true, false} {
		req := plain("/home/ada/p")
		req.Hidden = []string{"/home/ada/.state"}
		req.Git = []bawn.GitDir{{Path: "/home/ada/p/.git", Private: "/home/ada/.state/git", Objects: []bawn.GitObjects{{Source: objects, Target: "/run/bawn/git/0"}}}}
		if hidden {
			addMount(&req, "/home/ada/lib", bawn.Hidden)
		}
		p, err := Layout(req, facts.facts(1000))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range p.Mounts {
			if m.Target == "/home/ada/lib" || Below(m.Target, "/home/ada/lib") {
				got = append(got, m.Kind+" "+m.Target)
			}
		}
		want := []string{KindTmpfs + " /home/ada/lib", KindBindRO + " " + objects}
		if !hidden {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("hidden %v: %q; want %q", hidden, got, want)
		}
	}
}

func addMount(r *sandbox.Request, p string, access bawn.Access) {
	r.Session.Isolation.Mounts = append(r.Session.Isolation.Mounts, bawn.Mount{Path: p, Access: access, Why: "test"})
}
