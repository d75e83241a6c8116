package gitstore

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// submodule does what "git submodule add" in a sandbox comes to: a clone whose git
// directory is below the private one, and an empty .git on the host.
func (w *world) submodule(from, private, at string) {
	w.t.Helper()
	git := w.store.guest.real(privateName, private)
	dir := filepath.Join(w.ws, at)
	if err := os.MkdirAll(filepath.Dir(git), 0o755); err != nil {
		w.t.Fatal(err)
	}
	run(w.t, "/", human(), "git", "clone", "-q", "--separate-git-dir", git, from, dir)
	w.link(private, at)
}

// link makes the .git file of a directory, which leads into the session's git directory.
func (w *world) link(private, at string) {
	w.t.Helper()
	dir := filepath.Join(w.ws, at)
	write(w.t, filepath.Join(dir, ".git"), "")
	write(w.t, w.note(filepath.Join(dir, ".git")), "gitdir: "+relative(dir, filepath.Join(w.repo.Common, private))+"\n")
}

// inside runs git as the guest in a submodule.
func (w *world) inside(private, at string, args ...string) string {
	w.t.Helper()
	env := append(human(), "GIT_DIR="+w.store.guest.real(privateName, private), "GIT_WORK_TREE="+filepath.Join(w.ws, at), direct{w.store.View()}.borrows())
	return run(w.t, filepath.Join(w.ws, at), env, append([]string{"git"}, args...)...)
}

// TestAddedSubmodule: what a session commits in a submodule that it has added is the
// host's afterwards, and the next session goes on there.
func TestAddedSubmodule(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		ws, up := newHost(t, "--object-format="+format), newHost(t, "--object-format="+format)
		w := newWorld(t, ws)
		w.submodule(up, "modules/libs/sub", "libs/sub")
		guest := func(args ...string) { t.Helper(); w.inside("modules/libs/sub", "libs/sub", args...) }
		write(t, filepath.Join(ws, "libs/sub/f"), "of the guest\n")
		guest("commit", "-qam", "one")
		guest("tag", "-am", "mine", "own")
		guest("branch", "topic")
		guest("checkout", "-q", "--detach")
		write(t, filepath.Join(ws, "libs/sub/f"), "stashed\n")
		guest("stash", "-q")
		guest("commit", "-q", "--allow-empty", "-m", "detached")
		write(t, filepath.Join(ws, "libs/sub/staged"), "staged\n")
		guest("add", "staged")
		w.guest("update-index", "--add", "--cacheinfo", "160000,"+w.inside("modules/libs/sub", "libs/sub", "rev-parse", "HEAD")+",libs/sub")
		w.guest("commit", "-qm", "add sub")
		r := w.close()
		if len(r.Questions) != 1 || !strings.Contains(r.Questions[0], "git remote add origin") || len(r.Kept)+len(r.Problems)+len(r.Made) > 0 {
			t.Errorf("the report: %+v", r)
		}
		w.gone()
		sub := filepath.Join(ws, "libs/sub")
		for want, args := range map[string][]string{
			"detached\none\nc2\nc1\nc0": {"log", "--format=%s"},
			"A  staged":                 {"status", "--porcelain"},
			"refs/heads/main\nrefs/heads/topic\nrefs/stash\nrefs/tags/own": {"for-each-ref", "--format=%(refname)"},
			"":                     {"fsck", "--strict", "--no-dangling", "--no-progress"},
			"../../../../libs/sub": {"config", "core.worktree"},
		} {
			if got := run(t, sub, human(), append([]string{"git"}, args...)...); got != want {
				t.Errorf("git %v: %q, want %q", args, got, want)
			}
		}
		if got := w.host("status", "--porcelain", "--ignore-submodules=dirty"); got != "" {
			t.Errorf("the repository: %s", got)
		}
		if got := w.host("config", "submodule.libs/sub.active"); got != "true" {
			t.Errorf("active: %q", got)
		}
		next := &world{t: t, ws: ws, state: w.state, opts: w.opts}
		next.opts.Session = "s2"
		next.begin()
		next.inside("modules/libs/sub", "libs/sub", "commit", "-qm", "later")
		next.close()
		if got := run(t, sub, human(), "git", "log", "-1", "--format=%s"); got != "later" {
			t.Errorf("after the next session: %q", got)
		}
	}
}

