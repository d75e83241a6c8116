// Package testenv says what a test may require of the machine it runs on.
// A feature is there when it has been tried and worked, not when a version or
// a file suggests it.
//
// At home a missing feature skips the test. Where BAWN_TEST_REQUIRE lists the
// feature (separated by commas, or "all") its absence is a failure, so that a
// suite can't pass by skipping itself.
package testenv

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// RequireVariable names the environment variable that turns skips into
// failures.
const RequireVariable = "BAWN_TEST_REQUIRE"

// AgentsVariable names the environment variable that holds the directory
// below which coding agents have been installed from npm, one folder each.
const AgentsVariable = "BAWN_TEST_AGENTS"

// A probe tries one feature and returns why it is not there, or nil.
type probe func() error

// Need skips t unless the machine has every one of features, or fails it
// where BAWN_TEST_REQUIRE asks for the missing one. A name that is no feature,
// here or in the variable, fails the test: a typing mistake must not skip it.
// See [Features] for the names. Some belong to matrices; see [Whole].
func Need(t testing.TB, features ...string) {
	t.Helper()
	if slices.ContainsFunc(features, func(f string) bool { return matrix[f] }) {
		Whole(t)
	}
	check(t, known, os.Getenv(RequireVariable), features)
}

// matrix are features of which others are the representatives: the engine is
// Docker's, clients are curl, git, node and Python's own.
var matrix = map[string]bool{"apt": true, "cargo": true, "docker-clients": true, "java": true, "lintian": true, "maven": true, "pnpm": true, "yarn": true, "pip": true, "podman": true, "postgres": true, "runsc": true, "shellcheck": true}

// Features lists the names that Need knows, sorted.
func Features() []string { return slices.Sorted(maps.Keys(known)) }

func check(t testing.TB, probes map[string]probe, require string, features []string) {
	t.Helper()
	required, err := parseRequire(probes, require)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	for _, f := range features {
		try, ok := probes[f]
		if !ok {
			t.Fatalf("testenv: unknown feature %q; want one of %q", f, slices.Sorted(maps.Keys(probes)))
		}
		why := try()
		switch {
		case why == nil:
		case required(f):
			t.Fatalf("testenv: %s lists %q, which is not here: %v", RequireVariable, f, why)
		default:
			t.Skipf("needs %s, which is not here: %v", f, why)
		}
	}
}

// parseRequire returns which features must not be missing.
func parseRequire(probes map[string]probe, require string) (func(string) bool, error) {
	names := strings.FieldsFunc(require, func(r rune) bool { return r == ',' || r == ' ' })
	for _, n := range names {
		if _, ok := probes[n]; !ok && n != "all" {
			return nil, fmt.Errorf("%s lists unknown feature %q; want %q or some of %q",
				RequireVariable, n, "all", slices.Sorted(maps.Keys(probes)))
		}
	}
	all := slices.Contains(names, "all")
	return func(f string) bool { return all || slices.Contains(names, f) }, nil
}

// once makes every probe run at most once in a test binary.
func once(probes map[string]probe) map[string]probe {
	out := make(map[string]probe, len(probes))
	for name, try := range probes {
		out[name] = sync.OnceValue(try)
	}
	return out
}
