package testhome

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// empty is a program that does nothing.
const empty = "bench/launch/empty"

// TestBuiltHere: without a directory of the run's, what the tree says is built.
func TestBuiltHere(t *testing.T) {
	testenv.Need(t, "go")
	t.Setenv(BuiltVariable, "")
	dir := filepath.Join(t.TempDir(), "bin")
	if err := Programs(dir, empty); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(dir, "empty")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestBuiltForTheRun: with one, its program is taken, and nothing is built
// that it lacks.
func TestBuiltForTheRun(t *testing.T) {
	built, dir := t.TempDir(), t.TempDir()
	t.Setenv(BuiltVariable, built)
	if err := Programs(dir, empty); err == nil || !strings.Contains(err.Error(), filepath.Join(built, "empty")) {
		t.Errorf("nothing is there: %v", err)
	}
	if err := os.WriteFile(filepath.Join(built, "empty"), []byte("#!/bin/sh\necho of the run\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Programs(dir, empty); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(dir, "empty")).CombinedOutput(); string(out) != "of the run\n" {
		t.Errorf("%v: %s", err, out)
	}
}
