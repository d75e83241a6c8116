//go:build linux

package sandboxtest_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/engine"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// A contender is a provider as this suite meets it: as "bawn run --provider".
type contender struct {
	name    string
	needs   []string // features of the machine
	rooted  bool     // only root can have it here
	prepare func(t testing.TB, f *sandboxtest.Fixtures)
	blind   bool // the guest sees nothing of the host that it is not shown
	open    bool // nothing is isolated, and flags that ask for it are refused
	options sandboxtest.Options
	ofRoot  map[string]string // more of options.InPart, for root's sandboxes
}

var sharedKernel = []string{"userns", "landlock", "seccomp", "notify"}

// contenders are all of them.
var contenders = []contender{
	{name: "native", needs: sharedKernel, options: ofSharedKernel},
	{name: "bwrap", needs: append(slices.Clip(sharedKernel), "bwrap"), options: ofSharedKernel},
	{name: "docker", needs: append(slices.Clip(sharedKernel), "docker"), prepare: inContainer, blind: true,
		options: sandboxtest.Options{HidesHost: true, OutsideDecides: true, OwnGit: true}, ofRoot: map[string]string{"E146": rootOfEngine, "A646": rootOfEngine}},
	{name: "gvisor", needs: []string{"root", "runsc"}, rooted: true, prepare: inSentry, options: ofSentry},
}

// ofSharedKernel is what native and bwrap promise.
var ofSharedKernel = sandboxtest.Options{OwnGit: true, MadeGit: true}

// ofSentry is what differs in gVisor. Families are without those of protected
// names: fs.protect is enforced in part, and what is enforced is attacked in
// package gvisor.
var ofSentry = sandboxtest.Options{
	OwnGit:   true,
	Families: []string{"fs-write", "fs-read", "fs-narrow", "credentials", "proc", "ipc", "kernel", "net", "limits"},
	Also:     map[string][]string{"E074": {"ENOTSUP", "EOPNOTSUPP"}, "A667": {"ENOTSUP", "EOPNOTSUPP"}, "A108": {"ENOTSUP", "EOPNOTSUPP"}, "A124": {"EINVAL"}},
	Otherwise: map[string]string{
		"A234": "the devices are of gVisor's own kernel", "A653": "the scheduler is gVisor's own",
		"E099": "gVisor's accept does not time out: nothing arrives, but nobody says so",
	},
}

// host is the provider that isolates nothing, which is only chosen by a human's
// own configuration.
var host = contender{name: "host", open: true, prepare: func(t testing.TB, f *sandboxtest.Fixtures) {
	f.Configure(t, "[isolation]\nprovider = \"host\"\n")
}}

const rootOfEngine = "a container of root's runs as user 0 without a capability: its files in the workspace are to be root's, and the engine has no user namespace"

// optionsFor are what is said of the provider where it serves that user.
func (c contender) optionsFor(f *sandboxtest.Fixtures) sandboxtest.Options {
	o := c.options
	if f.UID == 0 {
		o.InPart = maps.Clone(o.InPart)
		if o.InPart == nil {
			o.InPart = map[string]string{}
		}
		maps.Copy(o.InPart, c.ofRoot)
	}
	return o
}

func contenderNamed(t testing.TB, name string) contender {
	t.Helper()
	i := slices.IndexFunc(contenders, func(c contender) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no contender is called %q", name)
	}
	return contenders[i]
}

// each runs f with fixtures of the user who runs the tests and, where that is root,
// of an ordinary user as well.
func (c contender) each(t *testing.T, f func(t *testing.T, fx *sandboxtest.Fixtures)) {
	t.Helper()
	testenv.Need(t, c.needs...)
	prepared := func(t *testing.T, fx *sandboxtest.Fixtures) {
		if c.prepare != nil {
			c.prepare(t, fx)
		}
		f(t, fx)
	}
	if c.rooted {
		t.Run("root", func(t *testing.T) { prepared(t, sandboxtest.New(t, victim, sandboxtest.Self())) })
		return
	}
	asEach(t, prepared)
}

// fixtures are those of the user who runs the tests alone.
func (c contender) fixtures(t *testing.T) *sandboxtest.Fixtures {
	t.Helper()
	testenv.Need(t, c.needs...)
	f := sandboxtest.New(t, victim, sandboxtest.Self())
	if c.prepare != nil {
		c.prepare(t, f)
	}
	return f
}

// words are "bawn run" with flags and what hides the secrets.
func (c contender) words(t testing.TB, f *sandboxtest.Fixtures, flags ...string) []string {
	t.Helper()
	words := []string{f.Install(t, bawn), "run"}
	if c.name != "native" && !c.open { // which is what nobody has to name
		words = append(words, "--provider", c.name)
	}
	if c.blind {
		words = append(words, "--ro", filepath.Dir(f.Victim), "--ro", f.Out)
	}
	return append(words, flags...)
}

// run runs a command in a session with extra flags.
func (c contender) run(flags ...string) sandboxtest.Runner {
	return func(t testing.TB, f *sandboxtest.Fixtures, argv ...string) sandboxtest.Result {
		t.Helper()
		if !c.open {
			flags = append([]string{"--net", "none", "--deny", filepath.Dir(f.Secret), "--deny", f.Denied}, flags...)
		}
		words := c.words(t, f, flags...)
		return f.Exec(t, append(append(words, "--"), argv...)...)
	}
}

// relayProgram builds the program that "bawn run" becomes for a provider that it
// has not linked, once for all tests.
var relayProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(victim), "bawnd")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, testhome.Programs(filepath.Dir(path), "cmd/bawnd")
})

// relay is the path of that program.
func relay(t testing.TB) string {
	t.Helper()
	path, err := relayProgram()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// inContainer has sessions made by the tests' own engine, from its image.
func inContainer(t testing.TB, f *sandboxtest.Fixtures) {
	t.Helper()
	e := engine.Shared(t)
	e.Allow(t, f.UID)
	f.Install(t, bawn)
	f.Install(t, relay(t))
	f.Environ = append(f.Environ, "DOCKER_HOST="+e.Host())
	f.Configure(t, fmt.Sprintf("[isolation.docker_options]\nimage = %q\n", e.Image(t, engine.Busybox)))
	f.Inside = func(w probe.World) probe.World {
		w.Workspace = "/workspace"
		return w
	}
}

// inSentry has sessions made by this machine's runsc.
func inSentry(t testing.TB, f *sandboxtest.Fixtures) {
	t.Helper()
	path, err := testenv.Runsc()
	if err != nil {
		t.Fatal(err)
	}
	f.Configure(t, fmt.Sprintf("[isolation]\nrunsc = %q\ngvisor_accept_unprotected = true\n", path))
}
