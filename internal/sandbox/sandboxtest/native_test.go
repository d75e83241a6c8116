//go:build linux

package sandboxtest_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/engine"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// BawnVariable names the environment variable that holds the path of a bawn
// built before, for machines without a compiler.
const BawnVariable = "BAWN_TEST_BAWN"

var update = flag.Bool("update", false, "write the golden files anew")

// The programs under test, built once.
var bawn, victim string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == inside.Argument { // of a sandbox that a test has bwrap make
		os.Exit(inside.Main(os.Args[2:], os.Stdin))
	}
	flag.Parse()
	testenv.DefaultSignals()
	code := withPrograms(m)
	if err := engine.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
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
	}{{&bawn, BawnVariable, "cmd/bawn"}, {&victim, sandboxtest.VictimVariable, "internal/sandbox/sandboxtest/victim"}} {
		if *p.path = os.Getenv(p.variable); *p.path != "" {
			continue
		}
		*p.path = filepath.Join(dir, filepath.Base(p.pkg))
		if err := testhome.Programs(dir, p.pkg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// asEach runs f with fixtures of the user who runs the tests and, where that is
// root, of an ordinary user as well.
func asEach(t *testing.T, f func(t *testing.T, fx *sandboxtest.Fixtures)) {
	if os.Geteuid() != 0 {
		t.Run("user", func(t *testing.T) { f(t, sandboxtest.New(t, victim, sandboxtest.Self())) })
		return
	}
	t.Run("root", func(t *testing.T) { f(t, sandboxtest.New(t, victim, sandboxtest.Self())) })
	t.Run("user", func(t *testing.T) {
		testenv.Whole(t) // the ordinary user's half of "make test" has it
		testenv.Need(t, "root")
		f(t, sandboxtest.New(t, victim, sandboxtest.OrdinaryUser))
	})
}

// TestNative runs every check in a session with the default profile.
func TestNative(t *testing.T) {
	t.Parallel()
	contenderNamed(t, "native").attacked(t)
}

// attacked runs every check in a session with the default profile.
func (c contender) attacked(t *testing.T) {
	c.each(t, func(t *testing.T, f *sandboxtest.Fixtures) {
		sandboxtest.Run(t, c.run(writable(f)...), f, c.optionsFor(f))
	})
}

// writable opens f.Writable except for the narrower places in it.
func writable(f *sandboxtest.Fixtures) []string {
	flags := []string{"--rw", f.Writable}
	for _, name := range probe.WritableKept {
		flags = append(flags, "--ro", filepath.Join(f.Writable, name))
	}
	for _, name := range probe.WritableClosed {
		flags = append(flags, "--deny", filepath.Join(f.Writable, name))
	}
	return flags
}

// TestNoSandboxFails shows that the suite tells a sandbox from none: nearly
// every check must fail, and those that don't must have said why. It also shows
// that checks which share a process don't keep each other from working;
// TestControl has each of them alone.
func TestNoSandboxFails(t *testing.T) {
	testenv.ByRoot(t) // an ordinary user has TestControl
	f := sandboxtest.New(t, victim, sandboxtest.Self())
	failed := map[string]bool{}
	for _, failure := range sandboxtest.Failures(t, sandboxtest.NoSandbox, f, sandboxtest.Options{Once: true}) {
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
