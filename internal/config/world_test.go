package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bawn-dev/bawn"
)

// world returns inputs whose directories are the test's own.
func world(t testing.TB) Inputs {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := Inputs{
		Workspace: filepath.Join(dir, "home/ws"), Home: filepath.Join(dir, "home"),
		ManagedPath: filepath.Join(dir, "etc/bawn/config.toml"),
		Machine:     Machine{MemoryMB: 16384},
	}
	if err := os.MkdirAll(in.Workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	return in
}

func put(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (in Inputs) projectFile() string { return filepath.Join(in.Workspace, ProjectFile) }

func mustLoad(t testing.TB, in Inputs) *Config {
	t.Helper()
	c, err := Load(in)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// refused loads what must fail and returns the errors.
func refused(t testing.TB, in Inputs) Errors {
	t.Helper()
	c, err := Load(in)
	var errs Errors
	if !errors.As(err, &errs) || len(errs) == 0 || c != nil {
		t.Fatalf("Load = %v, %v; want Errors and no configuration", c, err)
	}
	return errs
}

func same(t testing.TB, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// accessAt is how a provider reads the mounts: the longest path counts.
func accessAt(iso bawn.Isolation, path string) bawn.Access {
	access, length := bawn.ReadOnly, -1
	for _, m := range iso.Mounts {
		covers := path == m.Path || m.Path == "/" || strings.HasPrefix(path, m.Path+"/")
		if covers && len(m.Path) > length {
			access, length = m.Access, len(m.Path)
		}
	}
	return access
}

func ptr[T any](v T) *T { return &v }