// TestAddedSubmoduleNames: a git directory is made below .git/modules alone, beside all
// that is there, whatever a submodule is called, and what was committed is not lost.
func TestAddedSubmoduleNames(t *testing.T) {
	up := newHost(t)
	cases := map[string]bool{
		"modules/plain-1.x/y": true, "modules/sub/modules/inner": true,
		"x": false, "modules/HEAD": false, "modules/a/objects": false, "modules/-x": false, "modules/SUB": false, "modules/sub/x": false, "modules/sub/hooks/x": false,
		"modules/modules": false, "modules/a b": false, "modules/$(x)": false, "hooks/x": false, "modules/sub/objects/zz": false, "modules/caf\u00e9": false, "modules/x.lock": false, "modules/late": false,
	}
	for i, private := range slices.Sorted(maps.Keys(cases)) {
		own := cases[private]
		if testenv.Short() && !own && i%4 != 0 {
			continue
		}
		ws := newHost(t)
		run(t, ws, human(), "git", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", up, "sub")
		run(t, ws, human(), "git", "commit", "-qm", "sub")
		w := newWorld(t, ws)
		if len(w.store.Units) != 2 {
			t.Fatalf("%d units", len(w.store.Units))
		}
		w.submodule(up, private, "new")
		w.inside(private, "new", "commit", "-q", "--allow-empty", "-m", "of the guest")
		if private == "modules/late" {
			run(t, ws, human(), "git", "init", "-q", "--bare", filepath.Join(w.repo.Common, private))
		}
		before := tree(t, w.repo.Common)
		r := w.close()
		at := filepath.Join(ws, "new")
		if got := run(t, at, human(), "git", "log", "-1", "--format=%s"); got != "of the guest" {
			t.Errorf("%q: the last commit is %q: %+v", private, got, r)
		}
		git := run(t, at, human(), "git", "rev-parse", "--absolute-git-dir")
		where := relative(w.repo.Common, git)
		if own && where != private || !own && (filepath.Dir(where) != "modules" || !strings.HasPrefix(where, "modules/bawn-")) {
			t.Errorf("%q: the host has it at %q", private, where)
		}
		// All else is as it was.
		if err := os.RemoveAll(git); err != nil {
			t.Fatal(err)
		}
		if after := tree(t, w.repo.Common); !own && after != before {
			t.Errorf("%q: the git directory was\n%s\nand is\n%s", private, before, after)
		}
	}
}

// TestAddedSubmoduleAttacks: nothing that a guest has put into a submodule's git
// directory has the host's git execute, read or write anything. The control is the
// guest's git directory in the same place.
func TestAddedSubmoduleAttacks(t *testing.T) {
	up := newHost(t)
	mark := filepath.Join(t.TempDir(), "executed")
	evil := "touch " + mark
	human := append(human(), "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=protocol.ext.allow", "GIT_CONFIG_VALUE_0=always", "GIT_CONFIG_KEY_1=protocol.file.allow", "GIT_CONFIG_VALUE_1=always")
	plants := map[string]func(w *world, git string){
		"fsmonitor": func(_ *world, git string) { add(t, git+"/config", "[core]\n\tfsmonitor = \""+evil+"; false\"\n") },
		"hook": func(_ *world, git string) {
			write(t, git+"/hooks/post-commit", "#!/bin/sh\n"+evil+"\n")
			run(t, "/", human, "chmod", "755", git+"/hooks/post-commit")
		},
		"filter": func(_ *world, git string) {
			add(t, git+"/config", "[filter \"x\"]\n\tclean = \""+evil+"; cat\"\n")
			write(t, git+"/info/attributes", "* filter=x\n")
		},
		"hooksPath": func(w *world, git string) {
			add(t, git+"/config", "[core]\n\thooksPath = "+w.ws+"/h\n")
			write(t, w.ws+"/h/post-commit", "#!/bin/sh\n"+evil+"\n")
			run(t, "/", human, "chmod", "755", w.ws+"/h/post-commit")
		},
		"remote": func(_ *world, git string) {
			run(t, git, human, "git", "--git-dir=.", "config", "remote.origin.url", "ext::sh -c "+strings.ReplaceAll(evil, " ", "% "))
		},
		"include": func(w *world, git string) {
			add(t, git+"/config", "[include]\n\tpath = "+w.ws+"/c\n")
			write(t, w.ws+"/c", "[core]\n\tfsmonitor = \""+evil+"; false\"\n")
		},
		"config.worktree": func(_ *world, git string) {
			add(t, git+"/config", "[extensions]\n\tworktreeConfig = true\n")
			write(t, git+"/config.worktree", "[core]\n\tfsmonitor = \""+evil+"; false\"\n")
		},
	}
	for i, name := range slices.Sorted(maps.Keys(plants)) {
		if testenv.Short() && i%3 != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newHost(t))
			w.submodule(up, "modules/sub", "sub")
			git := w.store.guest.real(privateName, "modules/sub")
			w.inside("modules/sub", "sub", "commit", "-q", "--allow-empty", "-m", "of the guest")
			w.guest("update-index", "--add", "--cacheinfo", "160000,"+w.inside("modules/sub", "sub", "rev-parse", "HEAD")+",sub")
			w.guest("commit", "-qm", "add sub")
			plants[name](w, git)
			kept := filepath.Join(t.TempDir(), "git")
			run(t, "/", human, "cp", "-a", git, kept)
			os.Remove(mark) // the guest's own gits may have run it
			w.close()
			use := func() {
				sub := filepath.Join(w.ws, "sub")
				for _, script := range []string{"git status", "cd sub; git status; echo x >>f; git add f; git commit -qm x; git fetch", "git submodule update; git submodule status; git fetch --recurse-submodules"} {
					_, _ = tryRun(w.ws, human, "sh", "-c", script)
				}
				if !present(filepath.Join(sub, "f")) {
					t.Errorf("there is no submodule")
				}
			}
			use()
			if present(mark) {
				t.Error("the guest's words were executed")
			}
			host := filepath.Join(w.repo.Common, "modules/sub")
			run(t, "/", human, "sh", "-c", "rm -rf "+host+"; cp -a "+kept+" "+host)
			if use(); !present(mark) {
				t.Error("control: nothing was executed")
			}
			os.Remove(mark)
		})
	}
}

