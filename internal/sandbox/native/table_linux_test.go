package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/protect"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// planting is a script that writes each of some files, with the directories on the
// way.
func planting(dir string, files []string) string {
	const each = `while read -r p; do { case $p in */*) mkdir -p "${p%/*}";; esac && echo evil >"$p"; } 2>/dev/null; done`
	return "cd " + dir + "; " + each + " <<'END'\n" + strings.Join(files, "\n") + "\nEND\n"
}

// planted are the files that are there.
func planted(dir string, files []string) (made []string) {
	for _, f := range files {
		if info, err := os.Lstat(filepath.Join(dir, f)); err == nil && info.Mode().IsRegular() {
			made = append(made, f)
		}
	}
	return made
}

// sample is a file by which an entry counts.
func sample(e *protect.Entry) string {
	p := strings.ReplaceAll(e.Path(), "*", "x")
	if e.Dir() {
		p += "/file"
	}
	return p
}

// tried runs a session that makes every file, in a workspace or below a home
// directory that it may write, and returns those that are there in the end.
func tried(t *testing.T, req sandbox.Request, base string, files []string) (made []string, denials []sandbox.Denial) {
	t.Helper()
	p := New("")
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _, denials = execute(t, p, plan, planting(base, files))
	return planted(base, files), denials
}

// TestTable makes every name of the table in a session, in the workspace and
// deeper. What was left out of the table is the control.
func TestTable(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify")
	var files, left []string
	for _, e := range protect.Project() {
		if e.Class != protect.Credential {
			files = append(files, sample(&e), "deep/er/"+sample(&e), "up/"+strings.ToUpper(sample(&e)))
		}
	}
	for _, m := range protect.Left() {
		left = append(left, m.Name)
	}
	bare, ws := workspace(t), workspace(t)
	all := slices.DeleteFunc(slices.Concat(files, left), func(f string) bool { // a file, and a directory of the same name
		return slices.ContainsFunc(files, func(o string) bool { return strings.HasPrefix(o, f+"/") })
	})
	if out, err := exec.Command("bash", "-c", planting(bare, all)).CombinedOutput(); err != nil || len(planted(bare, all)) != len(all) {
		t.Fatalf("the control: %d of %d were made: %v, %s", len(planted(bare, all)), len(all), err, out)
	}
	made, denials := tried(t, request(ws), ws, slices.Concat(files, left))
	slices.Sort(left)
	slices.Sort(made)
	if !slices.Equal(made, left) {
		t.Errorf("%q were made; want what is not in the table: %q", made, left)
	}
	for _, d := range denials {
		if strings.HasSuffix(d.Resource, "/rust-toolchain.toml") && !strings.Contains(d.Remedy, "--unprotect rust-toolchain.toml") {
			t.Errorf("%s: the remedy is %q; want it to name --unprotect", d.Resource, d.Remedy)
		}
	}
}

// TestFixtures: what only a home directory's programs execute can be made below the top
// of a project, and not where a link of the home directory leads.
func TestFixtures(t *testing.T) {
	testenv.Need(t, "userns", "notify")
	fixtures := []string{"test/home/.bashrc", "test/home/.config/fish/config.fish", "test/home/.local/bin/x"}
	others := []string{".bashrc", "test/.envrc", "test/.vscode/tasks.json", "rc/shell", ".config/fish/config.fish"}
	ws := workspace(t)
	req := request(ws)
	req.Linked = []string{filepath.Join(ws, "rc/shell")}
	if made, _ := tried(t, req, ws, slices.Concat(fixtures, others)); len(made) != 0 {
		t.Errorf("control: %q were made where a home directory may be", made)
	}
	req.Project = true
	if made, denials := tried(t, req, ws, slices.Concat(fixtures, others)); !slices.Equal(made, fixtures) {
		t.Errorf("%q were made; want %q: %v", made, fixtures, denials)
	}
}

// TestTableOfTheHome makes every place of the table that lies below the home
// directory, where all of that can be written. What lies beside is the control.
func TestTableOfTheHome(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify")
	home, ws := workspace(t), workspace(t)
	var files []string
	for _, e := range protect.All() {
		if e.Home() && e.Counts("linux") && e.Class != protect.Bawn && !strings.Contains(e.Path(), "*") {
			files = append(files, sample(&e))
		}
	}
	req := request(ws)
	req.Home = home
	req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: home, Access: bawn.ReadWrite, Why: "--rw"})
	control := []string{".config/other", ".cargo/registry/x", ".local/share/x"}
	if made, _ := tried(t, req, home, slices.Concat(files, control)); !slices.Equal(made, control) {
		t.Errorf("%q were made; want %q", made, control)
	}
}

// TestUnprotect opens names for a project: they can be made, there or not at the
// start, and nothing else can.
func TestUnprotect(t *testing.T) {
	testenv.Need(t, "userns", "notify")
	files := []string{"rust-toolchain.toml", "sub/.vscode/tasks.json", ".yarn/releases/x.cjs", "a.code-workspace"}
	others := []string{"rust-toolchain", ".idea/x", ".yarn/plugins/x", ".git/hooks/x", ".bawn/x"}
	ws := workspace(t)
	req := request(ws)
	if made, _ := tried(t, req, ws, files); made != nil {
		t.Fatalf("%q were made", made)
	}
	if err := os.WriteFile(filepath.Join(ws, "rust-toolchain.toml"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	req.Session.Isolation.Unprotected = []string{"rust-toolchain.toml", ".vscode", ".yarn/releases", "*.code-workspace"}
	if made, denials := tried(t, req, ws, slices.Concat(files, others)); !slices.Equal(made, files) {
		t.Errorf("%q were made; want %q: %v", made, files, denials)
	}
	if text, err := os.ReadFile(filepath.Join(ws, "rust-toolchain.toml")); string(text) != "evil\n" {
		t.Errorf("the one that was there is %q, %v", text, err)
	}
	req.Protected = []string{"rust-toolchain.toml"} // who protects wins
	made, _ := tried(t, req, ws, files[:1])
	if text, _ := os.ReadFile(filepath.Join(ws, "rust-toolchain.toml")); len(made) != 1 || string(text) != "evil\n" {
		t.Errorf("%q, %q", made, text)
	}
}
