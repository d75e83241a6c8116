package gitstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// worktree does what "git worktree add" in a sandbox comes to: the worktree's part lies in
// the session's git directory, and the host has an empty .git.
func (w *world) worktree(at string, args ...string) {
	w.t.Helper()
	w.guest(append(append([]string{"worktree", "add", "-q"}, args...), filepath.Join(w.ws, at))...)
	w.link("worktrees/"+filepath.Base(at), at)
}

// TestAddedWorktree: a worktree that a session has added is the host's afterwards, with
// its branch, HEAD and index; an undo removes it, and another brings it back.
func TestAddedWorktree(t *testing.T) {
	ws := newHost(t)
	w := newWorld(t, ws)
	start := w.snapshot()
	w.worktree("wt")
	w.worktree("sub/apart", "--detach")
	write(t, filepath.Join(ws, "wt/f"), "of the guest\n")
	w.inside("worktrees/wt", "wt", "commit", "-qam", "one")
	w.inside("worktrees/apart", "sub/apart", "commit", "-q", "--allow-empty", "-m", "detached")
	write(t, filepath.Join(ws, "wt/staged"), "staged\n")
	w.inside("worktrees/wt", "wt", "add", "staged")
	if r := w.close(); len(r.Questions)+len(r.Kept)+len(r.Problems)+len(r.Made) > 0 {
		t.Errorf("the report: %+v", r)
	}
	w.gone()
	wanted := func() {
		t.Helper()
		for _, c := range []struct{ dir, want, args string }{
			{"wt", "one\nc2\nc1\nc0", "log --format=%s"}, {"wt", "refs/heads/wt", "symbolic-ref HEAD"}, {"wt", "A  staged", "status --porcelain"},
			{"sub/apart", "detached", "log -1 --format=%s"}, {"sub/apart", "", "status --porcelain"}, {"sub/apart", "HEAD", "rev-parse --abbrev-ref HEAD"},
			{".", "", "fsck --strict --no-dangling --no-progress"}, {".", "", "worktree prune --dry-run --verbose --expire=now"},
		} {
			if got := run(t, filepath.Join(ws, c.dir), human(), append([]string{"git"}, strings.Fields(c.args)...)...); got != c.want {
				t.Errorf("git %s in %s: %q, want %q", c.args, c.dir, got, c.want)
			}
		}
	}
	wanted()
	end := w.snapshot()
	again := w.files()
	run(t, ws, human(), "sh", "-c", "rm wt/[!.]* -r; rm -r sub/apart/[!.]*") // as the undo of the files does
	w.apply(w.plan(start, end))
	if got := w.host("worktree", "list", "--porcelain"); strings.Count(got, "worktree ") != 1 {
		t.Errorf("after the undo: %s", got)
	}
	if got := w.host("branch", "--list", "wt"); got != "" {
		t.Errorf("the branch is still there: %s", got)
	}
	undone := w.snapshot()
	again()
	run(t, ws, human(), "rm", "wt/.git", "sub/apart/.git") // no checkpoint holds them
	w.apply(w.plan(end, undone))
	wanted()
}

// TestAddedWorktreeOfTheHumans: an undo leaves a worktree in which the human has gone on.
func TestAddedWorktreeOfTheHumans(t *testing.T) {
	for i, args := range [][]string{{"commit", "-q", "--allow-empty", "-m", "mine"}, {"checkout", "-q", "--detach"}, {"rm", "-q", "--cached", "f"}} {
		w := newWorld(t, newHost(t))
		start := w.snapshot()
		w.worktree("wt")
		w.close()
		end := w.snapshot()
		run(t, filepath.Join(w.ws, "wt"), human(), append([]string{"git"}, args...)...)
		r := w.plan(start, end)
		w.apply(r)
		if got := w.host("worktree", "list"); len(r.GoneTrees()) > 0 || !strings.Contains(got, "/wt ") {
			t.Errorf("git %v: %s: %s", args, got, w.said(r.Changes()))
		}
		if i > 0 {
			continue
		}
		if got := w.host("log", "-1", "--format=%s", "wt", "--"); got != "mine" {
			t.Errorf("git %v: %q", args, got)
		}
	}
}