// TestAddedSubmoduleLinks: links, and git directories that lead elsewhere, bring nothing
// of the host's into a submodule.
func TestAddedSubmoduleLinks(t *testing.T) {
	up, other := newHost(t), newHost(t)
	run(t, other, human(), "git", "commit", "-q", "--allow-empty", "-m", "secret")
	secret := run(t, other, human(), "git", "rev-parse", "HEAD")
	for name, plant := range map[string]func(w *world, git string){
		"link out":    func(_ *world, git string) { relink(t, other+"/.git", git) },
		"link inside": func(w *world, git string) { relink(t, "..", git) },
		"link above":  func(w *world, git string) { relink(t, other+"/.git", filepath.Dir(git)) },
		"objects": func(_ *world, git string) {
			relink(t, other+"/.git/objects", git+"/objects")
			write(t, git+"/refs/heads/main", secret+"\n")
		},
		"refs": func(_ *world, git string) { relink(t, other+"/.git/refs", git+"/refs") },
		"HEAD": func(_ *world, git string) { relink(t, other+"/.git/HEAD", git+"/HEAD") },
		"alternates": func(_ *world, git string) {
			write(t, git+"/objects/info/alternates", other+"/.git/objects\n")
			write(t, git+"/refs/heads/main", secret+"\n")
		},
		"commondir": func(_ *world, git string) {
			write(t, git+"/commondir", other+"/.git\n")
			write(t, git+"/refs/heads/main", secret+"\n")
		},
		"another's link": func(w *world, git string) { w.link("modules/sub", "d") },
		"a link above":   func(w *world, git string) { run(t, w.ws, human(), "sh", "-c", "mv sub real; ln -s real sub") },
	} {
		w := newConfined(t, newHost(t))
		w.submodule(up, "modules/sub", "sub")
		plant(w, w.store.guest.real(privateName, "modules/sub"))
		r, _ := w.store.Close(t.Context())
		if _, err := tryRun(w.ws, human(), "git", "--git-dir=.git/modules/sub", "cat-file", "-e", secret); err == nil {
			t.Errorf("%s: the other's commit is here: %+v", name, r)
		}
		if fi, err := os.Lstat(filepath.Join(w.repo.Common, "modules/sub")); err == nil && !fi.IsDir() {
			t.Errorf("%s: a link on the host", name)
		}
		if present(filepath.Join(w.ws, "d/.git")) && present(filepath.Join(w.ws, "sub/.git")) {
			t.Errorf("%s: two work trees", name)
		}
		if out, err := tryRun(w.ws, human(), "git", "status", "--porcelain"); err != nil {
			t.Errorf("%s: git status: %s", name, out)
		}
	}
	w := newConfined(t, newHost(t)) // control: without a plant it is the host's
	w.submodule(up, "modules/sub", "sub")
	w.close()
	if got := run(t, filepath.Join(w.ws, "sub"), human(), "git", "log", "-1", "--format=%s"); got != "c2" {
		t.Errorf("control: %q", got)
	}
}

