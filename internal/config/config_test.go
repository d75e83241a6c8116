package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

func TestNoFileGivesTheClosedDefault(t *testing.T) {
	in := world(t)
	c := mustLoad(t, in)
	iso := c.Isolation(in.Workspace)
	same(t, bawn.Resources{MemoryMB: 12288, TmpMB: 3072, PIDs: 4096, OpenFiles: 16384, FileSizeMB: 16384, Timeout: 12 * time.Hour}, iso.Resources)
	if iso.Network != bawn.NetworkAllowlist || iso.Caches != bawn.CachePrivate || !iso.Protect || len(iso.Devices)+len(iso.SetEnv) > 0 {
		t.Errorf("the default is not closed: %+v", iso)
	}
	for path, want := range map[string]bawn.Access{
		in.Workspace: bawn.ReadWrite, in.Home: bawn.ReadOnly, "/usr": bawn.ReadOnly,
		in.State() + "/x": bawn.Hidden, in.User(): bawn.Hidden, ManagedFile: bawn.Hidden,
	} {
		if got := accessAt(iso, path); got != want {
			t.Errorf("%s is %v; want %v", path, got, want)
		}
	}
	if c.Mode != bawn.ModeNormal || c.Autonomy != bawn.AutonomyModerate || c.Provider != "" || c.Profile != "default" {
		t.Errorf("default = %+v", c)
	}
}

// TestEnvDefaultHasNoCredential looks for the words that names of credentials
// are made of.
func TestEnvDefaultHasNoCredential(t *testing.T) {
	for _, name := range EnvDefault() {
		for _, word := range []string{"KEY", "TOKEN", "SECRET", "PASS", "CRED", "AUTH_", "SSH", "COOKIE", "SESSION", "PROXY_"} {
			if strings.Contains(name, word) {
				t.Errorf("%q is passed by default", name)
			}
		}
		if prefix, ok := strings.CutSuffix(name, "*"); ok && len(prefix) < 3 {
			t.Errorf("%q passes too much", name)
		}
	}
	in := world(t)
	pass := mustLoad(t, in).Isolation(in.Workspace).Env
	for _, secret := range []string{"ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "GIT_ASKPASS", "LD_PRELOAD"} {
		for _, e := range pass {
			if envCovers(e, secret) {
				t.Errorf("%q passes %q", e, secret)
			}
		}
	}
}

func TestLayers(t *testing.T) {
	in := world(t)
	put(t, in.ManagedPath, "mode = 'safe'\nagent = 'm'\n[isolation.resources]\nmemory_mb = 100\npids_limit = 50\nopen_files = 40\n")
	put(t, in.User(), "agent = 'claude'\n[isolation]\nnetwork = 'full'\nrw = ['~/cache', '/data']\nenv = ['A=1', 'FOO_*']\n[isolation.resources]\nmemory_mb = 200\npids_limit = 60\ntimeout = '90m'\n")
	put(t, in.projectFile(), "[isolation]\nnetwork = 'allowlist'\ndeny = ['secrets']\nro = ['docs', '/data/fixed']\nprotected = ['deploy.sh']\n[isolation.resources]\npids_limit = 10\n")
	in.Flags = Flags{Env: []string{"A=2"}, PIDs: ptr(int64(20)), Deny: []string{"/srv"}}
	c := mustLoad(t, in)
	iso := c.Isolation(in.Workspace)
	same(t, bawn.Resources{MemoryMB: 200, TmpMB: 3072, PIDs: 20, OpenFiles: 40, FileSizeMB: 16384, Timeout: 90 * time.Minute}, iso.Resources)
	same(t, []string{"A=2"}, iso.SetEnv)
	same(t, append(EnvDefault(), "FOO_*"), iso.Env)
	same(t, []string{"deploy.sh"}, c.Protected)
	if c.Mode != bawn.ModeSafe || c.Agent != "claude" || iso.Network != bawn.NetworkAllowlist {
		t.Errorf("mode %v, agent %q, network %v", c.Mode, c.Agent, iso.Network)
	}
	same(t, map[string]string{
		in.Workspace: "read-write workspace", in.Workspace + "/secrets": "hidden project config " + in.projectFile() + ":3:9", in.Workspace + "/docs": "read-only project config " + in.projectFile() + ":4:7",
		in.Home + "/cache": "read-write user config " + in.User() + ":4:7", "/data": "read-write user config " + in.User() + ":4:18", "/data/fixed": "read-only project config " + in.projectFile() + ":4:15", "/srv": "hidden --deny",
		in.State(): "hidden bawn's own state", in.Home + "/.config/bawn": "hidden bawn's own state", in.Home + "/.cache/bawn": "hidden bawn's own state", "/etc/bawn": "hidden bawn's own state",
	}, mountMap(iso))
}

