package launch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestProject: names of logins count at any depth where a home directory is, or where the
// home directory's links lead, and what they lead to is protected.
func TestProject(t *testing.T) {
	base := real(t.TempDir())
	home, ws, dotfiles := filepath.Join(base, "home"), filepath.Join(base, "home/p"), filepath.Join(base, "home/dotfiles")
	for _, dir := range []string{ws, filepath.Join(dotfiles, "rc"), filepath.Join(home, ".config/fish"), filepath.Join(dotfiles, "fish/conf")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	none := func(string) string { return "" }
	link := func(to, at string) {
		if err := os.Symlink(to, filepath.Join(home, at)); err != nil {
			t.Fatal(err)
		}
	}
	link("p", "work") // no protected name
	for _, dirs := range [][]string{{ws}, {dotfiles}, {ws, dotfiles}} {
		if is, linked := findHomes(none, home).project(dirs...); !is || linked != nil {
			t.Fatalf("control: %q: %t, %q", dirs, is, linked)
		}
	}
	link("dotfiles/rc/bash", ".bashrc") // where nothing is yet
	link("../../dotfiles/fish/conf/a.fish", ".config/fish/a.fish")
	want := []string{filepath.Join(dotfiles, "fish/conf/a.fish"), filepath.Join(dotfiles, "rc/bash")}
	if is, linked := findHomes(none, home).project(dotfiles); is || !slices.Equal(linked, want) {
		t.Errorf("dotfiles: %t, %q; want %q", is, linked, want)
	}
	if is, _ := findHomes(none, home).project(ws, dotfiles); is {
		t.Error("a repository that has another checkout where dotfiles are is a project")
	}
	if is, linked := findHomes(none, home).project(filepath.Join(dotfiles, "fish")); is || len(linked) != 1 {
		t.Errorf("a part of the dotfiles: %t, %q", is, linked)
	}
	if is, linked := findHomes(none, home).project(ws); !is || linked != nil {
		t.Errorf("another directory: %t, %q", is, linked)
	}
	for _, dir := range []string{home, base, "/home", "/home/somebody", "/", "/root"} {
		if is, _ := findHomes(none, home).project(dir); is {
			t.Errorf("%q, which is or holds a home directory, is a project", dir)
		}
	}
	for name, value := range map[string]string{"ZDOTDIR": filepath.Join(ws, "zsh"), "PATH": "/usr/bin:" + filepath.Join(ws, "x/.local/bin")} {
		if is, _ := findHomes(func(n string) string { return map[string]string{name: value}[n] }, home).project(ws); is {
			t.Errorf("a directory that %s names is a project", name)
		}
	}
	if is, _ := findHomes(none, "").project(ws); is {
		t.Error("without a home directory: a project")
	}
}
