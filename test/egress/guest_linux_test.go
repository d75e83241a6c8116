package egress_test

import (
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// bawn builds our programs, side by side, and returns where bawn is.
func (d *account) bawn(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(d.lab, "bin")
	buildOnce.Do(func() { check(t, testhome.Programs(dir, "cmd/bawn", "cmd/bawnd", "cmd/bawn-egress")) })
	return filepath.Join(dir, "bawn")
}

// insideArgs is the command line of a guest whose network is open for what
// flags name.
func (d *account) insideArgs(t testing.TB, flags []string, argv ...string) []string {
	words := append([]string{d.bawn(t), "run", "--net", "allowlist"}, flags...)
	return append(append(words, "--"), argv...)
}

// inside runs a line of shell as a guest.
func (d *account) inside(t testing.TB, flags []string, line string) result {
	t.Helper()
	return d.run(t, d.insideArgs(t, flags, d.shell(t, line)...)...)
}
