package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// TestAttacks: each of the twenty works without Bawn, which is the control, and none
// with it.
func TestAttacks(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify", "git", "curl")
	testenv.ByUser(t)
	dir, err := os.MkdirTemp("/var/tmp", "bawn-attack-bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := testhome.Programs(dir, "cmd/bawn", "cmd/bawnd", "cmd/bawn-egress"); err != nil {
		t.Fatal(err)
	}
	rows, err := tryAll(filepath.Join(dir, "bawn"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if !r.without || r.with {
			t.Errorf("%s: without Bawn %v, with it %v; want true and false", r.what, r.without, r.with)
		}
	}
	var b strings.Builder
	if good := table(&b, rows, false); good == t.Failed() || !strings.Contains(b.String(), "of 20 stopped") {
		t.Errorf("the table:\n%s", b.String())
	}
	t.Log(b.String())
}

// TestTable: an attack that worked in Bawn, or that failed without it, is no success.
func TestTable(t *testing.T) {
	for name, rows := range map[string][]row{
		"worked":          {{what: "x", without: true, with: true}},
		"proves nothing":  {{what: "x", how: "stopped"}},
		"one is not good": {{what: "x", without: true, how: "stopped"}, {what: "y", without: true, with: true}},
	} {
		if table(&strings.Builder{}, rows, true) {
			t.Errorf("%s: it counts as good", name)
		}
	}
	if !table(&strings.Builder{}, []row{{what: "x", without: true, how: "stopped"}}, true) {
		t.Error("an attack that was stopped does not count")
	}
}
