package protect

import (
	"strings"
	"testing"
)

// TestData reads every file, and holds it to what its readers count on.
func TestData(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All() {
		id := e.Class.String() + e.System + Fold(e.Pattern)
		if seen[id] {
			t.Errorf("%q is there twice", e.Pattern)
		}
		seen[id] = true
		if e.Home() && e.Class != Guard && strings.Contains(e.Path(), "*") {
			t.Errorf("%q: the sandbox looks for a place below the home directory by its name", e.Pattern)
		}
	}
	for _, name := range Keys() {
		parts := strings.Split(strings.ReplaceAll(Fold(name), "*", "x"), "/")
		s := NewSet(nil, []string{name})
		for i := range parts {
			if m, by := s.At(parts[i:], true); m == Inside || m == Pointer && i > 0 {
				t.Errorf("%q is protected as %q as well, so that opening it does nothing", name, by)
			}
		}
	}
	for _, m := range Left() {
		if _, err := Key(m.Name); err == nil || m.Why == "" {
			t.Errorf("%q is left out, for %q, and is in the table", m.Name, m.Why)
		}
	}
}

// TestParse refuses what can't be right.
func TestParse(t *testing.T) {
	if _, err := parse("f", "host | all | a | b | c\n"); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"host | all | a":                  "want CLASS",
		"host | all | a | b | c | d | e":  "want CLASS",
		"hosts | all | a | b | c":         "unknown class",
		"host | beos | a | b | c":         "unknown system",
		"host | all | /a | b | c":         "want a name",
		"host | all | a/../b | b | c":     "want a name",
		"host | all | ../a | b | c":       "want a name",
		"host | all | *a* | b | c":        "at most",
		"credential | all | ~/.a | b | c": "no name to open",
	} {
		if _, err := parse("f", "# x\n"+text); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "f:2: ") {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

func TestSet(t *testing.T) {
	s := NewSet([]string{"deploy/keys", ".jj/repo/store"}, []string{".VSCODE/", "mise.*.toml"})
	for p, want := range map[string]Match{
		".envrc": Inside, ".envrc/x": Inside, ".envrcs": None, ".idea/a/b": Inside, ".config": Way, ".config/fish/x": Inside, ".config/other": None, ".config/mise/x": Inside, ".config/mise.toml": None,
		".hg": Pointer, ".hg/hgrc": Inside, ".hg/store": None, ".jj": Pointer, ".jj/repo": Pointer, ".jj/repo/config.toml": Inside, ".jj/repo/store/x": Inside, ".jj/repo/op_store": None,
		"a.code-workspace": Inside, "a~1.cod": Inside, "a.code": None, "deploy": Way, "deploy/keys": Inside, ".git": Way, ".git/lazygit.yml": Inside, ".ssh/x": Inside, ".netrc": None,
		".vscode/tasks.json": None, "mise.local.toml": None, ".mise.local.toml": Inside, "mise.toml": Inside,
	} {
		if got, name := s.At(strings.Split(Fold(p), "/"), true); got != want {
			t.Errorf("%q: %d by %q; want %d", p, got, name, want)
		}
	}
	for short, want := range map[string]string{"envrc~1": ".envrc", "envrc~x": "envrc~x", "mcp~1.jso": ".mcp.json", "a": "a"} {
		if got := s.Long(short); got != want {
			t.Errorf("%q is short for %q; want %q", short, got, want)
		}
	}
}

// Names of class login count only where a home directory may be.
func TestLogins(t *testing.T) {
	s := NewSet([]string{"extra", ".profile"}, nil)
	for p, want := range map[string]Match{
		".bashrc": None, ".BASHRC": None, ".zshrc": None, ".local": None, ".local/bin/x": None, ".config": Way, ".config/fish/x": None, ".config/mise/x": Inside,
		".envrc": Inside, ".vscode/x": Inside, ".gitconfig": Inside, ".ssh/config": Inside, "extra": Inside, ".profile": Inside, ".vimrc": Inside,
	} {
		parts := strings.Split(Fold(p), "/")
		if got, name := s.At(parts, false); got != want {
			t.Errorf("%q: %d by %q; want %d", p, got, name, want)
		}
		if got, _ := s.At(parts, true); got == None {
			t.Errorf("%q does not count in a home directory", p)
		}
	}
}

func TestKey(t *testing.T) {
	for name, want := range map[string]string{".VSCode/": ".vscode", "rust-toolchain.toml": "rust-toolchain.toml", "*.code-workspace": "*.code-workspace"} {
		if got, err := Key(name); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"", ".git", ".git/hooks", ".bawn", ".netrc", "~/.npmrc", "main.go", ".vscode/tasks.json"} {
		if got, err := Key(name); err == nil {
			t.Errorf("%q opens %q", name, got)
		}
	}
}

// TestHidden: what a session sees is said by one entry, so that opening that opens it.
func TestHidden(t *testing.T) {
	list := Hidden("linux")
	for _, a := range list {
		for _, b := range list {
			if a != b && strings.HasPrefix(b.Pattern, strings.TrimSuffix(a.Pattern, "/")+"/") && a.Class == Agent {
				t.Errorf("%q lies in %q", b.Pattern, a.Pattern)
			}
		}
	}
}

func BenchmarkNewSet(b *testing.B) {
	for b.Loop() {
		NewSet(nil, nil)
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		_, _ = parse("project.txt", projectText)
		_, _ = parse("credentials.txt", credentialsText)
		_, _ = parse("agents.txt", agentsText)
	}
}