func mountMap(iso bawn.Isolation) map[string]string {
	m := map[string]string{}
	for _, mt := range iso.Mounts {
		m[mt.Path] = mt.Access.String() + " " + mt.Why
	}
	return m
}

func TestOrigins(t *testing.T) {
	in := world(t)
	put(t, in.User(), "mode = 'strict'\n[isolation]\npolicy_profile = 'work'\nro = ['/a']\n[profiles.work]\nextends = 'strict'\nnetwork = 'full'\nrw = ['/b']\n")
	put(t, in.projectFile(), "[isolation]\ndeny = [\n  'x',\n]\n")
	in.Flags.Timeout = ptr("10s")
	got := map[string]string{}
	for _, o := range mustLoad(t, in).Origins() {
		got[o.Key+" = "+o.Show()] = strings.ReplaceAll(o.Place.String(), in.Home, "~") + " " + o.Via
	}
	for value, place := range map[string]string{
		`mode = "strict"`:                           "~/.config/bawn/config.toml:1:1 ",
		`autonomy = "none"`:                         "~/.config/bawn/config.toml:1:1 mode",
		`isolation.policy_profile = "work"`:         "~/.config/bawn/config.toml:3:1 ",
		`isolation.network = "full"`:                `~/.config/bawn/config.toml:7:1 profile "work"`,
		`isolation.caches = "read-only"`:            `~/.config/bawn/config.toml:3:1 profile "strict"`,
		`isolation.resources.memory_mb = 4096`:      `~/.config/bawn/config.toml:3:1 profile "strict"`,
		`isolation.resources.timeout = "10s"`:       "--timeout --timeout",
		`isolation.rw = "/b"`:                       `~/.config/bawn/config.toml:8:7 profile "work"`,
		`isolation.ro = "/a"`:                       "~/.config/bawn/config.toml:4:7 ",
		`isolation.deny = "` + in.Workspace + `/x"`: "~/ws/.bawn/config.toml:3:3 ",
		`isolation.env = "TERM"`:                    "built-in ",
		`isolation.enabled = true`:                  "built-in ",
	} {
		if got[value] != place {
			t.Errorf("%s comes from %q; want %q", value, got[value], place)
		}
	}
}

func TestModeAndAutonomy(t *testing.T) {
	for _, c := range []struct {
		user, project string
		flags         Flags
		mode          bawn.Mode
		want          bawn.Autonomy
	}{
		{"mode='plan'", "", Flags{}, bawn.ModePlan, bawn.AutonomyNone},
		{"mode='safe'", "", Flags{}, bawn.ModeSafe, bawn.AutonomyModerate},
		{"mode='permissive'", "", Flags{}, bawn.ModePermissive, bawn.AutonomyFull},
		{"mode='permissive'\nautonomy='limited'", "", Flags{}, bawn.ModePermissive, bawn.AutonomyLimited},
		{"mode='permissive'", "autonomy='limited'", Flags{}, bawn.ModePermissive, bawn.AutonomyLimited},
		{"", "autonomy='limited'", Flags{Mode: ptr("plan")}, bawn.ModePlan, bawn.AutonomyNone},
		{"", "autonomy='limited'", Flags{Autonomy: ptr("full")}, bawn.ModeNormal, bawn.AutonomyFull},
		{"", "mode='plan'", Flags{}, bawn.ModePlan, bawn.AutonomyNone},
		{"", "mode='plan'", Flags{Mode: ptr("auto")}, bawn.ModeAuto, bawn.AutonomyModerate},
	} {
		in := world(t)
		put(t, in.User(), c.user)
		put(t, in.projectFile(), c.project)
		in.Flags = c.flags
		got := mustLoad(t, in)
		if got.Mode != c.mode || got.Autonomy != c.want {
			t.Errorf("%q, %q: mode %v, autonomy %v; want %v, %v", c.user, c.project, got.Mode, got.Autonomy, c.mode, c.want)
		}
		for _, o := range got.Origins() {
			if o.Key == "autonomy" && o.Value != c.want.String() {
				t.Errorf("%q, %q: the origin says %v", c.user, c.project, o.Value)
			}
		}
	}
}

