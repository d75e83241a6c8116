//go:build linux

package sandboxtest_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// BawnVariable names the environment variable that holds the path of a bawn
// built before, for machines without a compiler.
const BawnVariable = "BAWN_TEST_BAWN"

var update = flag.Bool("update", false, "write the golden files anew")

// The programs under test, built once.
var bawn, victim string

func TestMain(m *testing.M) {
	flag.Parse()
	// What is caught here has its default in what is started: whoever started
	// the tests may ignore it (nohup).
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	os.Exit(withPrograms(m))
}

// withPrograms builds what the environment does not name, and removes it.
func withPrograms(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bawn-programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	for _, p := range []struct {
		path          *string
		variable, pkg string
	}{{&bawn, BawnVariable, "github.com/bawn-dev/bawn/cmd/bawn"}, {&victim, sandboxtest.VictimVariable, "github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/victim"}} {
		if *p.path = os.Getenv(p.variable); *p.path != "" {
			continue
		}
		*p.path = filepath.Join(dir, filepath.Base(p.pkg))
		build := exec.Command("go", "build", "-trimpath", "-o", *p.path, p.pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", p.pkg, err, out)
			return 1
		}
	}
	return m.Run()
}

// asEach runs f with fixtures of whoever runs the tests and, where that is
// root, of an ordinary user as well.
func asEach(t *testing.T, f func(t *testing.T, fx *sandboxtest.Fixtures)) {
	if os.Geteuid() != 0 {
		t.Run("user", func(t *testing.T) { f(t, sandboxtest.New(t, victim, sandboxtest.Self())) })
		return
	}
	t.Run("root", func(t *testing.T) { f(t, sandboxtest.New(t, victim, sandboxtest.Self())) })
	t.Run("user", func(t *testing.T) {
		testenv.Need(t, "root")
		f(t, sandboxtest.New(t, victim, sandboxtest.OrdinaryUser))
	})
}

// native runs a command in "bawn run" with extra flags.
func native(flags ...string) sandboxtest.Runner {
	return func(t testing.TB, f *sandboxtest.Fixtures, argv ...string) sandboxtest.Result {
		t.Helper()
		words := []string{f.Install(t, bawn), "run", "--deny", filepath.Dir(f.Secret), "--deny", f.Denied}
		return f.Exec(t, append(append(append(words, flags...), "--"), argv...)...)
	}
}

// TestNative runs every check in a session with the default profile.
func TestNative(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	asEach(t, func(t *testing.T, f *sandboxtest.Fixtures) {
		sandboxtest.Run(t, native(yard(f)...), f, sandboxtest.Options{})
	})
}

// yard makes f.Yard writable but for what is narrower in it.
func yard(f *sandboxtest.Fixtures) []string {
	flags := []string{"--rw", f.Yard}
	for _, name := range probe.YardKept {
		flags = append(flags, "--ro", filepath.Join(f.Yard, name))
	}
	for _, name := range probe.YardClosed {
		flags = append(flags, "--deny", filepath.Join(f.Yard, name))
	}
	return flags
}

// TestNoSandboxFails shows that the suite tells a sandbox from none: nearly
// every check must fail, and those that don't must have said why.
func TestNoSandboxFails(t *testing.T) {
	f := sandboxtest.New(t, victim, sandboxtest.Self())
	failed := map[string]bool{}
	for _, failure := range sandboxtest.Failures(t, sandboxtest.NoSandbox, f, sandboxtest.Options{}) {
		failed[failure.Check.Name] = true
	}
	all := f.List(t)
	for _, i := range all {
		excused := i.NoControl != "" || i.RootOnly && f.UID != 0 || len(i.Unavailable) > 0 || i.Works
		if !failed[i.Name] && !excused {
			t.Errorf("%s (%s) does not fail without a sandbox", i.Name, i.Why)
		}
	}
	t.Logf("%d of %d checks fail without a sandbox", len(failed), len(all))
}
