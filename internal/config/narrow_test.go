package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// base is a user's file that gives something to every key, so that a project
// has what to take away.
const base = `
mode = "auto"
[isolation]
network = "allowlist"
hosts = ["*.example.org", "one.test:443"]
rw = ["/data", "~/out"]
ro = ["/data/fixed"]
deny = ["/data/secret", "~/hidden"]
open = ["gh", "~/.aws"]
env = ["FOO_*", "BAR=1"]
caches = "private"
cache_dirs = ["/cache"]
devices = ["kvm"]
[isolation.resources]
memory_mb = 1000
timeout = "1h"
[profiles.wide]
network = "full"
[profiles.less]
resources.memory_mb = 500
network = "none"
`

// TestProjectMayOnlyNarrow tries each key in both directions: what narrows is
// taken, what widens is refused with its line, and taken once it is trusted.
func TestProjectMayOnlyNarrow(t *testing.T) {
	for _, c := range []struct {
		line   string
		widens string // "" where it narrows
	}{
		{"mode='plan'", ""},
		{"mode='auto'", ""},
		{"mode='permissive'", `mode from "auto" to "permissive"`},
		{"autonomy='limited'", ""},
		{"autonomy='full'", `autonomy from "moderate" to "full"`},
		{"agent='claude'", `agent from "" to "claude"`},
		{"isolation.network='none'", ""},
		{"isolation.network='full'", `isolation.network from "allowlist" to "full"`},
		{"isolation.hosts=['a.example.org','*.b.example.org:80','one.test:443']", ""},
		{"isolation.hosts=['example.org']", `isolation.hosts by "example.org"`},
		{"isolation.hosts=['one.test']", `isolation.hosts by "one.test"`},
		{"isolation.rw=['.','src','/data','/data/x','~/out/y']", ""},
		{"isolation.rw=['..']", "isolation.rw by"},
		{"isolation.rw=['/data/fixed']", "isolation.rw by"},
		{"isolation.rw=['/data/fixed/x']", "isolation.rw by"},
		{"isolation.rw=['/data/../etc']", `isolation.rw by "/etc"`},
		{"isolation.rw=['/data/secret/x']", "isolation.rw by"},
		{"isolation.rw=['/data/SECRET/x']", "isolation.rw by"}, // the same place where case does not count
		{"isolation.rw=['/database']", "isolation.rw by"},
		{"isolation.rw=['~']", "isolation.rw by"},
		{"isolation.ro=['.','docs','/data/x','/data']", ""},
		{"isolation.ro=['/data/fixed']", ""},
		{"isolation.ro=['/data/secret']", `isolation.ro by "/data/secret", which is not writable before`},
		{"isolation.ro=['/data/secret/public']", "isolation.ro by"},
		{"isolation.ro=['/data/Secret/public']", "isolation.ro by"},
		{"isolation.ro=['~/.ssh']", "isolation.ro by"}, // hidden elsewhere: reading it is not the project's to give
		{"isolation.ro=['/usr']", "isolation.ro by"},
		{"isolation.deny=['.git','/data','/usr','~','/']", ""},
		{"isolation.open=['gh','~/.aws','~/.aws/config']", ""},
		{"isolation.open=['ssh']", `isolation.open by "ssh"`},
		{"isolation.open=['~/.ssh']", "isolation.open by"},
		{"isolation.env=['FOO_*','FOO_A','FOO_A*','PATH','LC_ALL','BAR=1']", ""},
		{"isolation.env=['BAR']", `isolation.env by "BAR"`},
		{"isolation.env=['BAR=2']", "isolation.env by"},
		{"isolation.env=['PATH=/tmp']", "isolation.env by"},
		{"isolation.env=['FO*']", "isolation.env by"},
		{"isolation.env=['ANTHROPIC_API_KEY']", "isolation.env by"},
		{"isolation.caches='read-only'", ""},
		{"isolation.caches='shared'", `isolation.caches from "private" to "shared"`},
		{"isolation.cache_dirs=['/cache','/cache/x']", ""},
		{"isolation.cache_dirs=['/other']", "isolation.cache_dirs by"},
		{"isolation.devices=['kvm']", ""},
		{"isolation.devices=['fuse']", `isolation.devices by "fuse"`},
		{"isolation.protect=true", ""},
		{"isolation.ssh_agent=false", ""},
		{"isolation.ssh_agent=true", "isolation.ssh_agent from false to true"},
		{"isolation.protect=false", "isolation.protect from true to false"},
		{"isolation.protected=['deploy.sh']", ""},
		{"isolation.resources.memory_mb=999", ""},
		{"isolation.resources.memory_mb=1001", "isolation.resources.memory_mb from 1000 to 1001"},
		{"isolation.resources.timeout='59m'", ""},
		{"isolation.resources.timeout='61m'", `isolation.resources.timeout from "1h" to "1h1m"`},
		{"isolation.resources.cpus=0.5", ""}, // unlimited before
		{"isolation.resources.cpu_shares=1024", ""},
		{"isolation.resources.cpu_shares=1025", "isolation.resources.cpu_shares from no limit to 1025"},
		{"isolation.policy_profile='strict'", ""},
		{"isolation.policy_profile='readonly'", ""},
		{"isolation.policy_profile='default'", ""},
		{"isolation.policy_profile='less'", ""},
		{"isolation.policy_profile='online'", `isolation.network from "allowlist" to "full"`},
		{"isolation.policy_profile='wide'", `isolation.network from "allowlist" to "full"`},
		{"profiles.p.network='none'", ""},
		{"profiles.p.network='full'", `isolation.network from "allowlist" to "full"`},
		{"profiles.p.resources.memory_mb=2000", "isolation.resources.memory_mb from 1000 to 2000"},
		{"profiles.p.extends='strict'", ""},
		{"profiles.p.extends='online'", `isolation.network from "allowlist" to "full"`},
		{"profiles.p={extends='online',network='none'}", `isolation.network from "allowlist" to "full"`},
		{"profiles.p.rw=['/etc']", `isolation.rw by "/etc"`},
		{"profiles.p.deny=['/etc']", ""},
	} {
		in := world(t)
		put(t, in.User(), base)
		before := mustLoad(t, in)
		put(t, in.projectFile(), "\n"+c.line+"\n")
		if c.widens == "" {
			wantNarrower(t, before, mustLoad(t, in), c.line)
			continue
		}
		e := refused(t, in)[0]
		if !strings.Contains(e.Widens, c.widens) || e.Place.File != in.projectFile() || e.Place.Line != 2 || !strings.Contains(e.Hint, "bawn trust") {
			t.Errorf("%s: %v (widens %q); want line 2, %q", c.line, e, e.Widens, c.widens)
		}
		trust(t, in)
		mustLoad(t, in)
	}
}