func TestPlanModeWritesNowhere(t *testing.T) {
	in := world(t)
	in.Flags = Flags{Mode: ptr("plan"), RW: []string{"/data"}, Deny: []string{"/x"}}
	for _, m := range mustLoad(t, in).Isolation(in.Workspace).Mounts {
		if m.Access > bawn.ReadOnly {
			t.Errorf("%s is %v in mode plan", m.Path, m.Access)
		}
	}
	in.Flags.Mode = nil // control
	if got := accessAt(mustLoad(t, in).Isolation(in.Workspace), "/data"); got != bawn.ReadWrite {
		t.Errorf("/data is %v in mode normal", got)
	}
}

func TestIsolationMovesWithTheWorkspace(t *testing.T) {
	in := world(t)
	in.Flags = Flags{Deny: []string{"secret", in.Home + "/ws2"}}
	iso := mustLoad(t, in).Isolation("/elsewhere")
	for path, want := range map[string]bawn.Access{
		"/elsewhere": bawn.ReadWrite, "/elsewhere/secret": bawn.Hidden, in.Workspace: bawn.ReadOnly, in.Home + "/ws2": bawn.Hidden,
	} {
		if got := accessAt(iso, path); got != want {
			t.Errorf("%s is %v; want %v", path, got, want)
		}
	}
}

func TestSamePath(t *testing.T) {
	for _, c := range []struct {
		user, project string
		flags         Flags
		want          bawn.Access
	}{
		{"rw=['/d']\nro=['/d']", "", Flags{}, bawn.ReadOnly},
		{"ro=['/d']\nrw=['/d']", "", Flags{}, bawn.ReadOnly},
		{"rw=['/d']\ndeny=['/d']", "", Flags{}, bawn.Hidden},
		{"deny=['/d']", "", Flags{RW: []string{"/d"}}, bawn.ReadWrite},
		{"rw=['/d']", "", Flags{Deny: []string{"/d"}}, bawn.Hidden},
		{"rw=['/d']\nro=['/d']", "", Flags{RW: []string{"/d"}}, bawn.ReadWrite},
		{"rw=['/d']", "ro=['/d']", Flags{}, bawn.ReadOnly},
		{"rw=['/d']", "ro=['/d']\ndeny=['/d']", Flags{}, bawn.Hidden},
		{"rw=['/d']", "deny=['/d']\nro=['/d']", Flags{}, bawn.Hidden},
		{"rw=['/d']", "deny=['/d']", Flags{RW: []string{"/d"}}, bawn.Hidden},
		{"rw=['/d/..']", "deny=['/d']", Flags{RW: []string{"/d"}}, bawn.ReadWrite},
		{"open=['/d']", "", Flags{}, bawn.ReadOnly},
		{"rw=['/d']", "rw=['/d']", Flags{}, bawn.ReadWrite},
		{"ro=['/d']\nrw=['/']", "deny=['/d']", Flags{}, bawn.Hidden},
	} {
		in := world(t)
		put(t, in.User(), "[isolation]\n"+c.user)
		put(t, in.projectFile(), "[isolation]\n"+c.project)
		in.Flags = c.flags
		if got := accessAt(mustLoad(t, in).Isolation(in.Workspace), "/d"); got != c.want {
			t.Errorf("user %q, project %q, flags %v: %v; want %v", c.user, c.project, c.flags, got, c.want)
		}
	}
}

