package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// fullHome is a home with what people keep in one.
func fullHome(t *testing.T) Inputs {
	t.Helper()
	in := world(t)
	for _, dir := range []string{
		"Documents", "Pictures/x", ".xchat", ".config/git", ".config/chat", ".config/nvim", ".local/share/notes", ".local/share/uv", ".local/bin", ".local/state/x", "tools/y", "src/ws",
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

// TestClosedHome: the home shows what programs need, and what is opened by its path.
func TestClosedHome(t *testing.T) {
	for _, profile := range []string{"default", "strict"} {
		in := fullHome(t)
		in.Flags.Profile = &profile
		in.Tools = Tools(in.Home, func(name string) string {
			return map[string]string{"PATH": "/usr/bin:" + in.Home + "/tools/x/bin", "NVM_DIR": in.Home + "/.nvm"}[name]
		})
		for _, name := range []string{"Documents", "Pictures/x", ".xchat", ".config/chat", ".local/share/notes", ".local/state/x", "taxes.pdf", "src/other", "tools/y", "we?i?rd?"} {
			if !hides(t, in, name) {
				t.Errorf("%s: a session reads ~/%s", profile, name)
			}
		}
		if place, hidden := mustLoad(t, in).Hides(filepath.Join(in.Home, "Documents/a/b")); !hidden || place != filepath.Join(in.Home, "Documents") {
			t.Errorf("%s: ~/Documents/a/b is hidden with %q", profile, place)
		}
		for _, name := range []string{"", "ws", "tools", "go.work", ".bashrc", ".gitconfig", ".config/git", ".config/nvim", ".local/bin", ".local/share/uv", ".cargo/bin", ".nvm", "tools/x/bin"} {
			if hides(t, in, name) {
				t.Errorf("%s: a session does not read ~/%s", profile, name)
			}
		}
		in.Flags.RO = []string{"~/Documents"}
		if hides(t, in, "Documents/letter") || !hides(t, in, "Pictures/x") {
			t.Errorf("%s: --ro ~/Documents opens something else", profile)
		}
		if in.Flags.RO = []string{"~"}; hides(t, in, "Documents") || hides(t, in, "src/other") || hides(t, in, ".local/share/notes") {
			t.Errorf("%s: --ro ~ leaves the home closed", profile)
		}
	}
}

// TestClosedBesideTheWorkspace: of the directories around the workspace a session sees the
// repository that it lies in, and settings that programs look for upwards.
func TestClosedBesideTheWorkspace(t *testing.T) {
	in := fullHome(t)
	for _, name := range []string{"src/mono/.git", "src/mono/lib", "src/mono/app/web", "src/go.work", "src/letter", "go.work"} {
		if err := os.MkdirAll(filepath.Join(in.Home, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	in.Workspace = filepath.Join(in.Home, "src/mono/app/web")
	for name, want := range map[string]bool{"src": false, "src/other": true, "src/letter": true, "src/go.work": false, "src/mono/lib": false, "src/mono/app/web": false, "Documents": true} {
		if got := hides(t, in, name); got != want {
			t.Errorf("~/%s is hidden: %v; want %v", name, got, want)
		}
	}
	in.Workspace = in.Home
	if hides(t, in, "Documents") {
		t.Error("a workspace that is the home hides a part of itself")
	}
}

// TestClosedManyNames: a directory with very many names around the workspace is hidden as a whole.
func TestClosedManyNames(t *testing.T) {
	in := fullHome(t)
	in.Workspace = filepath.Join(in.Home, "src/ws")
	put(t, filepath.Join(in.Workspace, "file"), "")
	for i := range manyNames {
		put(t, filepath.Join(in.Home, "src", strconv.Itoa(i)), "")
	}
	if hides(t, in, "src/ws") || !hides(t, in, "src/7") || !hides(t, in, "src") {
		t.Error("it is hidden name by name")
	}
}

// TestClosedLinks: a link hides nothing where it leads, and one of a shown name opens it.
func TestClosedLinks(t *testing.T) {
	in := fullHome(t)
	at := func(name string) string { return filepath.Join(in.Home, name) }
	if err := errors.Join(os.MkdirAll(at("dotfiles/config/git"), 0o700), os.MkdirAll(at("dotfiles/config/chat"), 0o700), os.WriteFile(at("dotfiles/vimrc"), nil, 0o600), os.WriteFile(at("dotfiles/letter"), nil, 0o600),
		os.Symlink(at("dotfiles/vimrc"), at(".vimrc")), os.Symlink("/", at("root")), os.Symlink(in.Workspace, at("now")),
		os.RemoveAll(at(".config")), os.Symlink("dotfiles/config", at(".config"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"dotfiles/vimrc": false, "dotfiles/letter": true, "dotfiles/config/git": false, ".config/chat": true, "root": false, "now": false, "ws": false} {
		if got := hides(t, in, name); got != want {
			t.Errorf("~/%s is hidden: %v; want %v", name, got, want)
		}
	}
}

// TestUnlistedIsHidden: a directory of which only some names are shown is hidden as a whole
// where it can't be listed.
func TestUnlistedIsHidden(t *testing.T) {
	in := fullHome(t)
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

// TestOpenedByFiles: a file opens a place of the home, also beside a profile that it chooses;
// a profile that a later layer chooses closes it again, and what a file denies stays denied.
func TestOpenedByFiles(t *testing.T) {
	in := fullHome(t)
	strict := "strict"
	for _, beside := range []string{"", "policy_profile = 'strict'\n"} {
		put(t, in.User(), "[isolation]\n"+beside+"ro = ['~/Documents', '~/.gitconfig']\ndeny = ['~/.gitconfig']\n")
		in.Flags.Profile = nil
		if hides(t, in, "Documents") || !hides(t, in, "Pictures/x") || !hides(t, in, ".gitconfig") {
			t.Errorf("beside %q: the file opens something else", beside)
		}
		if in.Flags.Profile = &strict; !hides(t, in, "Documents") {
			t.Errorf("beside %q: --profile strict leaves the file's place open", beside)
		}
	}
}

// TestOpenedByNobody: an untrusted project opens no place of the home, and an agent finds what it keeps.
func TestOpenedByNobody(t *testing.T) {
	in := fullHome(t)
	for _, line := range []string{"ro", "rw", "open"} {
		put(t, in.projectFile(), "[isolation]\n"+line+" = ['~/Documents']\n")
		if c, err := Load(in); err == nil && !slices.ContainsFunc(c.Isolation(in.Workspace).Mounts, func(m bawn.Mount) bool {
			return m.Path == filepath.Join(in.Home, "Documents") && m.Access == bawn.Hidden
		}) {
			t.Errorf("%s of an untrusted project opens it", line)
		}
	}
	put(t, in.projectFile(), "")
	in.Agent = &AgentProfile{Name: "notes", RW: []string{filepath.Join(in.Home, ".local/share/notes")}}
	if hides(t, in, ".local/share/notes") || !hides(t, in, ".xchat") {
		t.Error("an agent does not find what it keeps")
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