func trust(t *testing.T, in Inputs) {
	t.Helper()
	tr, err := Examine(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Add(in); err != nil {
		t.Fatal(err)
	}
}

// wantNarrower reports everything that b permits and a does not.
func wantNarrower(t testing.TB, a, b *Config, what string) {
	t.Helper()
	for _, w := range wider(a, b) {
		t.Errorf("%s: wider in %s", what, w)
	}
}

// TestWhatTrustDoesNotReach: not even a trusted project names the provider, nor
// does trust excuse other mistakes.
func TestWhatTrustDoesNotReach(t *testing.T) {
	for _, line := range []string{
		"isolation.provider='landlock'", "isolation.provider='native'", "isolation.enabled=true", "isolation.fallback='ask'",
		"pinned=[]", "mode='x'", "profiles.wide.network='none'",
	} {
		in := world(t)
		put(t, in.User(), base)
		put(t, in.projectFile(), "isolation.network='full'\n"+line+"\n")
		if _, err := Examine(in); err == nil {
			t.Errorf("%s can be trusted", line)
		}
		data, _ := os.ReadFile(in.projectFile())
		tr, err := newTrust(in.Workspace, data)
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Add(in); err != nil { // even where the digest is in the store
			t.Fatal(err)
		}
		refused(t, in)
	}
}

func TestTrustedFileIsReadAsItIs(t *testing.T) {
	in := world(t)
	put(t, in.User(), base)
	put(t, in.projectFile(), "isolation.network='full'\nisolation.rw=['/etc/x']\nisolation.ro=['/data/secret/pub']\nmode='plan'\n")
	tr, err := Examine(in)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{`line 1: isolation.network from "allowlist" to "full"`, `line 2: isolation.rw by "/etc/x"`,
		`line 3: isolation.ro by "/data/secret/pub", which is not writable before, so this could only open it`}, tr.Widens)
	trust(t, in)
	in.Flags.Mode = ptr("normal")
	iso := mustLoad(t, in).Isolation(in.Workspace)
	if iso.Network != bawn.NetworkFull || accessAt(iso, "/etc/x") != bawn.ReadWrite || accessAt(iso, "/data/secret/pub") != bawn.ReadOnly || accessAt(iso, "/data/secret") != bawn.Hidden {
		t.Errorf("%+v", iso)
	}
	put(t, in.ManagedPath, "pinned = ['isolation.rw']")
	if errs := refused(t, in); !strings.Contains(errs.Error(), "pinned at") {
		t.Errorf("trust passes a pin: %v", errs)
	}
}

