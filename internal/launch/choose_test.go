package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/sandbox"
	hostprovider "github.com/bawn-dev/bawn/internal/sandbox/host"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A fake is a provider that enforces everything but what it is said not to.
type fake struct {
	sandbox.Provider
	name         string
	partly, none []string
	able         sandbox.Abilities
	asked        *[]string // whose capabilities were asked for, in order
}

func (f fake) Name() string                 { return f.name }
func (f fake) Abilities() sandbox.Abilities { return f.able }
func (f fake) Capabilities() (list []bawn.Capability) {
	*f.asked = append(*f.asked, f.name)
	for _, a := range sandbox.Attributes() {
		c := bawn.Capability{Attribute: a, Strength: bawn.Enforced, How: "somehow"}
		switch {
		case slices.Contains(f.partly, a):
			c.Strength, c.Why = bawn.Partly, "some of it"
		case slices.Contains(f.none, a) || slices.Contains(f.none, "all"):
			c = bawn.Capability{Attribute: a, Why: f.name + " has no " + a, Remedy: "mend " + f.name}
		}
		list = append(list, c)
	}
	return list
}

// machine is where providers can what the fakes can, and those that are not
// among them nothing.
func machine(t *testing.T, fakes ...fake) (e *Env, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	dir := t.TempDir()
	e = &Env{World: verb.World{Environ: []string{"HOME=" + dir}, Dir: dir}, Providers: map[string]Maker{}}
	for _, name := range ProviderNames() {
		f := fake{name: name, none: []string{"all"}, able: sandbox.Abilities{Unsandboxed: name == hostprovider.Name}}
		if i := slices.IndexFunc(fakes, func(f fake) bool { return f.name == name }); i >= 0 {
			f = fakes[i]
		}
		f.asked = asked
		e.Providers[name] = func(Setting) sandbox.Provider { return f }
	}
	return e, asked
}

// configured reads a user's configuration.
func configured(t *testing.T, text string, flags config.Flags) *config.Config {
	t.Helper()
	home := t.TempDir()
	path := filepath.Join(home, "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Inputs{Workspace: t.TempDir(), Home: home, ManagedPath: filepath.Join(home, "none"), UserPath: path, Flags: flags, Machine: config.Machine{MemoryMB: 4096}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	permit = "[isolation]\nallow_fallback_to_host = true\n"
	pinned = "[isolation.docker_options]\nimage = \"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"\n"
)

// TestChoose: the strongest that enforces all, nobody
// after it is asked, less only where that is permitted, the host at last.
func TestChoose(t *testing.T) {
	all := func(name string) fake { return fake{name: name, able: sandbox.Abilities{Split: true}} }
	weak := fake{name: "gvisor", partly: []string{sandbox.FSProtect}}
	for _, c := range []struct {
		name   string
		fakes  []fake
		text   string
		want   string // the provider, or a part of the error
		asked  string
		fallen bool
	}{
		{"the first", []fake{all("native"), all("bwrap"), all("docker")}, "", "native", "native", false},
		{"limits in part", []fake{{name: "native", partly: []string{sandbox.LimitMemory}}, all("bwrap")}, "", "native", "native", false},
		{"the second", []fake{{name: "native", none: []string{sandbox.NetAllow}}, all("bwrap"), all("gvisor")}, "", "bwrap", "native native bwrap", false},
		{"in full before in part", []fake{weak, all("docker")}, pinned, "docker", "native native bwrap bwrap gvisor docker", false},
		{"no image", []fake{all("docker")}, "", `provider "native" can't enforce`, "", false},
		{"in part is not taken", []fake{weak}, "", "native has no fs.protect", "", false},
		{"in part where permitted", []fake{weak, {name: "landlock", partly: []string{sandbox.FSWrite}}}, permit, "gvisor", "", false},
		{"the host where permitted", nil, permit, "host", "", true},
		{"not the host", nil, "", `provider "native" can't enforce`, "", false},
		{"named", []fake{all("native"), all("gvisor")}, "[isolation]\nprovider = \"gvisor\"\n", "gvisor", "gvisor", false},
		{"named, in part", []fake{all("native"), weak}, "[isolation]\nprovider = \"gvisor\"\n", "gvisor", "gvisor", false},
		{"named, and can't", []fake{all("native")}, "[isolation]\nprovider = \"gvisor\"\n", "(could: native)", "", false},
		{"named, can't, others can", []fake{all("native")}, permit + "provider = \"gvisor\"\n", "(could: native)", "", false},
		{"named, can't, nobody can", nil, permit + "provider = \"gvisor\"\n", "host", "", true},
		{"a limit costs no wall", []fake{{name: "native", none: []string{sandbox.LimitPIDs}}}, permit, "native has no limits.pids", "", false},
		{"a limit costs no wall of one by name", []fake{{name: "native", none: []string{sandbox.LimitPIDs}}}, permit + "provider = \"native\"\n", "native has no limits.pids", "", false},
		{"a limit costs no wall of another", []fake{{name: "bwrap", none: []string{sandbox.LimitPIDs}}}, permit, "can't enforce", "", false},
		{"the host by name", []fake{all("native")}, "[isolation]\nprovider = \"host\"\n", "host", "", false},
		{"split", []fake{{name: "native"}, all("bwrap")}, "[isolation]\nsplit = true\n", "bwrap", "native bwrap", false},
		{"no split", []fake{{name: "native"}}, "[isolation]\nsplit = true\n", `provider "native" can't keep the zones`, "", false},
		{"no split by name", []fake{all("native"), {name: "gvisor"}}, "[isolation]\nsplit = true\nprovider = \"gvisor\"\n", `provider "gvisor" can't keep the zones`, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, asked := machine(t, c.fakes...)
			cfg := configured(t, c.text, config.Flags{})
			got, err := choose(&session.Spec{}, e, cfg, cfg.Isolation(t.TempDir()))
			name := fmt.Sprint(err)
			if err == nil {
				name = got.Name()
			}
			if name != c.want && (err == nil || !strings.Contains(name, c.want)) {
				t.Errorf("got %s; want %s", name, c.want)
			}
			if s := strings.Join(*asked, " "); c.asked != "" && s != c.asked {
				t.Errorf("asked %q; want %q", s, c.asked)
			}
			if (got.Fallback != nil) != c.fallen {
				t.Errorf("fallback: %v; want it %v", got.Fallback, c.fallen)
			}
		})
	}
}

