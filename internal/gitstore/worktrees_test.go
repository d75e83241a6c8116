package gitstore

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestWorktreesInTheWorkspace: a guest works in linked worktrees of the host's that
// lie in the workspace, and so does the human.
func TestWorktreesInTheWorkspace(t *testing.T) {
	ws := newHost(t)
	wt := filepath.Join(ws, ".trees/wt")
	run(t, ws, human(), "git", "worktree", "add", "-q", "-b", "wt", wt)
	run(t, ws, human(), "git", "worktree", "add", "-q", "-b", "away", filepath.Join(filepath.Dir(ws), "away"))
	write(t, filepath.Join(ws, ".git/info/exclude"), ".trees\n")
	w := newWorld(t, ws)
	if len(w.store.Units) != 2 {
		t.Fatalf("%d units", len(w.store.Units))
	}
	env := append(w.guestEnv(), "GIT_DIR="+w.store.guest.real(privateName, "worktrees/wt"), "GIT_WORK_TREE="+wt)
	guest := func(args ...string) { t.Helper(); run(t, wt, env, append([]string{"git"}, args...)...) }
	agree := func(subject string) {
		t.Helper()
		w.quiet()
		for _, args := range [][]string{{"log", "-1", "--format=%s %D"}, {"status", "--porcelain"}, {"ls-files", "-s"}} {
			h, g := run(t, wt, human(), append([]string{"git"}, args...)...), run(t, wt, env, append([]string{"git"}, args...)...)
			if h != g && !strings.Contains(h, "refs/bawn") {
				t.Errorf("git %v: the host has\n%s\nthe guest\n%s", args, h, g)
			}
		}
		if got := run(t, wt, human(), "git", "log", "-1", "--format=%s"); got != subject {
			t.Errorf("the worktree is at %q, not %q", got, subject)
		}
		w.agree()
	}
	write(t, filepath.Join(wt, "f"), "in the worktree\n")
	guest("commit", "-qam", "one")
	agree("one")
	guest("commit", "-q", "--amend", "-m", "again")
	agree("again")
	guest("checkout", "-q", "-b", "new")
	write(t, filepath.Join(wt, "n"), "n\n")
	guest("add", "n")
	agree("again")
	guest("commit", "-qm", "on the new branch")
	agree("on the new branch")
	run(t, wt, human(), "git", "commit", "-q", "--amend", "-m", "the human's")
	agree("the human's")
	w.edit("d/g0", "in the main one\n")
	w.guest("commit", "-qam", "main's")
	w.guest("merge", "-q", "-m", "merged", "wt")
	agree("the human's")
	guest("rebase", "-q", "wt")
	agree("the human's")
	guest("stash", "list")
	// A branch of the main worktree's can't be moved from the other, nor one elsewhere.
	guest("update-ref", "refs/heads/away", "HEAD")
	if r := w.sync(); len(r.Kept) != 1 || !strings.Contains(r.Kept[0].Why, "another worktree") {
		t.Errorf("%+v", r)
	}
	w.close()
	if out := run(t, wt, human(), "git", "fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
		t.Errorf("fsck: %s", out)
	}
}

// TestWorktreeRemoved: one that the guest removes stays the human's, and one that the
// human removes is let go.
func TestWorktreeRemoved(t *testing.T) {
	for _, who := range []string{"guest", "human"} {
		ws := newHost(t)
		wt := filepath.Join(ws, "wt")
		run(t, ws, human(), "git", "worktree", "add", "-q", "-b", "wt", wt)
		w := newWorld(t, ws)
		if who == "guest" {
			run(t, ws, human(), "rm", "-rf", w.store.guest.real(privateName, "worktrees/wt"))
		} else {
			w.host("worktree", "remove", "--force", "wt")
		}
		w.guest("commit", "-q", "--allow-empty", "-m", "goes on")
		r := w.sync()
		if r.Published == 0 || len(r.Questions) != map[string]int{"guest": 1}[who] {
			t.Errorf("%s: %+v", who, r)
		}
		if r := w.close(); r.Private != "" {
			t.Errorf("%s: %+v", who, r)
		}
	}
}

// TestForgedWorktrees: only what lies in the workspace and leads back is one.
func TestForgedWorktrees(t *testing.T) {
	ws := newHost(t)
	other := filepath.Join(filepath.Dir(ws), "other")
	run(t, ws, human(), "git", "worktree", "add", "-q", "-b", "good", filepath.Join(ws, "good"))
	for name, at := range map[string]string{"elsewhere": other, "self": ws, "link": filepath.Join(ws, "link"), "alien": filepath.Join(ws, "d")} {
		admin := filepath.Join(ws, ".git/worktrees", name)
		write(t, filepath.Join(admin, "gitdir"), filepath.Join(at, ".git")+"\n")
		write(t, filepath.Join(admin, "HEAD"), "ref: refs/heads/main\n")
		write(t, filepath.Join(admin, "commondir"), "../..\n")
		if name != "self" {
			run(t, ws, human(), "mkdir", "-p", at)
			write(t, filepath.Join(at, ".git"), "gitdir: "+filepath.Join(ws, ".git/worktrees/good")+"\n")
		}
	}
	run(t, ws, human(), "sh", "-c", "rm -r link; mkdir real; ln -s real link; echo gitdir: "+ws+"/.git/worktrees/link >real/.git")
	w := newWorld(t, ws)
	if len(w.store.Units) != 2 || w.store.Units[1].Rel != "worktrees/good" {
		t.Errorf("units: %+v", w.store.Units)
	}
}
