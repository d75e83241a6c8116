package gitstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stage puts an entry into the guest's index that it may not write.
func (w *world) stage(mode, name, text string) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "blob")
	write(w.t, file, text)
	id := w.guest("hash-object", "-w", file)
	w.guest("update-index", "--add", "--cacheinfo", mode+","+id+","+name)
}

// What a guest may not write into the workspace does not come there by the human's
// checkout, of a branch, of the index or of a stash.
func TestPlanted(t *testing.T) {
	plants := map[string]func(w *world){
		"an absolute link":       func(w *world) { w.stage("120000", "notes.txt", "/etc/passwd") },
		"a link that climbs":     func(w *world) { w.stage("120000", "d/notes.txt", "../../.bashrc") },
		"a link that comes back": func(w *world) { w.stage("120000", "d/notes.txt", "d2/../x") },
		"a link to git's":        func(w *world) { w.stage("120000", "notes.txt", ".git/hooks/post-checkout") },
		"an editor's tasks":      func(w *world) { w.stage("100644", "d/.VSCode/tasks.json", "{}") },
		"hooks":                  func(w *world) { w.stage("100755", ".githooks/post-checkout", "#!/bin/sh\n") },
		"hgrc":                   func(w *world) { w.stage("100644", ".hg/hgrc", "[hooks]\n") },
		"a bare repository": func(w *world) {
			w.stage("100644", "lib/HEAD", "ref: refs/heads/main\n")
			w.stage("100644", "lib/objects/x", "")
			w.stage("100644", "lib/Refs/x", "")
			w.stage("100644", "lib/config", "[core]\n\tfsmonitor = false\n")
		},
		"a common directory": func(w *world) {
			w.stage("100644", "lib/HEAD", "ref: refs/heads/main\n")
			w.stage("100644", "lib/commondir", "../d\n")
		},
		"the rest of a bare repository": func(w *world) {
			w.edit("lib/refs/x", "")
			w.stage("100644", "lib/HEAD", "ref: refs/heads/main\n")
			w.stage("100644", "lib/objects/x", "")
		},
	}
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newHost(t))
			index := w.host("ls-files", "-s")
			plant(w)
			if r := w.sync(); len(r.Problems) != 1 {
				t.Errorf("staged: %+v", r)
			}
			if got := w.host("ls-files", "-s"); got != index {
				t.Errorf("the index is\n%s", got)
			}
			tree := w.guest("write-tree")
			w.guest("read-tree", "HEAD")
			id := w.guest("commit-tree", "-p", "HEAD", "-m", "x", tree)
			w.guest("update-ref", "refs/heads/fix", id)
			w.guest("update-ref", "refs/heads/later", w.guest("commit-tree", "-p", id, "-m", "y", "HEAD^{tree}"))
			w.guest("update-ref", "refs/tags/root", w.guest("commit-tree", "-m", "z", tree))
			w.guest("update-ref", "refs/tags/tree", tree)
			w.guest("update-ref", "refs/notes/n", id)
			w.guest("stash", "store", "-m", "s", w.guest("commit-tree", "-p", "HEAD", "-p", id, "-m", "s", "HEAD^{tree}"))
			w.guest("update-ref", "refs/heads/good", w.guest("commit-tree", "-p", "HEAD", "-m", "good", "HEAD^{tree}"))
			r := w.sync()
			if len(r.Kept) != 6 {
				t.Errorf("%+v", r)
			}
			w.guest("update-ref", "refs/heads/again", id) // it lies beside now, which is no reason
			if r := w.sync(); len(r.Kept) != 7 {
				t.Errorf("%+v", r)
			}
			got := w.host("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/notes", "refs/stash")
			if got != "good\nmain\nside\nv0" {
				t.Errorf("the host has %q", got)
			}
			w.host("update-ref", "refs/heads/control", id) // git takes it
			w.host("checkout", "-q", "control")            // and makes it
			for _, p := range strings.Fields(w.host("diff", "--name-only", "main", "control")) {
				if !present(filepath.Join(w.ws, p)) {
					t.Errorf("control: there is no %q", p)
				}
			}
		})
	}
}