// TestTrustIsForTheseBytesHere: one changed byte, another place, a copy.
func TestTrustIsForTheseBytesHere(t *testing.T) {
	in := world(t)
	const wide = "isolation.network='full'\n"
	put(t, in.projectFile(), wide)
	refused(t, in)
	trust(t, in)
	mustLoad(t, in)
	put(t, in.projectFile(), wide+"\n")
	refused(t, in)
	put(t, in.projectFile(), wide)
	mustLoad(t, in)
	other := in
	other.Workspace = filepath.Join(in.Home, "copy")
	put(t, other.projectFile(), wide)
	refused(t, other)
	linked := in
	linked.Workspace = filepath.Join(in.Home, "link")
	if err := os.Symlink(in.Workspace, linked.Workspace); err != nil {
		t.Fatal(err)
	}
	mustLoad(t, linked) // the same place by another name
	if found, err := Forget(in, in.projectFile()); !found || err != nil {
		t.Errorf("Forget = %v, %v", found, err)
	}
	refused(t, in)
	if found, err := Forget(in, in.projectFile()); found || err != nil {
		t.Errorf("Forget again = %v, %v", found, err)
	}
}

// TestProjectProfileNeverWidens: a profile that an untrusted project defined
// narrows also when the user's own flag chooses it.
func TestProjectProfileNeverWidens(t *testing.T) {
	in := world(t)
	put(t, in.User(), "[isolation]\nnetwork='full'\nrw=['/data']\n")
	put(t, in.projectFile(), "[profiles.p]\nnetwork='allowlist'\nresources.memory_mb=4000\nro=['/data/x']\n")
	in.Flags.Profile = ptr("p")
	iso := mustLoad(t, in).Isolation(in.Workspace)
	if iso.Network != bawn.NetworkAllowlist || iso.Resources.MemoryMB != 4000 || accessAt(iso, "/data/x") != bawn.ReadOnly {
		t.Errorf("%+v", iso)
	}
	put(t, in.projectFile(), "isolation.network='none'\n[profiles.p]\nnetwork='allowlist'\n")
	if errs := refused(t, in); !strings.Contains(errs.Error(), "would widen isolation.network from \"none\" to \"allowlist\"") {
		t.Error(errs)
	}
}

// TestNobodyTakesANameOver: "--profile work" is the user's work, whatever the
// project says.
func TestNobodyTakesANameOver(t *testing.T) {
	in := world(t)
	put(t, in.User(), "[profiles.work]\nnetwork='none'\n")
	put(t, in.projectFile(), "[profiles.work]\ndeny=['/x']\n")
	if errs := refused(t, in); !strings.Contains(errs.Error(), `profile "work" is defined at `+in.User()+":1:11 already") {
		t.Error(errs)
	}
}

// TestFlagsCloseWhatTheProjectNamed: a project's read-only path below one that
// a flag denies must not open it again.
func TestFlagsCloseWhatTheProjectNamed(t *testing.T) {
	in := world(t)
	put(t, in.projectFile(), "isolation.ro=['a/b']\n")
	in.Flags.Deny = []string{"a"}
	if got := accessAt(mustLoad(t, in).Isolation(in.Workspace), in.Workspace+"/a/b"); got != bawn.Hidden {
		t.Errorf("a/b is %v", got)
	}
	in.Flags.Deny = []string{"c"} // control
	if got := accessAt(mustLoad(t, in).Isolation(in.Workspace), in.Workspace+"/a/b"); got != bawn.ReadOnly {
		t.Errorf("a/b is %v", got)
	}
}

// TestProjectPathsDoNotFollowLinks: mounting a link read-only would show what
// it points to.
func TestProjectPathsDoNotFollowLinks(t *testing.T) {
	in := world(t)
	put(t, filepath.Join(in.Home, ".ssh/id"), "key")
	put(t, filepath.Join(in.Workspace, "dir/file"), "")
	if err := os.Symlink(filepath.Join(in.Home, ".ssh"), filepath.Join(in.Workspace, "link")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"link", "link/id", "dir/../link"} {
		put(t, in.projectFile(), "isolation.ro=['"+p+"']\n")
		if errs := refused(t, in); !strings.Contains(errs.Error(), "passes through the symbolic link") {
			t.Errorf("%s: %v", p, errs)
		}
	}
	put(t, in.projectFile(), "isolation.ro=['dir/file', 'dir/none/yet']\n")
	mustLoad(t, in)
}

