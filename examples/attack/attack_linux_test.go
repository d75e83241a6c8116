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
	in := []sandbox{{name: "without Bawn"}, withBawn(filepath.Join(dir, "bawn"))}
	rows, err := tryAll(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if !r.worked[0] || r.worked[1] {
			t.Errorf("%s: without Bawn and with it %v; want true and false", r.what, r.worked)
		}
	}
	var b strings.Builder
	if good := table(&b, in, rows, false); good == t.Failed() || !strings.Contains(b.String(), "of 20 stopped") {
		t.Errorf("the table:\n%s", b.String())
	}
	t.Log(b.String())
}

// TestTable: an attack that worked in Bawn, or that failed without it, is no success.
// What another sandbox does is no matter.
func TestTable(t *testing.T) {
	in := []sandbox{{name: "without Bawn"}, {name: "with Bawn"}, {name: "other"}}
	works := func(list ...bool) row { return row{what: "x", worked: list} }
	for name, rows := range map[string][]row{
		"worked":          {works(true, true, false)},
		"proves nothing":  {works(false, false, false)},
		"one is not good": {works(true, false, false), works(true, true, false)},
	} {
		if table(&strings.Builder{}, in, rows, true) {
			t.Errorf("%s: it counts as good", name)
		}
	}
	var b strings.Builder
	if !table(&b, in, []row{works(true, false, true)}, true) || !strings.Contains(b.String(), "1 of 1 stopped, other: 0") {
		t.Errorf("an attack that was stopped does not count:\n%s", b.String())
	}
}