func TestProfiles(t *testing.T) {
	in := world(t)
	load := func(user, profile string) bawn.Isolation {
		put(t, in.User(), user)
		in.Flags = Flags{}
		if profile != "" {
			in.Flags.Profile = &profile
		}
		c := mustLoad(t, in)
		return c.Isolation(in.Workspace)
	}
	if iso := load("", "readonly"); accessAt(iso, in.Workspace) != bawn.ReadOnly || iso.Profile != "readonly" {
		t.Errorf("readonly: %+v", iso)
	}
	if iso := load("", "online"); iso.Network != bawn.NetworkFull || accessAt(iso, in.Workspace) != bawn.ReadWrite {
		t.Errorf("online: %+v", iso)
	}
	if iso := load("[isolation]\nnetwork='full'", "strict"); iso.Network != bawn.NetworkNone || iso.Resources.MemoryMB != 4096 || iso.Caches != bawn.CacheReadOnly {
		t.Errorf("strict: %+v", iso)
	}
	if iso := load("[isolation.resources]\nmemory_mb=100", "strict"); iso.Resources.MemoryMB != 100 {
		t.Errorf("strict raised the memory to %d", iso.Resources.MemoryMB)
	}
	if iso := load("[isolation]\npolicy_profile='online'\nnetwork='none'", ""); iso.Network != bawn.NetworkNone {
		t.Errorf("a key beside the profile: network %v", iso.Network)
	}
	if iso := load("[isolation.resources]\nmemory_mb=100", "default"); iso.Resources.MemoryMB != 12288 {
		t.Errorf("default: memory %d", iso.Resources.MemoryMB)
	}
	work := "[profiles.base]\nnetwork='full'\nrw=['/b']\n[profiles.work]\nextends='base'\nnetwork='none'\nresources.pids_limit=7\n"
	if iso := load(work, "work"); iso.Network != bawn.NetworkNone || accessAt(iso, "/b") != bawn.ReadWrite || iso.Resources.PIDs != 7 {
		t.Errorf("work: %+v", iso)
	}
	if iso := load(work, ""); accessAt(iso, "/b") != bawn.ReadOnly {
		t.Error("a profile counts that nobody chose")
	}
}

func TestPins(t *testing.T) {
	flag := func(f Flags) Flags { return f }
	for _, c := range []struct {
		pins, user string
		flags      Flags
		refused    bool
	}{
		{"isolation.network", "[isolation]\nnetwork='full'", Flags{}, true},
		{"isolation.network", "[isolation]\nnetwork='allowlist'", Flags{}, false}, // changes nothing
		{"isolation.network", "", flag(Flags{Net: ptr("full")}), true},
		{"isolation.network", "", flag(Flags{Profile: ptr("online")}), true},
		{"isolation.network", "[isolation]\npolicy_profile='online'", Flags{}, true},
		{"isolation", "[isolation.resources]\nmemory_mb=16", Flags{}, true},
		{"isolation.resources", "", flag(Flags{Memory: ptr(int64(16))}), true},
		{"isolation.resources", "", flag(Flags{Profile: ptr("strict")}), true},
		{"isolation.resources", "mode='plan'", Flags{}, false},
		{"isolation.rw", "[isolation]\nrw=['/x']", Flags{}, true},
		{"isolation.rw", "[isolation]\nrw=['/m']", Flags{}, false}, // the managed file has it
		{"isolation.rw", "[isolation]\nro=['/m']", Flags{RW: []string{"/m"}}, true},
		{"isolation.policy_profile", "", flag(Flags{Profile: ptr("online")}), true},
		{"isolation.policy_profile", "", flag(Flags{Profile: ptr("default")}), false},
		{"profiles", "[profiles.x]\nnetwork='full'", Flags{}, true},
		{"isolation.provider", "[isolation]\nprovider='host'", Flags{}, true},
		{"isolation", "[isolation]\nallow_fallback_to_host=true", Flags{}, true},
		{"isolation.docker_options", "[isolation.docker_options]\nallow_args=['--privileged']", Flags{}, true},
		{"isolation.docker_options", "[isolation.docker_options]\nhost='/run/other.sock'", Flags{}, true},
		{"isolation.docker_options.image", "[isolation.docker_options]\nimage='x'", Flags{}, true},
		{"isolation.docker_options.image", "[isolation.docker_options]\nextra_args=['--init']", Flags{}, false},
		{"isolation.docker_api", "", flag(Flags{DockerAPI: true}), true},
		{"mode", "mode='permissive'", Flags{}, true},
		{"mode", "autonomy='full'", Flags{}, false}, // control: another key
	} {
		in := world(t)
		put(t, in.ManagedPath, "pinned = ['"+c.pins+"']\n[isolation]\nrw = ['/m']\n")
		put(t, in.User(), c.user)
		in.Flags = c.flags
		if !c.refused {
			mustLoad(t, in)
			continue
		}
		if e := refused(t, in)[0]; !strings.Contains(e.Problem, "is pinned at "+in.ManagedPath+":1:11") || !strings.Contains(e.Hint, in.ManagedPath) {
			t.Errorf("pins %q, %q, %+v: %v", c.pins, c.user, c.flags, e)
		}
	}
}