// TestProjectFileIsNotReachedByLinks: who writes in the workspace must not
// choose which file is read.
func TestProjectFileIsNotReachedByLinks(t *testing.T) {
	for what, make := range map[string]func(in Inputs) error{
		"file": func(in Inputs) error {
			put(t, in.Workspace+"/other.toml", "mode='plan'")
			if err := os.MkdirAll(in.Workspace+"/.bawn", 0o700); err != nil {
				return err
			}
			return os.Symlink("../other.toml", in.projectFile())
		},
		"directory": func(in Inputs) error {
			put(t, in.Workspace+"/other/config.toml", "mode='plan'")
			return os.Symlink("other", in.Workspace+"/.bawn")
		},
		"outside": func(in Inputs) error {
			put(t, in.Home+"/other/config.toml", "mode='plan'")
			return os.Symlink(in.Home+"/other", in.Workspace+"/.bawn")
		},
		"no directory": func(in Inputs) error { return os.WriteFile(in.Workspace+"/.bawn", nil, 0o600) },
	} {
		in := world(t)
		if err := make(in); err != nil {
			t.Fatal(err)
		}
		if errs := refused(t, in); !strings.Contains(errs.Error(), "no symbolic link leads to it") {
			t.Errorf("%s: %v", what, errs)
		}
	}
}

// TestFileSwappedWhileOpened: what was looked at is what must be read.
func TestFileSwappedWhileOpened(t *testing.T) {
	in := world(t)
	put(t, in.projectFile(), "mode='plan'")
	root, err := os.OpenRoot(in.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	looked, err := root.Lstat(ProjectFile)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := readSame(root, looked); err != nil || string(data) != "mode='plan'" { // control
		t.Errorf("%q, %v", data, err)
	}
	put(t, in.Workspace+"/other", "mode='permissive'")
	if err := os.Rename(in.Workspace+"/other", in.projectFile()); err != nil {
		t.Fatal(err)
	}
	if data, err := readSame(root, looked); err == nil {
		t.Errorf("read %q", data)
	}
	if err := os.Remove(in.projectFile()); err != nil {
		t.Fatal(err)
	}
	if data, err := readSame(root, looked); err == nil {
		t.Errorf("read %q", data)
	}
}

// TestStatedAgain: an entry that an earlier layer has too, but that lost there
// against a stricter one.
func TestStatedAgain(t *testing.T) {
	const user = "isolation.rw=['/d','/e']\nisolation.ro=['/d']\nisolation.deny=['/e']\n"
	for _, c := range []struct {
		managed, user, project string
		flags                  Flags
		path                   string
		want                   bawn.Access
		refused                string
	}{
		{"", user, "isolation.rw=['/d']", Flags{}, "", 0, "would widen isolation.rw"},
		{"", user, "isolation.rw=['/e']", Flags{}, "", 0, "would widen isolation.rw"},
		{"", "isolation.ro=['/d']", "isolation.ro=['/d']", Flags{RW: []string{"/d"}}, "/d", bawn.ReadWrite, ""},
		{"isolation.deny=['/d']", "isolation.rw=['/d']", "isolation.deny=['/d']", Flags{}, "/d", bawn.Hidden, ""}, // closed again
		{"", user, "", Flags{RW: []string{"/d", "/e"}}, "/d", bawn.ReadWrite, ""},
		{user + "pinned=['isolation.rw']", "", "", Flags{RW: []string{"/d"}}, "", 0, "is pinned at"},
	} {
		in := world(t)
		put(t, in.ManagedPath, c.managed)
		put(t, in.User(), c.user)
		put(t, in.projectFile(), c.project)
		in.Flags = c.flags
		if c.refused != "" {
			if errs := refused(t, in); !strings.Contains(errs.Error(), c.refused) {
				t.Errorf("%q: %v", c.project, errs)
			}
			continue
		}
		if got := accessAt(mustLoad(t, in).Isolation(in.Workspace), c.path); got != c.want {
			t.Errorf("%q %q: %v; want %v", c.managed, c.project, got, c.want)
		}
	}
}

// Plan stands below strict for what it changes, but reads without asking:
// a project may not exchange the one for the other.
func TestProjectMayNotMakeStrictLookSilently(t *testing.T) {
	for user, want := range map[string]string{"mode='strict'": "would widen mode", "mode='normal'": ""} { // the second is the control
		in := world(t)
		put(t, in.User(), user)
		put(t, in.projectFile(), "mode='plan'")
		_, err := Load(in)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; want %q", user, err, want)
		}
	}
}
