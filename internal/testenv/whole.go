package testenv

import "testing"

// Whole skips t under "go test -short", which "make test" gives. It is for what
// takes long: the rest of a matrix (providers, agents, clients) of which a
// representative is tried elsewhere. "make nightly" tries all, and "make test" does
// where its package changed (test/whole.txt).
func Whole(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("not the representative: runs without -short, in make nightly")
	}
}

// Some returns n, or few under "go test -short": how often something is repeated.
func Some(n, few int) int {
	if testing.Short() {
		return few
	}
	return n
}
