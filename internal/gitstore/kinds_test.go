package gitstore

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A linked worktree: its HEAD and index are the session's, and a branch that the
// main one has checked out is not moved below it.
func TestLinkedWorktree(t *testing.T) {
	for _, kind := range []string{"of a repository", "of a bare one"} {
		t.Run(kind, func(t *testing.T) {
			main := newHost(t)
			if kind == "of a bare one" {
				run(t, main, human(), "git", "clone", "-q", "--bare", main, main+".git")
				main += ".git"
			}
			wt := filepath.Join(filepath.Dir(main), "wt")
			run(t, main, human(), "git", "worktree", "add", "-q", "-b", "wt", wt)
			w := newWorld(t, wt)
			w.edit("f", "in the worktree\n")
			w.guest("commit", "-qam", "in the worktree")
			w.edit("new", "n\n")
			w.guest("add", "new")
			w.quiet()
			w.agree()
			w.host("commit", "-qm", "of the human")
			w.quiet()
			w.agree()
			if kind == "of a repository" {
				before := run(t, main, human(), "git", "status", "--porcelain")
				w.guest("update-ref", "refs/heads/main", "HEAD")
				if r := w.sync(); len(r.Kept) != 1 || !strings.Contains(r.Kept[0].Why, "another worktree") {
					t.Errorf("%+v", r)
				}
				if got := run(t, main, human(), "git", "status", "--porcelain"); got != before {
					t.Errorf("the main worktree: %s", got)
				}
			}
		})
	}
}