// TestRefusalNamesAll: every attribute that is missing, and who could.
func TestRefusalNamesAll(t *testing.T) {
	e, _ := machine(t, fake{name: "native", none: []string{sandbox.FSRead, sandbox.NetAllow, sandbox.LimitCPU}}, fake{name: "bwrap", none: []string{sandbox.FSRead}}, fake{name: "gvisor", none: []string{sandbox.NetAllow}})
	cfg := configured(t, "", config.Flags{})
	_, err := choose(&session.Spec{}, e, cfg, cfg.Isolation(t.TempDir()))
	var mismatch *sandbox.MismatchError
	if !errors.As(err, &mismatch) {
		t.Fatalf("%v; want a mismatch", err)
	}
	want := `provider "native" can't enforce what this session asks for:
  fs.read: native has no fs.read; mend native (could: gvisor)
  net.allowlist: native has no net.allowlist; mend native (could: bwrap)`
	if mismatch.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", mismatch, want)
	}
}

// TestCandidates is what --plan says of the choice.
func TestCandidates(t *testing.T) {
	e, _ := machine(t, fake{name: "native", none: []string{sandbox.NetAllow}}, fake{name: "bwrap", partly: []string{sandbox.IPC}}, fake{name: "gvisor"})
	cfg := configured(t, "", config.Flags{})
	got, err := choose(&session.Spec{}, e, cfg, cfg.Isolation(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, n := range got.Candidates {
		lines = append(lines, fmt.Sprintf("%s %v %s [%s] [%s]", n.Provider, n.Chosen, n.Why, attributes(n.Unmet), attributes(n.InPart)))
	}
	want := []string{
		"native false " + whyUnmet + " [net.allowlist] []",
		"bwrap false " + whyInPart + " [] [ipc]",
		"gvisor true " + whyAll + " [] []",
		"docker false " + whyNotTried + " [] []", "landlock false " + whyNotTried + " [] []",
		"seatbelt false " + whyNotTried + " [] []", "host false " + whyNotTried + " [] []",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// TestChildGetsNoHost is that a guest can't choose the host for a session of its
// own, nor fall back on it, whatever the user's configuration permits to others.
func TestChildGetsNoHost(t *testing.T) {
	parent := bawn.Session{ID: "parent", Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate, Provider: "native"}
	ask := func(t *testing.T, text string, flags config.Flags, fakes ...fake) (bawn.Session, choice, error) {
		t.Helper()
		e, _ := machine(t, fakes...)
		above := &session.Parent{Session: parent, Depth: 1}
		cfg := configured(t, text, flags)
		s := bawn.Session{ID: "child", Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate, Isolation: bawn.Isolation{Workspace: "/w"}}
		above.Session.Isolation = s.Isolation
		f := &Launch{Spec: session.Spec{Quiet: true, Parent: above}}
		if flags.Provider != nil {
			f.Given = []string{"provider"}
		}
		c, err := provide(f, e, cfg, &s)
		return s, c, err
	}
	name := "host"
	for _, text := range []string{"[isolation]\nprovider = \"host\"\n", permit + "provider = \"host\"\n"} {
		for _, flags := range []config.Flags{{}, {Provider: &name}} {
			s, c, err := ask(t, text, flags, fake{name: "native"})
			if err != nil || c.Name() != "native" || s.Provider != "native" || c.Fallback != nil {
				t.Errorf("%q: %v, session on %q; want the parent's provider", text, err, s.Provider)
			}
		}
	}
	// its own limits can't be enforced: the child does not run, nor on the host
	if _, c, err := ask(t, permit, config.Flags{}, fake{name: "native", none: []string{sandbox.NetNone}}); err == nil {
		t.Errorf("a child that nobody can hold runs on %q", c.Name())
	}
	// the control: the human's own session gets the host in the same place
	e, _ := machine(t, fake{name: "native", none: []string{sandbox.NetNone}})
	cfg := configured(t, permit, config.Flags{})
	if c, err := choose(&session.Spec{}, e, cfg, bawn.Isolation{Workspace: "/w"}); err != nil || c.Name() != "host" {
		t.Errorf("%v; want the host", err)
	}
}
