package gitstore

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// state is what a human sees of a repository.
func (w *world) humanSees() string {
	w.t.Helper()
	var b strings.Builder
	for _, args := range [][]string{
		{"for-each-ref", "--format=%(refname) %(objectname) %(symref)"},
		{"symbolic-ref", "-q", "HEAD"},
		{"stash", "list", "--format=%H %gs"},
		{"ls-files", "-s", "-t"},
		{"status", "--porcelain=v2", "--branch", "--show-stash"},
	} {
		out, _ := tryRun(w.ws, human(), append([]string{"git"}, args...)...) // a detached HEAD is an error of symbolic-ref
		for line := range strings.Lines(out + "\n") {
			if !strings.Contains(line, "refs/bawn/") {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}

// files keeps the workspace without its git directory, and puts it back.
func (w *world) files() (back func()) {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "ws")
	run(w.t, "/", human(), "cp", "-a", w.ws, dir)
	run(w.t, dir, human(), "rm", "-rf", ".git")
	return func() {
		run(w.t, w.ws, human(), "find", ".", "-mindepth", "1", "-maxdepth", "1", "!", "-name", ".git", "-exec", "rm", "-rf", "{}", "+")
		run(w.t, "/", human(), "cp", "-a", dir+"/.", w.ws)
	}
}

func (w *world) snapshot() json.RawMessage {
	w.t.Helper()
	text, err := Snapshot(w.repo.Common)
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

func (w *world) plan(to, after json.RawMessage) *Restore {
	w.t.Helper()
	r, err := PlanRestore(w.repo.Common, "", to, after)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) apply(r *Restore) {
	w.t.Helper()
	if err := r.Apply(); err != nil {
		w.t.Fatal(err)
	}
	if out, err := tryRun(w.ws, human(), "git", "fsck", "--strict", "--no-dangling", "--no-progress"); err != nil || out != "" {
		w.t.Fatalf("fsck: %s, %v\n%s\n%s\n%+v", out, err, w.host("for-each-ref"), w.host("ls-files", "-s"), r.Changes())
	}
	if list, _ := filepath.Glob(filepath.Join(w.repo.Common, "*bawn*")); len(list) > 0 {
		w.t.Errorf("files are left: %v", list)
	}
}

// work is what sessions do, one after the other.
var work = []struct {
	name string
	do   func(w *world)
}{
	{"commits", func(w *world) { w.edit("f", "a\n"); w.guest("commit", "-qam", "one") }},
	{"stages", func(w *world) { w.edit("new", "n\n"); w.guest("add", "new") }},
	{"unstages", func(w *world) { w.guest("reset", "-q") }},
	{"branches", func(w *world) {
		w.guest("checkout", "-qb", "work/deep")
		w.guest("commit", "-qm", "w", "--allow-empty")
	}},
	{"tags and notes", func(w *world) { w.guest("tag", "-am", "t", "v1"); w.guest("notes", "add", "-m", "n") }},
	{"rewinds", func(w *world) { w.guest("checkout", "-q", "main"); w.guest("reset", "-q", "--hard", "HEAD~2") }},
	{"rebases", func(w *world) {
		w.guest("checkout", "-q", "side")
		w.edit("s", "s\n")
		w.guest("add", "s")
		w.guest("commit", "-qm", "s")
		w.guest("rebase", "-q", "work/deep")
	}},
	{"detaches", func(w *world) { w.guest("checkout", "-q", "--detach", "side~1") }},
	{"stashes", func(w *world) { w.edit("f", "stashed\n"); w.guest("stash") }},
	{"makes a branch where a directory was", func(w *world) { w.guest("branch", "-D", "work/deep"); w.guest("branch", "work") }},
	{"removes files", func(w *world) { w.guest("rm", "-rq", "d"); w.guest("commit", "-qm", "gone") }},
}

func TestRestoreAfterEachWork(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"}[:testenv.Some(2, 1)] {
		t.Run(format, func(t *testing.T) {
			w := newWorld(t, newHost(t, "--object-format="+format))
			w.edit("f", "the human's\n")
			w.host("stash")
			w.edit("staged", "by the human\n")
			w.host("add", "staged")
			w.edit("f", "changed\n")
			w.host("pack-refs", "--all")
			w.quiet()
			before, sees, files := w.snapshot(), w.humanSees(), w.files()
			for _, step := range work {
				step.do(w)
				w.quiet()
				files2, guests := w.files(), w.humanSees()
				here := w.snapshot()
				r := w.plan(before, here)
				if slices.ContainsFunc(r.Changes(), func(c RefChange) bool { return c.Conflict }) {
					t.Fatalf("%s: a conflict: %+v", step.name, r.Changes())
				}
				t.Log(step.name)
				files()
				w.apply(r)
				if got := w.humanSees(); got != sees {
					t.Fatalf("%s: after the undo:\n%s\nwanted:\n%s", step.name, got, sees)
				}
				if list := w.plan(before, nil).Changes(); len(list) > 0 {
					t.Errorf("%s: still to do: %+v", step.name, list)
				}
				// And the undo is undone, from nothing but the snapshot and the pins.
				w.host("gc", "-q", "--prune=now")
				files2()
				w.apply(w.plan(here, nil))
				if got := w.humanSees(); got != guests {
					t.Fatalf("%s: after the second undo:\n%s\nwanted:\n%s", step.name, got, guests)
				}
			}
		})
	}
}

func TestRestoreKeepsTheHumans(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.edit("f", "the human's\n")
	w.host("stash")
	w.quiet()
	before := w.snapshot()
	w.edit("f", "guest\n")
	w.guest("commit", "-qam", "guest's")
	w.guest("branch", "theirs")
	w.guest("branch", "more")
	w.edit("f", "guest's stash\n")
	w.guest("stash")
	w.edit("p", "guest\n")
	w.edit("q", "guest\n")
	w.guest("add", "p", "q")
	w.quiet()
	guests := w.guest("rev-parse", "--short", "main")
	w.close()
	after := w.snapshot()
	// The control: without the human's work nothing is in conflict.
	if list := w.plan(before, after).Changes(); len(list) != 5 || slices.ContainsFunc(list, func(c RefChange) bool { return c.Conflict }) {
		t.Fatalf("without the human's work: %+v", list)
	}
	w.edit("h", "human\n")
	w.host("add", "h")
	w.edit("f", "human's stash\n")
	w.host("stash", "push", "-q", "f")
	w.host("commit", "-qm", "human's on the guest's", "--", "h")
	w.host("checkout", "-q", "theirs")
	w.host("commit", "-q", "--allow-empty", "-m", "human's there")
	mine, theirs := w.host("rev-parse", "main"), w.host("rev-parse", "theirs")
	stash := w.host("rev-parse", "stash@{0}")
	r := w.plan(before, after)
	got := map[string]bool{}
	for _, c := range r.Changes() {
		got[c.Name] = c.Conflict
	}
	if want := map[string]bool{"refs/heads/main": true, "refs/heads/theirs": true, "refs/heads/more": false, "refs/stash": false, "index": true}; !equal(got, want) {
		t.Fatalf("changes: %+v", r.Changes())
	}
	w.apply(r)
	if w.host("rev-parse", "main") != mine || w.host("rev-parse", "theirs") != theirs || w.host("rev-parse", "stash@{0}") != stash {
		t.Error("what the human has made since is gone")
	}
	if out := w.host("stash", "list"); strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, "stash@{0}: WIP on main: "+guests) {
		t.Errorf("stashes: %s", out)
	}
	if out := w.host("ls-files", "h", "p"); out != "p" {
		t.Errorf("the index: %q", out)
	}
	if _, err := tryRun(w.ws, human(), "git", "rev-parse", "--verify", "more"); err == nil {
		t.Error("the branch of the session's is there")
	}
}

func equal(a, b map[string]bool) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

func TestRestoreJoinsTheIndex(t *testing.T) {
	w := newWorld(t, newHost(t))
	before := w.snapshot()
	w.edit("p", "guest\n")
	w.edit("q", "guest\n")
	w.guest("add", "p", "q")
	w.quiet()
	after := w.snapshot()
	w.edit("q", "human\n")
	w.edit("h", "human\n")
	w.host("add", "q", "h")
	w.apply(w.plan(before, after))
	if out := w.host("ls-files", "h", "p", "q"); out != "h\nq" {
		t.Errorf("the index has %q", out)
	}
	if out := w.host("show", ":q"); out != "human" {
		t.Errorf("q is %q", out)
	}
}

func TestRestoreStates(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.close()
	w.host("checkout", "-q", "side")
	w.edit("f", "other\n")
	w.host("commit", "-qam", "other")
	_, _ = tryRun(w.ws, human(), "git", "rebase", "main") // stops at a conflict
	sees, files, before := w.humanSees(), w.files(), w.snapshot()
	if !strings.Contains(sees, "\nu UU ") {
		t.Fatalf("no conflict to restore: %s", sees)
	}
	w.host("rebase", "--abort")
	w.host("tag", "-d", "v0")
	files()
	w.apply(w.plan(before, nil))
	if got := w.humanSees(); got != sees {
		t.Errorf("now\n%s\nbefore\n%s", got, sees)
	}
	w.edit("f", "solved\n")
	w.host("add", "f")
	w.host("rebase", "--continue")
	if list, _ := filepath.Glob(filepath.Join(w.ws, ".git/rebase-*")); len(list) > 0 {
		t.Errorf("still open: %v", list)
	}
}

// TestRestoreWaitsForNobody: what has changed since the comparison, or a git that is
// at work, keeps an undo from writing anything.
func TestRestoreWaitsForNobody(t *testing.T) {
	for name, between := range map[string]func(w *world){
		"a commit": func(w *world) { w.host("commit", "-q", "--allow-empty", "-m", "between") },
		"a lock":   func(w *world) { write(t, filepath.Join(w.ws, ".git/index.lock"), "") },
		"a branch": func(w *world) { w.host("branch", "between") },
		"nothing":  func(*world) {},
	} {
		w := newWorld(t, newHost(t))
		before := w.snapshot()
		w.guest("commit", "-q", "--allow-empty", "-m", "guest's")
		w.guest("branch", "guests")
		w.quiet()
		r := w.plan(before, nil)
		between(w)
		sees := w.humanSees()
		if err := r.Apply(); (err == nil) != (name == "nothing") {
			t.Errorf("%s: %v", name, err)
		}
		if changed := w.humanSees() != sees; changed != (name == "nothing") {
			t.Errorf("%s: changed: %t", name, changed)
		}
	}
}

// TestRestoreWithoutObjects: no ref is moved to what is not there.
func TestRestoreWithoutObjects(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.close()
	w.host("commit", "-q", "--allow-empty", "-m", "to be lost")
	before := w.snapshot()
	w.host("reset", "-q", "--hard", "HEAD~1")
	if c := w.plan(before, nil).Changes(); len(c) != 1 || c[0].Conflict {
		t.Fatalf("control: %+v", c)
	}
	w.host("reflog", "expire", "--expire=now", "--all")
	w.host("gc", "-q", "--prune=now")
	r := w.plan(before, nil)
	if c := r.Changes(); len(c) != 1 || !c[0].Conflict || !strings.Contains(c[0].Why, "gone") {
		t.Fatalf("changes: %+v", c)
	}
	w.apply(r)
}

func TestRestoreSubmodules(t *testing.T) {
	from, ws := newHost(t), newHost(t)
	run(t, ws, human(), "git", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "sub")
	w := newWorld(t, ws)
	sub := filepath.Join(w.ws, "sub")
	before := w.snapshot()
	old := run(t, sub, human(), "git", "rev-parse", "HEAD")
	w.close()
	run(t, sub, human(), "git", "commit", "-q", "--allow-empty", "-m", "in the submodule")
	r := w.plan(before, nil)
	if c := r.Changes(); len(c) != 1 || !strings.HasPrefix(c[0].Name, "modules/") {
		t.Fatalf("changes: %+v", c)
	}
	w.apply(r)
	if now := run(t, sub, human(), "git", "rev-parse", "HEAD"); now != old {
		t.Errorf("the submodule is at %s, not at %s", now, old)
	}
}

// TestRestoreRunsNothing: an undo reads and writes in a repository whose configuration,
// hooks and attributes all name a program.
func TestRestoreRunsNothing(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.close()
	mark := filepath.Join(t.TempDir(), "ran")
	prog := filepath.Join(t.TempDir(), "prog")
	write(t, prog, "#!/bin/sh\ntouch "+mark+"\ncat\n")
	if err := os.Chmod(prog, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"core.fsmonitor", "core.pager", "core.editor", "filter.x.clean", "filter.x.smudge", "gpg.program", "core.sshCommand", "core.alternateRefsCommand", "diff.external"} {
		w.host("config", key, prog)
	}
	before := w.snapshot()
	w.host("-c", "core.fsmonitor=false", "-c", "core.editor=true", "commit", "-q", "--allow-empty", "-m", "c")
	for _, hook := range []string{"reference-transaction", "post-index-change", "post-checkout", "post-commit"} {
		run(t, w.ws, human(), "cp", prog, filepath.Join(w.ws, ".git/hooks", hook))
	}
	write(t, filepath.Join(w.ws, ".gitattributes"), "* filter=x\n")
	r := w.plan(before, nil)
	if err := r.Apply(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(mark); err == nil {
		t.Error("a program of the repository's ran")
	}
	w.host("update-ref", "refs/heads/x", "HEAD")
	if _, err := os.Lstat(mark); err != nil {
		t.Error("control: the hook does not run")
	}
}

func TestSnapshotRefuses(t *testing.T) {
	w := newWorld(t, newHost(t))
	git := w.repo.Common
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(git, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Snapshot(link); err == nil {
		t.Error("a link is followed")
	}
	good := string(w.snapshot())
	for from, to := range map[string]string{
		`"dir":"."`:          `"dir":"../x"`,
		`"rel":"."`:          `"rel":"worktrees/.."`,
		`"refs/heads/main"`:  `"refs/bawn/x/pin"`,
		`"refs/heads/side"`:  `"--stdin"`,
		`refs/heads/main",`:  `HEAD",`,
		`"index":{"index"`:   `"index":{"config"`,
		`"size":40`:          `"size":41`,
		`{"units"`:           `{"x":1,"units"`,
		`"refs":{`:           `"state":{"../config":""},"refs":{`,
		`,"refs":{`:          `,"state":{"rebase-merge/../config":""},"refs":{`,
		`"head":"ref: refs/`: `"head":"ref: /`,
	} {
		text := strings.Replace(good, from, to, 1)
		if text == good {
			t.Fatalf("%s is not there: %s", from, good)
		}
		if _, err := PlanRestore(git, "", json.RawMessage(text), nil); err == nil {
			t.Errorf("%s was accepted", to)
		}
	}
	if _, err := PlanRestore(git, "", json.RawMessage(good), nil); err != nil {
		t.Errorf("control: %v", err)
	}
}

func FuzzSnapshot(f *testing.F) {
	f.Add([]byte(`{"units":[{"dir":".","rel":".","size":40,"head":"ref: refs/heads/main","refs":{"refs/heads/main":"` + strings.Repeat("ab", 20) + `"},"index":{"index":"AAD//w=="},"state":{"MERGE_HEAD":"AAD//w==","rebase-merge/done":"AAD//w=="}}],"uncovered":["x"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		sn, err := readSnapshot(text)
		if err != nil {
			return
		}
		for _, u := range sn.Units {
			for _, list := range []map[string]content{u.Index, u.State} {
				for name := range list {
					if at := filepath.Join(u.Dir, u.Rel, name); !filepath.IsLocal(at) || slices.Contains([]string{"config", "HEAD", "hooks", "info", "objects"}, strings.Split(name, "/")[0]) {
						t.Errorf("it writes %q", at)
					}
				}
			}
			for name := range u.Refs {
				if !formatOK(name) || !strings.HasPrefix(name, "refs/") || strings.HasPrefix(name, ownRefs) {
					t.Errorf("ref %q", name)
				}
			}
		}
		again, err := json.Marshal(sn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readSnapshot(again); err != nil {
			t.Errorf("what was read is not read again: %v", err)
		}
	})
}

// TestUndoAfterGC: what a session has thrown away of the human's is there after the
// session and the human's gc, and nothing is kept of one that has lost nothing.
func TestUndoAfterGC(t *testing.T) {
	for name, do := range map[string]func(w *world){
		"a staged file is unstaged": func(w *world) { w.guest("reset", "-q") },
		"a commit is rewound":       func(w *world) { w.guest("reset", "-q", "--soft", "HEAD~1") },
		"a staged file is changed":  func(w *world) { w.edit("staged", "guest's\n"); w.guest("add", "staged") },
		"nothing is lost":           func(w *world) { w.guest("commit", "-qm", "guest's") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newHost(t))
			w.host("tag", "-d", "v0")
			w.edit("staged", "human's\n")
			w.host("add", "staged")
			w.quiet()
			before, sees, files := w.snapshot(), w.humanSees(), w.files()
			do(w)
			w.close()
			kept := w.host("for-each-ref", "refs/bawn")
			if (kept == "") != (name == "nothing is lost") {
				t.Errorf("kept: %q", kept)
			}
			w.host("reflog", "expire", "--expire=now", "--all")
			w.host("gc", "-q", "--prune=now")
			files()
			w.apply(w.plan(before, nil))
			if got := w.humanSees(); got != sees {
				t.Errorf("now\n%s\nbefore\n%s", got, sees)
			}
		})
	}
}

func TestRestoreWorktree(t *testing.T) {
	ws := newHost(t)
	wt := filepath.Join(ws, "wt")
	run(t, ws, human(), "git", "worktree", "add", "-q", "-b", "wt", wt)
	w := newWorld(t, ws)
	sees := func() string {
		return run(t, wt, human(), "git", "log", "-1", "--format=%H %D") + run(t, wt, human(), "git", "ls-files", "-s")
	}
	before, saw := w.snapshot(), sees()
	env := append(w.guestEnv(), "GIT_DIR="+w.store.guest.real(privateName, "worktrees/wt"), "GIT_WORK_TREE="+wt)
	write(t, filepath.Join(wt, "f"), "guest's\n")
	for _, args := range [][]string{{"commit", "-qam", "in the worktree"}, {"checkout", "-q", "-b", "more"}, {"rm", "-q", "--cached", "f"}} {
		run(t, wt, env, append([]string{"git"}, args...)...)
		w.quiet()
	}
	after := w.snapshot()
	if sees() == saw {
		t.Fatal("nothing is published")
	}
	r := w.plan(before, after)
	if slices.ContainsFunc(r.Changes(), func(c RefChange) bool { return c.Conflict }) {
		t.Fatalf("%+v", r.Changes())
	}
	w.apply(r)
	if got := sees(); got != saw {
		t.Errorf("now\n%s\nbefore\n%s", got, saw)
	}
	w.apply(w.plan(after, nil))
	w.apply(w.plan(before, nil))
	if got := sees(); got != saw {
		t.Errorf("the second time\n%s\nbefore\n%s", got, saw)
	}
}