// What the user has opened for the project is published, and what the session
// protects beyond the table is not.
func TestPlantedNames(t *testing.T) {
	for _, c := range []struct {
		names Names
		want  string
	}{
		{Names{}, "extra"},
		{Names{Opened: []string{".envrc"}}, "envrc extra"},
		{Names{Extra: []string{"extra"}}, ""},
		{Names{None: true, Extra: []string{"extra"}}, "envrc extra login top"},
		{Names{Project: true}, "extra login"},
	} {
		w := newWorld(t, newHost(t))
		w.store.Names = c.names
		for branch, name := range map[string]string{"envrc": "d/.envrc", "extra": "d/extra", "login": "d/.bashrc", "top": ".bashrc"} {
			w.guest("read-tree", "HEAD")
			w.stage("100644", name, "x\n")
			w.guest("update-ref", "refs/heads/"+branch, w.guest("commit-tree", "-p", "HEAD", "-m", branch, w.guest("write-tree")))
		}
		w.guest("read-tree", "HEAD")
		w.sync()
		if got := strings.Fields(w.host("for-each-ref", "--format=%(refname:short)", "refs/heads/envrc", "refs/heads/extra", "refs/heads/login", "refs/heads/top")); strings.Join(got, " ") != c.want {
			t.Errorf("%+v: the host has %q, want %q", c.names, got, c.want)
		}
	}
}

// What can't be looked at is not published.
func TestPlantedUnread(t *testing.T) {
	w := newWorld(t, newHost(t))
	blob := strings.TrimSpace(w.host("rev-parse", "HEAD:f"))
	c := &changes{store: w.store, unit: w.store.Units[0]}
	if why, err := c.why(t.Context(), blob); why != "" || err != nil {
		t.Errorf("a blob: %q, %v", why, err)
	}
	if why, err := c.why(t.Context(), strings.Repeat("1", 40)); err == nil {
		t.Errorf("what is missing: %q", why)
	}
	tree := strings.TrimSpace(w.host("rev-parse", "HEAD:d"))
	if err := os.Remove(filepath.Join(w.ws, ".git/objects", tree[:2], tree[2:])); err != nil {
		t.Fatal(err)
	}
	if why, err := c.why(t.Context(), strings.TrimSpace(w.host("rev-parse", "HEAD^{tree}"))); err == nil {
		t.Errorf("a tree with a part missing: %q", why)
	}
}

// What the host has, or had, passes, and so does what the workspace holds.
func TestPlantedByTheHuman(t *testing.T) {
	ws := newHost(t)
	write(t, filepath.Join(ws, ".vscode/tasks.json"), "{}\n")
	run(t, ws, human(), "ln", "-s", "/etc/passwd", "link")
	run(t, ws, human(), "git", "add", ".")
	run(t, ws, human(), "git", "commit", "-qm", "of the human")
	run(t, ws, human(), "git", "rm", "-q", "link", ".vscode/tasks.json")
	run(t, ws, human(), "git", "commit", "-qm", "without")
	w := newWorld(t, ws)
	w.guest("update-ref", "refs/heads/had", w.guest("commit-tree", "-m", "had", "HEAD~1^{tree}")) // the workspace lacks it
	w.quiet()
	w.host("rev-parse", "had")
	w.guest("revert", "--no-edit", "HEAD")
	w.quiet()
	w.agree()
	w.guest("update-ref", "refs/heads/root", w.guest("commit-tree", "-m", "root", "HEAD^{tree}"))
	w.edit("d/.envrc", "of the human\n")
	w.guest("add", "d")
	w.quiet()
	w.guest("commit", "-qm", "envrc")
	w.stage("120000", "inside", "d/g0")
	w.stage("120000", "d/up", "../f")
	w.guest("commit", "-qm", "links")
	w.quiet()
	w.same("rev-parse", "main", "root")
	w.stage("120000", "link", "/etc/shadow") // at the same path, but another
	if r := w.sync(); len(r.Problems) != 1 {
		t.Errorf("%+v", r)
	}
}