func TestInputsAreChecked(t *testing.T) {
	for what, change := range map[string]func(*Inputs){
		`workspace "ws" is not a clean absolute path`: func(in *Inputs) { in.Workspace = "ws" },
		`workspace "/a/" is not a clean`:              func(in *Inputs) { in.Workspace = "/a/" },
		`is not a clean absolute path`:                func(in *Inputs) { in.Workspace += "\x1b[2J" },
		`home directory "" is not`:                    func(in *Inputs) { in.Home = "" },
		`would make the whole machine writable`:       func(in *Inputs) { in.Workspace = "/" },
		`which holds Bawn's own state`:                func(in *Inputs) { in.Workspace = in.State() + "/x" },
		`the machine's memory is 0 MiB`:               func(in *Inputs) { in.Machine = Machine{} },
		`no such file or directory`:                   func(in *Inputs) { in.Workspace += "/absent" },
	} {
		in := world(t)
		change(&in)
		if errs := refused(t, in); !strings.Contains(errs.Error(), what) {
			t.Errorf("%v; want %q", errs, what)
		}
	}
}

func TestXDG(t *testing.T) {
	in := world(t)
	in.XDGConfigHome, in.XDGStateHome = "relative", "relative/too"
	if in.User() != in.Home+"/.config/bawn/config.toml" || in.State() != in.Home+"/.local/state/bawn" {
		t.Errorf("a relative directory counts: %s, %s", in.User(), in.State())
	}
	in.XDGConfigHome, in.XDGStateHome = in.Home+"/c/", in.Home+"/s"
	if in.User() != in.Home+"/c/bawn/config.toml" || in.State() != in.Home+"/s/bawn" {
		t.Errorf("%s, %s", in.User(), in.State())
	}
	if in.ManagedPath = ""; in.managed() != ManagedFile {
		t.Errorf("managed %s", in.managed())
	}
	in.UserPath = "/u"
	if in.User() != "/u" {
		t.Errorf("user %s", in.User())
	}
}

// TestOwnPlacesAreNobodys: a flag can't open what Bawn believes: its
// configuration, its state, and in its cache what was found out by probing.
func TestOwnPlacesAreNobodys(t *testing.T) {
	control := world(t)
	control.Flags.RW = []string{"~/.cache/other"}
	mustLoad(t, control)
	for _, place := range []string{"~/.config/bawn", "~/.local/state/bawn/x", "~/.cache/bawn", "~/.cache/bawn/probe"} {
		for _, open := range []func(*Flags){func(f *Flags) { f.RW = []string{place} }, func(f *Flags) { f.RO = []string{place} }} {
			in := world(t)
			open(&in.Flags)
			if errs := refused(t, in); !strings.Contains(errs.Error(), "Bawn's own state") {
				t.Errorf("%s: %v", place, errs)
			}
		}
	}
}

// TestOwnFilesStayHiddenBehindLinks: each of the user's files that Bawn obeys
// may be a link by itself.
func TestOwnFilesStayHiddenBehindLinks(t *testing.T) {
	for _, name := range []string{"config.toml", "policy.toml", "plugins/files.toml"} {
		in := world(t)
		file := filepath.Join(in.Workspace, "dot", name)
		put(t, file, "")
		link := filepath.Join(in.Home, ".config/bawn", name)
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(file, link); err != nil {
			t.Fatal(err)
		}
		if got := accessAt(mustLoad(t, in).Isolation(in.Workspace), file); got != bawn.Hidden {
			t.Errorf("the guest's access to what %s is a link to: %v", name, got)
		}
	}
}

// TestOwnStateStaysHiddenBehindLinks: the user's file lives in a repository of
// dotfiles that the guest works on.
func TestOwnStateStaysHiddenBehindLinks(t *testing.T) {
	in := world(t)
	dotfiles := filepath.Join(in.Workspace, "bawn")
	put(t, filepath.Join(dotfiles, "config.toml"), "mode = 'safe'\n")
	if err := os.MkdirAll(filepath.Join(in.Home, ".config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dotfiles, filepath.Join(in.Home, ".config/bawn")); err != nil {
		t.Fatal(err)
	}
	iso := mustLoad(t, in).Isolation(in.Workspace)
	if got := accessAt(iso, filepath.Join(dotfiles, "config.toml")); got != bawn.Hidden {
		t.Errorf("the guest's access to the user's configuration is %v", got)
	}
	if got := accessAt(iso, in.Workspace+"/other"); got != bawn.ReadWrite {
		t.Errorf("the rest of the workspace is %v", got)
	}
	in.Flags.RW = []string{dotfiles + "/config.toml"}
	if errs := refused(t, in); !strings.Contains(errs.Error(), "Bawn's own state") {
		t.Error(errs)
	}
}
