package hooksetup

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShell: what the user has in a start-up file is there before and after, whatever it
// ends in, and a file that was not there is gone again.
func TestShell(t *testing.T) {
	for name, before := range map[string][]byte{"none": nil, "empty": {}, "a line": []byte("alias a=b\n"), "no line end": []byte("alias a=b"), "CRLF": []byte("a\r\n")} {
		home := t.TempDir()
		file := filepath.Join(home, ".bashrc")
		if before != nil {
			if err := os.WriteFile(file, before, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := Setup{Bawn: "/opt/a b/bawn", Home: home, Project: home, Root: "/", State: filepath.Join(home, "state"), Getenv: func(n string) string { return map[string]string{"SHELL": "/bin/bash"}[n] }}
		apply := func(undo bool) {
			t.Helper()
			p, err := s.Shell([]string{"claude", "codex"}, undo)
			if err == nil {
				err = s.Apply(p)
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		apply(false)
		first, _ := os.ReadFile(file)
		if !bytes.HasPrefix(first, before) || !strings.Contains(string(first), `command '/opt/a b/bawn' run -- "$@"`) {
			t.Errorf("%s: %s", name, first)
		}
		apply(false)
		if twice, _ := os.ReadFile(file); !bytes.Equal(twice, first) {
			t.Errorf("%s: twice is %s", name, twice)
		}
		apply(true)
		if after, err := os.ReadFile(file); !bytes.Equal(after, before) || (err == nil) != (before != nil) {
			t.Errorf("%s: %q, %v after undo; want %q", name, after, err, before)
		}
	}
}

// TestShellTorn: a file from which the user has taken half of our lines is left.
func TestShellTorn(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".zshrc"), []byte(shellBegin+"function claude {\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Setup{Bawn: "/bawn", Home: home, Root: "/", State: filepath.Join(home, "state"), Getenv: func(n string) string { return map[string]string{"SHELL": "/bin/zsh"}[n] }}
	for _, undo := range []bool{false, true} {
		if _, err := s.Shell([]string{"claude"}, undo); err == nil || !strings.Contains(err.Error(), ".zshrc") {
			t.Errorf("undo %v: %v; want an error that names the file", undo, err)
		}
	}
}