// TestAddedWorktreeAttacks: nothing that a guest has put into a worktree's part of its
// git directory comes to the host, and no worktree gets another's name or branch. Without
// a plant it is the host's.
func TestAddedWorktreeAttacks(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "executed")
	evil := "[core]\n\tfsmonitor = \"touch " + mark + "; false\"\n\thooksPath = /tmp\n"
	for name, c := range map[string]struct {
		plant func(w *world, git string)
		own   bool // the host has the worktree
	}{
		"none": {func(*world, string) {}, true},
		"configuration": {func(w *world, git string) {
			write(t, git+"/config.worktree", evil)
			write(t, git+"/config", evil)
			add(t, w.private("config"), "[extensions]\n\tworktreeConfig = true\n")
		}, true},
		"commondir":   {func(w *world, git string) { write(t, git+"/commondir", w.ws+"/else\n") }, false},
		"gitdir":      {func(w *world, git string) { write(t, git+"/gitdir", "/etc/.git\n") }, true},
		"hooks":       {func(w *world, git string) { write(t, git+"/hooks/post-checkout", "#!/bin/sh\ntouch "+mark+"\n") }, true},
		"link":        {func(w *world, git string) { run(t, "/", human(), "mv", git, git+".x"); relink(t, git+".x", git) }, false},
		"HEAD link":   {func(w *world, git string) { relink(t, w.repo.Common+"/HEAD", git+"/HEAD") }, false},
		"the branch":  {func(w *world, git string) { write(t, git+"/HEAD", "ref: refs/heads/main\n") }, false},
		"no branch":   {func(w *world, git string) { write(t, git+"/HEAD", "ref: refs/remotes/x\n") }, false},
		"unborn":      {func(w *world, git string) { write(t, git+"/HEAD", "ref: refs/heads/unborn\n") }, false},
		"HEAD's name": {func(w *world, git string) { write(t, git+"/HEAD", "ref: refs/heads/-x\n") }, false},
		"sparse":      {func(w *world, git string) { write(t, git+"/info/sparse-checkout", "x\n") }, false},
		"taken name": {func(w *world, git string) {
			w.host("worktree", "add", "-q", "-b", "mine", filepath.Join(t.TempDir(), "WT"))
		}, false},
		"a link above": {func(w *world, git string) { run(t, w.ws, human(), "sh", "-c", "mv wt real; ln -s real wt") }, false},
	} {
		w := newConfined(t, newHost(t))
		w.worktree("wt")
		c.plant(w, w.store.guest.real(privateName, "worktrees/wt"))
		os.Remove(mark)
		r, _ := w.store.Close(t.Context())
		_, _ = tryRun(w.ws, human(), "sh", "-c", "git status; cd wt && git status && git checkout -q --detach && git commit -q --allow-empty -m x")
		if present(mark) {
			t.Errorf("%s: the guest's words were executed", name)
		}
		got := strings.Contains(w.host("worktree", "list"), "/wt ")
		if got != c.own {
			t.Errorf("%s: the host has the worktree: %v, want %v: %+v", name, got, c.own, r)
		}
		if present(filepath.Join(w.repo.Common, "worktrees/wt")) != c.own {
			t.Errorf("%s: the host's part of the worktree", name)
		}
		for _, file := range []string{"config", "config.worktree", "hooks"} {
			if present(filepath.Join(w.repo.Common, "worktrees/wt", file)) {
				t.Errorf("%s: %s came to the host", name, file)
			}
		}
		if out, err := tryRun(w.ws, human(), "git", "status", "--porcelain"); err != nil {
			t.Errorf("%s: git status: %s", name, out)
		}
	}
}

// TestAddedWorktreeRecovered: what a killed bawn has left of a worktree is published by
// the next, also where its part of the host's git directory was made already.
func TestAddedWorktreeRecovered(t *testing.T) {
	for _, begun := range []bool{false, true} {
		w := newWorld(t, newHost(t))
		w.worktree("wt")
		w.inside("worktrees/wt", "wt", "commit", "-q", "--allow-empty", "-m", "of the guest")
		if begun {
			if failed := w.store.addTrees(); len(failed) > 0 || len(w.store.Units) != 2 {
				t.Fatal(failed)
			}
		}
		w.store.shut()
		if _, err := Recover(t.Context(), w.repo, w.opts); err != nil {
			t.Fatal(err)
		}
		if got := run(t, filepath.Join(w.ws, "wt"), human(), "git", "log", "-1", "--format=%s %D"); got != "of the guest HEAD -> wt" {
			t.Errorf("begun %v: %q", begun, got)
		}
		w.gone()
	}
}

// TestAddedWorktreeOfTheSameName: a worktree that the human adds under the name of the
// session's, after a killed bawn has begun to publish that, stays the human's.
func TestAddedWorktreeOfTheSameName(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.worktree("wt")
	w.inside("worktrees/wt", "wt", "commit", "-q", "--allow-empty", "-m", "of the guest")
	if failed := w.store.addTrees(); len(failed) > 0 {
		t.Fatal(failed)
	}
	w.store.shut()
	if err := os.RemoveAll(filepath.Join(w.repo.Common, "worktrees/wt")); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(t.TempDir(), "wt")
	w.host("worktree", "add", "-q", "-b", "mine", mine)
	if _, err := Recover(t.Context(), w.repo, w.opts); err != nil {
		t.Fatal(err)
	}
	if got := run(t, mine, human(), "git", "log", "-1", "--format=%s %D"); !strings.HasPrefix(got, "c2 HEAD -> mine") {
		t.Errorf("the human's worktree is at %q", got)
	}
	if got := w.host("log", "-1", "--format=%s", "refs/heads/wt"); got != "of the guest" {
		t.Errorf("the branch is at %q", got)
	}
}