func relink(t *testing.T, to, at string) {
	t.Helper()
	if err := errOf(os.RemoveAll(at), os.Symlink(to, at)); err != nil {
		t.Fatal(err)
	}
}

// add appends to a file.
func add(t *testing.T, name, text string) {
	t.Helper()
	was, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, string(was)+text)
}

// TestAddedSubmoduleRemotes: of a submodule's remotes those are kept whose machine the
// repository itself comes from.
func TestAddedSubmoduleRemotes(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.host("remote", "add", "origin", "git@forge.example:app")
	for url, near := range map[string]bool{
		"https://forge.example/lib": true, "https://u:secret@FORGE.example/lib": true, "git@forge.example:lib": true, "ssh://git@forge.example:22/lib": true,
		"https://evil.example/lib": false, "http://forge.example/lib": false, "ext::sh -c x": false, "file:///tmp/x": false, "/tmp/x": false, "": false,
		"-forge.example:x": false, "forge.example.evil:lib": false, "https://forge.example@evil.example/lib": false, "evil@forge.example/x:y": false,
	} {
		list := []setting{{section: "remote", sub: "origin", key: "url", value: url}}
		if got := len(w.store.nearRemotes(list)) == 1; got != near {
			t.Errorf("%q is near: %v, want %v", url, got, near)
		}
	}
	w.submodule(newHost(t), "modules/sub", "sub")
	w.inside("modules/sub", "sub", "config", "remote.origin.url", "https://u:secret@forge.example/lib")
	w.inside("modules/sub", "sub", "remote", "add", "evil", "https://evil.example/lib")
	if r := w.close(); !r.Quiet() {
		t.Errorf("%+v", r)
	}
	got := run(t, filepath.Join(w.ws, "sub"), human(), "git", "config", "--local", "--get-regexp", "^(remote|branch)\\.")
	if want := "remote.origin.url https://forge.example/lib\nremote.origin.fetch +refs/heads/*:refs/remotes/origin/*\nbranch.main.remote origin\nbranch.main.merge refs/heads/main"; got != want {
		t.Errorf("the settings are\n%s\nwant\n%s", got, want)
	}
}

// TestAddedSubmoduleRecovered: what a killed bawn has left of a submodule is published by
// the next, also where its git directory was made on the host already.
func TestAddedSubmoduleRecovered(t *testing.T) {
	for _, begun := range []bool{false, true} {
		w := newWorld(t, newHost(t))
		w.submodule(newHost(t), "modules/sub", "sub")
		w.inside("modules/sub", "sub", "commit", "-q", "--allow-empty", "-m", "of the guest")
		if begun {
			if failed := w.store.addModules(t.Context()); len(failed) > 0 || len(w.store.Units) != 2 {
				t.Fatal(failed)
			}
			if err := w.store.save(); err != nil {
				t.Fatal(err)
			}
		}
		w.store.shut()
		reports, err := Recover(t.Context(), w.repo, w.opts)
		if err != nil || len(reports) != 1 {
			t.Fatalf("%+v, %v", reports, err)
		}
		if got := run(t, filepath.Join(w.ws, "sub"), human(), "git", "log", "-1", "--format=%s"); got != "of the guest" {
			t.Errorf("begun %v: %q, %+v", begun, got, reports)
		}
		w.gone()
	}
}

// TestLooseHeads: a detached HEAD of a worktree that the session has added is kept.
func TestLooseHeads(t *testing.T) {
	w := newWorld(t, newHost(t))
	wt := filepath.Join(w.ws, "wt")
	w.guest("worktree", "add", "-q", "--detach", wt)
	env := append(w.guestEnv(), "GIT_DIR="+w.private("worktrees/wt"), "GIT_WORK_TREE="+wt)
	run(t, wt, env, "git", "commit", "-q", "--allow-empty", "-m", "loose")
	w.guest("worktree", "add", "-q", "--detach", filepath.Join(w.ws, "same"))
	r := w.close()
	if len(r.Kept) != 1 || r.Kept[0].Ref != "HEAD" || !strings.Contains(r.Kept[0].Why, `"wt"`) {
		t.Fatalf("%+v", r)
	}
	if got := w.host("log", "-1", "--format=%s", r.Kept[0].Beside); got != "loose" {
		t.Errorf("%s is %q", r.Kept[0].Beside, got)
	}
	list, err := Beside(w.repo)
	if err != nil || len(list) != 1 {
		t.Errorf("bawn git lists %+v, %v", list, err)
	}
}
