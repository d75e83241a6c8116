package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// closedHome is a home with what people keep in one.
func closedHome(t *testing.T) Inputs {
	t.Helper()
	in := world(t)
	for _, dir := range []string{
		"Documents", "Pictures/x", ".xchat", ".config/git", ".config/chat", ".config/nvim", ".local/share/notes", ".local/share/uv", ".local/bin", ".local/state",
		".cargo/bin", ".nvm", ".claude", ".ssh", "src/other", "tools/x/bin", "we[i]rd*",
	} {
		if err := os.MkdirAll(filepath.Join(in.Home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{".bashrc", ".gitconfig", "taxes.pdf", ".bash_history"} {
		if err := os.WriteFile(filepath.Join(in.Home, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

// hides reports whether a session would not see a place.
func hides(t *testing.T, in Inputs, name string) bool {
	t.Helper()
	c, err := Load(in)
	if err != nil {
		t.Fatal(err)
	}
	best := bawn.Mount{Path: "/", Access: bawn.ReadOnly}
	for _, m := range c.Isolation(in.Workspace).Mounts {
		if at := filepath.Join(in.Home, name); (m.Path == at || strings.HasPrefix(at, m.Path+"/")) && len(m.Path) >= len(best.Path) {
			best = m
		}
	}
	return best.Access == bawn.Hidden
}

// TestClosedHome: a closed home shows what programs need, and what is opened by its path.
func TestClosedHome(t *testing.T) {
	for _, profile := range []string{"closed", "strict"} {
		in := closedHome(t)
		in.Flags.Profile = &profile
		in.Tools = Tools(in.Home, func(name string) string {
			return map[string]string{"PATH": "/usr/bin:" + in.Home + "/tools/x/bin", "NVM_DIR": in.Home + "/.nvm"}[name]
		})
		for _, name := range []string{"Documents", "Pictures/x", ".xchat", ".config/chat", ".local/share/notes", ".local/state", "taxes.pdf", "src/other", "tools"} {
			if !hides(t, in, name) {
				t.Errorf("%s: a session reads ~/%s", profile, name)
			}
		}
		for _, name := range []string{".bashrc", ".gitconfig", ".config/git", ".config/nvim", ".local/bin", ".local/share/uv", ".cargo/bin", ".nvm", "tools/x/bin"} {
			if hides(t, in, name) {
				t.Errorf("%s: a session does not read ~/%s", profile, name)
			}
		}
		in.Flags.RO = []string{"~/Documents"}
		if hides(t, in, "Documents/letter") || !hides(t, in, "Pictures/x") {
			t.Errorf("%s: --ro ~/Documents opens something else", profile)
		}
	}
	if in := closedHome(t); hides(t, in, "Documents") {
		t.Error("control: without a profile the home is closed")
	}
}

// TestUnlistedIsHidden: a directory of which only some names are shown is hidden as a whole
// where it can't be listed.
func TestUnlistedIsHidden(t *testing.T) {
	in, profile := closedHome(t), "closed"
	in.Flags.Profile = &profile
	dir := filepath.Join(in.Home, ".local/share")
	if hides(t, in, ".local/share/uv") {
		t.Fatal("control: it is hidden")
	}
	if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil { // which root can't list either
		t.Fatal(err)
	}
	if !hides(t, in, ".local/share") {
		t.Error("it is shown")
	}
}

// TestOpenedBesideTheProfile: a file that chooses the profile opens a place beside it, and
// what a file denies itself stays denied.
func TestOpenedBesideTheProfile(t *testing.T) {
	in := closedHome(t)
	if err := errors.Join(os.MkdirAll(filepath.Dir(in.User()), 0o700), os.WriteFile(in.User(), []byte("[isolation]\npolicy_profile = 'closed'\nro = ['~/Documents', '~/.gitconfig']\ndeny = ['~/.gitconfig']\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if hides(t, in, "Documents") || !hides(t, in, "Pictures/x") || !hides(t, in, ".gitconfig") {
		t.Error("the file opens something else")
	}
}

// TestToolsOfPath: a bin directory comes with what is around it, and never the home itself.
func TestToolsOfPath(t *testing.T) {
	got := tools("/h", "/usr/bin:/h/bin:/h/a/bin:/h/b/shims:/h/c/scripts::/h:relative", "/h/go", "/opt/x", "")
	if want := []string{"/h/a", "/h/b", "/h/bin", "/h/c/scripts", "/h/go"}; !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}

// TestTableOfHome: each line is read, and shows no place that people keep their own in.
func TestTableOfHome(t *testing.T) {
	table := readShown(homeText)
	for _, dir := range []string{"", ".config", ".local", ".local/share", ".cache"} {
		if len(table[dir]) == 0 {
			t.Errorf("%q shows nothing", dir)
		}
	}
	for _, name := range []string{"Documents", "Desktop", "Downloads", "Pictures", "Music", "Videos", "Mail", ".mozilla", ".thunderbird", ".password-store", ".gnupg", ".ssh", ".aws", ".kube", ".docker"} {
		if table.has("", name) {
			t.Errorf("the table shows ~/%s", name)
		}
	}
}
