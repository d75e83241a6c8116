package launch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestHookSecret: the calls of one session of an agent's have one secret, which
// nobody can tell who has not the user's key, and no other session has it.
func TestHookSecret(t *testing.T) {
	state := t.TempDir()
	name := filepath.Join(state, hookKeyName)
	of := func(dir, session string) string {
		t.Helper()
		s, err := HookSecret(dir, session)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := of(state, "s")
	if len(first) < MinSecret || first != of(state, "s") {
		t.Errorf("%q, then %q", first, of(state, "s"))
	}
	for what, other := range map[string]string{
		"session": of(state, "t"), "user": of(t.TempDir(), "s"),
	} {
		if other == first {
			t.Errorf("another %s has the same", what)
		}
	}
	key, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	for what, spoil := range map[string]func() error{
		"others can read": func() error { return os.Chmod(name, 0o640) },
		"is empty":        func() error { return os.Truncate(name, 0) },
		"is a directory":  func() error { return errors.Join(os.Remove(name), os.Mkdir(name, 0o700)) },
		"is a link":       func() error { return errors.Join(os.Rename(name, name+".x"), os.Symlink(name+".x", name)) },
	} {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, key, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if s, err := HookSecret(state, "s"); err == nil {
			t.Errorf("a key that %s is used: %q", what, s)
		}
	}
}
