package testenv

import (
	"os"
	"testing"
)

// ShortVariable names the environment variable by which "make test" has matrices
// tried by a representative. (Under "go test -short" property tests would try less,
// too.)
const ShortVariable = "BAWN_TEST_SHORT"

// Short reports whether of a matrix only a representative is tried.
func Short() bool { return os.Getenv(ShortVariable) != "" }

// Whole skips t where [ShortVariable] is set. It is for what takes long: the rest of
// a matrix (providers, agents, clients) of which a representative is tried
// elsewhere. "make nightly" tries all, and "make test" does where its package
// changed (test/whole.txt).
func Whole(t testing.TB) {
	t.Helper()
	if Short() {
		t.Skip("not the representative: runs in make nightly")
	}
}

// ByUser skips t for root where [ShortVariable] is set. It is for what comes out the
// same for root and for an ordinary user: of "make test" the second half tries it.
func ByUser(t testing.TB) {
	t.Helper()
	if Short() && os.Geteuid() == 0 {
		t.Skip("the ordinary user's half of make test has it")
	}
}

// ByRoot skips t for an ordinary user where [ShortVariable] is set: of "make test" the
// first half, root's, tries it.
func ByRoot(t testing.TB) {
	t.Helper()
	if Short() && os.Geteuid() != 0 {
		t.Skip("root's half of make test has it")
	}
}

// Some returns n, or few where [ShortVariable] is set: how often something is
// repeated.
func Some(n, few int) int {
	if Short() {
		return few
	}
	return n
}