// A link is believed only if the repository points back, from outside.
func TestFind(t *testing.T) {
	ws := newHost(t)
	dir := filepath.Dir(ws)
	other := filepath.Join(dir, "other")
	admin := filepath.Join(ws, ".git/worktrees/x")
	write(t, filepath.Join(other, ".git"), "gitdir: "+admin+"\n")
	none := func(at, why string) {
		t.Helper()
		r, err := Find(at)
		var un *UnsupportedError
		if r != nil || why != "" && !errors.As(err, &un) || why == "" && err != nil {
			t.Errorf("%s: %+v, %v", at, r, err)
		}
	}
	none(other, "it is not there")
	write(t, filepath.Join(admin, "gitdir"), filepath.Join(dir, "elsewhere/.git")+"\n")
	none(other, "it points elsewhere")
	write(t, filepath.Join(admin, "gitdir"), filepath.Join(other, ".git")+"\n")
	if r, err := Find(other); err != nil || r == nil || r.Common != filepath.Join(ws, ".git") || r.Admin != admin {
		t.Errorf("control: %+v, %v", r, err)
	}
	// A guest of the workspace can make all of this in it.
	run(t, other, human(), "sh", "-c", `rm .git; git init -q sub; mkdir -p sub/.git/worktrees/x; echo "gitdir: $PWD/sub/.git/worktrees/x" >.git; echo "$PWD/.git" >sub/.git/worktrees/x/gitdir`)
	none(other, "it lies in the workspace")
	// A submodule: the git directory points back, from outside.
	super := newHost(t)
	run(t, super, human(), "git", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", ws, "sub")
	sub, module := filepath.Join(super, "sub"), filepath.Join(super, ".git/modules/sub")
	if r, err := Find(sub); err != nil || r == nil || r.Common != module || r.Workspace != sub {
		t.Errorf("control: %+v, %v", r, err)
	}
	run(t, super, human(), "git", "config", "-f", filepath.Join(module, "config"), "core.worktree", "../../../d")
	none(sub, "it points elsewhere")
	run(t, super, human(), "sh", "-c", "mkdir sub/modules; cp -r .git/modules/sub sub/modules/x; git config -f sub/modules/x/config core.worktree ../..; echo gitdir: modules/x >sub/.git")
	none(sub, "it lies in the workspace")
	none(filepath.Join(ws, "d"), "")
	run(t, dir, human(), "git", "init", "-q", "--bare", "bare")
	none(filepath.Join(dir, "bare"), "")
	link := filepath.Join(dir, "link")
	os.Mkdir(link, 0o755)
	os.Symlink(filepath.Join(ws, ".git"), filepath.Join(link, ".git"))
	none(link, "a link")
}

// A shallow clone stays one, on both sides.
func TestShallow(t *testing.T) {
	from := newHost(t)
	ws := filepath.Join(filepath.Dir(from), "shallow")
	run(t, from, human(), "git", "clone", "-q", "--depth=1", "file://"+from, ws)
	w := newWorld(t, ws)
	w.edit("f", "x\n")
	w.guest("commit", "-qam", "on top")
	w.quiet()
	w.agree()
	run(t, from, human(), "git", "branch", "deep", "HEAD~1")
	w.guest("fetch", "-q", "--depth=1", "file://"+from, "deep:deep") // its parents are nowhere
	r, err := w.store.Sync(t.Context())
	if err != nil || len(r.Problems) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := w.host("for-each-ref", "refs/heads/deep"); got != "" {
		t.Errorf("history without its parents: %s", got)
	}
	if r := w.close(); r.Private == "" {
		t.Errorf("what is not published is gone: %+v", r)
	}
}

// Submodules have private directories of their own, and are published too.
func TestSubmodule(t *testing.T) {
	from := newHost(t)
	ws := newHost(t)
	run(t, ws, human(), "git", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "sub")
	run(t, ws, human(), "git", "commit", "-qm", "with a submodule")
	w := newWorld(t, ws)
	if len(w.store.Units) != 2 {
		t.Fatalf("%d units", len(w.store.Units))
	}
	sub := func(args ...string) string {
		env := append(w.guestEnv(), "GIT_DIR="+w.store.guest.real(privateName, "modules/sub"), "GIT_WORK_TREE="+filepath.Join(ws, "sub"))
		return run(t, filepath.Join(ws, "sub"), env, append([]string{"git"}, args...)...)
	}
	w.edit("sub/f", "changed\n")
	sub("commit", "-qam", "in the submodule")
	w.quiet()
	if got := run(t, filepath.Join(ws, "sub"), human(), "git", "log", "-1", "--format=%s"); got != "in the submodule" {
		t.Errorf("the submodule is at %q", got)
	}
	if got := w.host("status", "--porcelain"); got != "M sub" {
		t.Errorf("status: %q", got)
	}
	if r := w.close(); !r.Quiet() {
		t.Errorf("%+v", r)
	}
}

// A partial clone fetches nothing on the guest's behalf.
func TestPartial(t *testing.T) {
	from := newHost(t)
	run(t, from, human(), "git", "config", "uploadpack.allowFilter", "true")
	ws := filepath.Join(filepath.Dir(from), "partial")
	run(t, from, human(), "git", "clone", "-q", "--filter=blob:none", "file://"+from, ws)
	w := newWorld(t, ws)
	w.edit("f", "x\n")
	w.guest("commit", "-qam", "on top")
	os.Rename(from, from+".away")
	w.quiet()
	w.same("rev-parse", "HEAD")
	w.same("ls-files", "-s")
}

// Formats that are not known are refused, and those that are a little special work.
func TestFormats(t *testing.T) {
	ws := newHost(t)
	run(t, ws, human(), "git", "update-index", "--split-index")
	run(t, ws, human(), "git", "pack-refs", "--all")
	run(t, ws, human(), "git", "sparse-checkout", "set", "--no-cone", "/f")
	w := newWorld(t, ws)
	w.edit("f", "x\n")
	w.guest("commit", "-qam", "sparse")
	w.quiet()
	w.agree()
	if out := w.host("status", "--porcelain"); out != "" {
		t.Errorf("status: %s", out)
	}
	for _, kv := range [][2]string{{"extensions.refstorage", "reftable"}, {"extensions.somethingNew", "1"}, {"core.repositoryformatversion", "2"}} {
		other := newHost(t)
		f := filepath.Join(other, ".git/config")
		text, _ := os.ReadFile(f)
		section, key, _ := strings.Cut(kv[0], ".")
		write(t, f, fmt.Sprintf("%s[%s]\n\t%s = %s\n", text, section, key, kv[1]))
		r, err := Find(other)
		if err != nil {
			t.Fatal(err)
		}
		o := w.opts
		o.Session = "other"
		if _, err := Prepare(r, o); err == nil || present(Place(o.State, o.Session)) {
			t.Errorf("%v: %v; the place is there: %v", kv, err, present(Place(o.State, o.Session)))
		}
	}
}

// Objects that the host itself borrows are shown as well.
func TestHostAlternates(t *testing.T) {
	from := newHost(t)
	ws := filepath.Join(filepath.Dir(from), "borrower")
	run(t, from, human(), "git", "clone", "-q", "--shared", from, ws)
	w := newWorld(t, ws)
	if n := len(w.store.Dirs()[0].Objects); n != 2 {
		t.Errorf("%d object directories", n)
	}
	w.guest("commit", "-q", "--allow-empty", "-m", "x")
	w.quiet()
	w.agree()
}

// What git-lfs keeps comes along, if it is what its name says.
func TestLarge(t *testing.T) {
	w := newWorld(t, newHost(t))
	good, evil := fmt.Sprintf("%x", sha256.Sum256([]byte("large"))), strings.Repeat("ab", 32)
	at := func(id string) string { return "lfs/objects/" + id[:2] + "/" + id[2:4] + "/" + id }
	w.plant(at(good), "large")
	w.plant(at(evil), "evil")
	os.Symlink("/etc/passwd", w.private("lfs/objects/"+good[:2]+"/"+good[2:4]+"/"+strings.Repeat("cd", 32)))
	w.edit("big", "version https://git-lfs.github.com/spec/v1\noid sha256:"+good+"\nsize 5\n")
	w.guest("add", "big")
	w.guest("commit", "-qm", "large")
	if r := w.sync(); len(r.Problems) != 1 {
		t.Errorf("%+v", r)
	}
	if text, err := os.ReadFile(filepath.Join(w.repo.Common, at(good))); err != nil || string(text) != "large" {
		t.Errorf("%q, %v", text, err)
	}
	if out := run(t, w.repo.Common, human(), "find", "lfs", "-not", "-type", "d"); out != at(good) {
		t.Errorf("the host has %s", out)
	}
}
