package gitstore

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// What the human does meanwhile reaches the guest.
func TestPull(t *testing.T) {
	w := newWorld(t, newHost(t))
	for _, step := range [][]string{
		{"commit", "-q", "--allow-empty", "-m", "h1"}, {"checkout", "-qb", "theirs"}, {"commit", "-q", "--amend", "--allow-empty", "-m", "h2"}, {"tag", "v9"},
		{"checkout", "-q", "main"}, {"branch", "-D", "side"}, {"update-ref", "refs/remotes/origin/main", "HEAD"}, {"gc", "-q", "--prune=now"}, {"tag", "-d", "v0"},
	} {
		w.host(step...)
		w.quiet()
		w.agree()
	}
	w.edit("f", "human\n")
	w.host("add", "f")
	w.quiet()
	w.agree()
	w.host("stash")
	w.quiet()
	w.agree()
	w.same("stash", "list")
	w.guest("stash", "apply") // what the human has put away
	if r := w.close(); !r.Quiet() {
		t.Errorf("%+v", r)
	}
	w.gone()
}

// Both sides commit to a branch: the human's value stays, the guest's is beside.
func TestLostRace(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.guest("commit", "-q", "--allow-empty", "-m", "of the guest")
	guest := w.guest("rev-parse", "HEAD")
	w.host("commit", "-q", "--allow-empty", "-m", "of the human")
	host := w.host("rev-parse", "HEAD")
	r := w.sync()
	beside := "refs/bawn/" + w.opts.Session + "/heads/main"
	if len(r.Kept) != 1 || r.Kept[0].Beside != beside || r.Kept[0].Ref != "refs/heads/main" {
		t.Fatalf("%+v", r)
	}
	if got := w.host("rev-parse", "main", beside); got != host+"\n"+guest {
		t.Errorf("main and what is beside: %s, want %s and %s", got, host, guest)
	}
	w.same("ls-files", "-s")
	w.guest("merge", "-q", "-m", "joined", host)
	if r := w.sync(); len(r.Kept) != 0 {
		t.Errorf("after the guest has merged: %+v", r)
	}
	w.agree()
	if got := w.host("log", "-1", "--format=%s"); got != "joined" {
		t.Errorf("main is at %q", got)
	}
}

// Both sides stage: different files are joined, and the same one is left alone.
func TestBothStage(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.edit("h", "human\n")
	w.edit("g", "guest\n")
	w.host("add", "h")
	w.guest("add", "g")
	w.quiet()
	w.agree()
	if got := w.host("diff", "--cached", "--name-only"); got != "g\nh" {
		t.Errorf("staged: %q", got)
	}
	w.edit("f", "human\n")
	w.host("add", "f")
	w.edit("f", "guest\n")
	w.edit("d/g1", "guest\n")
	w.guest("add", "f", "d/g1")
	before := w.host("ls-files", "-s", "f")
	if r := w.sync(); len(r.Questions) != 1 || !strings.Contains(r.Questions[0], `"f" was staged on both sides`) {
		t.Errorf("%+v", r)
	}
	if got := w.host("ls-files", "-s", "f"); got != before {
		t.Errorf("the human's: %s, want %s", got, before)
	}
	w.guest("commit", "-qam", "both") // no human's work is lost by it
	w.sync()
	if got := w.host("log", "-1", "--format=%s"); got != "both" {
		t.Errorf("the commit is not there: %q", got)
	}
	if got := w.host("ls-files", "-s", "f"); got != before {
		t.Errorf("the human's after the commit: %s, want %s", got, before)
	}
	if got := w.host("diff", "--cached", "--name-only"); got != "f" { // a commit of the human's takes nothing back
		t.Errorf("staged: %q", got)
	}
	w.host("rm", "-q", "--cached", "d/g0")
	w.sync()
	if got := w.guest("diff", "--cached", "--name-status"); got != "D\td/g0" {
		t.Errorf("the guest has staged %q", got)
	}
	if got := w.host("ls-files", "-s", "f"); got != before {
		t.Errorf("the human's in the end: %s, want %s", got, before)
	}
}

// What the guest deletes of the human's stays; what it has made goes.
func TestDeletedRefs(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.guest("branch", "-D", "side")
	w.guest("tag", "-d", "v0")
	r := w.sync()
	if len(r.Questions) != 2 || !strings.Contains(r.Questions[0], `"refs/heads/side" was deleted`) {
		t.Errorf("%+v", r)
	}
	w.host("rev-parse", "side", "v0")
	if r := w.sync(); len(r.Questions) != 2 {
		t.Errorf("asked again: %+v", r)
	}
}

// rm -rf of all that a session has loses nothing.
func TestRemoveAll(t *testing.T) {
	w := newWorld(t, newHost(t))
	refs, index := w.host("for-each-ref"), w.host("ls-files", "-s")
	objects := w.host("count-objects")
	for _, name := range []string{"refs", "packed-refs", "HEAD", "index", "objects", "logs", "config"} {
		if err := os.RemoveAll(w.private(name)); err != nil {
			t.Fatal(err)
		}
		_, _ = w.store.Sync(t.Context()) // it may well say that it can't be read
		if got := w.host("for-each-ref", "refs/heads", "refs/tags"); got != refs {
			t.Fatalf("without %s: refs are\n%s\nwant\n%s", name, got, refs)
		}
	}
	if got := w.host("ls-files", "-s"); got != index {
		t.Errorf("the index: %s", got)
	}
	_, _ = w.store.Close(t.Context())
	if got := w.host("count-objects"); got != objects && !strings.Contains(got, "objects") {
		t.Errorf("objects: %s, want %s", got, objects)
	}
	if out := w.host("fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
		t.Errorf("fsck: %s", out)
	}
}

// While a rebase is open nothing is published; at the end it is kept beside.
func TestOpenRebase(t *testing.T) {
	w := newWorld(t, newHost(t))
	main := w.host("rev-parse", "main")
	w.guest("checkout", "-qb", "work")
	w.guest("commit", "-q", "--allow-empty", "-m", "w")
	w.stage("100644", "d/.envrc", "touch x\n")
	tree := w.guest("write-tree")
	w.guest("read-tree", "HEAD")
	w.guest("update-ref", "refs/heads/planted", w.guest("commit-tree", "-p", "HEAD", "-m", "p", tree))
	w.guest("stash", "store", "-m", "s", w.guest("commit-tree", "-p", "HEAD", "-p", "planted", "-m", "s", "HEAD^{tree}"))
	if _, err := tryRun(w.ws, w.guestEnv(), "git", "rebase", "-q", "-x", "false", "HEAD~2"); err == nil {
		t.Fatal("the rebase has ended")
	}
	if r := w.sync(); r.Held == "" {
		t.Errorf("%+v", r)
	}
	if got := w.host("for-each-ref", "refs/heads/work"); got != "" {
		t.Errorf("published: %s", got)
	}
	r := w.close()
	if r.Quiet() || r.Private == "" {
		t.Errorf("%+v", r)
	}
	w.host("rev-parse", "refs/bawn/"+w.opts.Session+"/heads/work")
	for _, k := range r.Kept {
		if plant := k.Ref != "refs/heads/work" && k.Ref != "HEAD"; strings.Contains(k.Why, ".envrc") != plant {
			t.Errorf("%q: %q", k.Ref, k.Why)
		}
	}
	if len(r.Kept) != 4 {
		t.Errorf("kept: %+v", r.Kept)
	}
	if got := w.host("rev-parse", "main"); got != main {
		t.Errorf("main moved to %s", got)
	}
	for _, name := range []string{"rebase-merge", "MERGE_HEAD"} {
		if present(filepath.Join(w.ws, ".git", name)) {
			t.Errorf("%s is on the host", name)
		}
	}
}

// The human's gc takes nothing that the session uses.
func TestGarbageCollection(t *testing.T) {
	w := newWorld(t, newHost(t))
	if err := w.store.Pin(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.edit("staged", "only in the index\n")
	w.host("add", "staged")
	w.quiet()
	w.host("rm", "-qf", "--cached", "staged")
	w.host("commit", "-q", "--amend", "-m", "amended")
	w.host("branch", "-D", "side")
	w.host("reflog", "expire", "--expire=now", "--all")
	w.host("gc", "-q", "--prune=now")
	if out := w.guest("fsck", "--no-dangling", "--no-progress", "--no-reflogs"); strings.Contains(out, "missing") || strings.Contains(out, "broken") {
		t.Errorf("the guest's repository: %s", out)
	}
	w.guest("checkout", "-q", "-b", "on") // from what the human has amended
	w.guest("commit", "-q", "--allow-empty", "-m", "on")
	w.sync()
	w.host("rev-parse", "on")
}

// Run publishes by itself, and pulls.
func TestRun(t *testing.T) {
	w := newWorld(t, newHost(t))
	ctx, done := w.run()
	w.guest("commit", "-q", "--allow-empty", "-m", "seen")
	testenv.Until(t, "the commit is on the host", func() bool { return w.host("log", "-1", "--format=%s") == "seen" })
	w.guest("branch", "deep/er/branch")
	testenv.Until(t, "a branch in a new directory", func() bool {
		_, err := tryRun(w.ws, human(), "git", "rev-parse", "deep/er/branch")
		return err == nil
	})
	w.guest("commit", "-q", "--allow-empty", "-m", "of the guest")
	testenv.Until(t, "it follows", func() bool { return w.host("log", "-1", "--format=%s") == "of the guest" })
	testenv.Until(t, "the human commits", func() bool { // a git that is at work has a lock, ours too
		_, err := tryRun(w.ws, human(), "git", "commit", "-q", "--allow-empty", "-m", "of the human")
		return err == nil
	})
	testenv.Until(t, "the human's is seen", func() bool { return w.guest("log", "-1", "--format=%s") == "of the human" })
	w.guest("update-ref", "refs/heads/deep/er/branch", "HEAD")
	testenv.Until(t, "a change deep down", func() bool { return w.host("rev-parse", "deep/er/branch") == w.host("rev-parse", "main") })
	done()
	<-ctx
	if r := w.close(); !r.Quiet() {
		t.Errorf("%+v", r)
	}
	w.gone()
}

// What was made in a new directory before it was looked at is published as well.
func TestNewDirectoryIsLookedAt(t *testing.T) {
	w := newWorld(t, newHost(t))
	look, err := newWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer look.close()
	if !w.store.watch(look) || w.store.watch(look) {
		t.Error("no directory is new at first, or all are again")
	}
	w.guest("branch", "deep/er/branch")
	testenv.Until(t, "the directory is told", func() bool { return len(look.events) > 0 })
	<-look.events
	if w.store.attempt(t.Context(), look, w.store.Pin) != nil || len(look.events) == 0 {
		t.Error("what is in the new directory waits for another change")
	}
}

// A bawn that was killed: the next session's publishes what the guest has done.
func TestRecover(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.guest("commit", "-q", "--allow-empty", "-m", "before")
	w.sync()
	w.edit("f", "last\n")
	w.guest("commit", "-qam", "not published")
	if l, err := w.store.lockIndex(w.store.Units[0]); err != nil { // killed just then
		t.Fatal(err, l)
	}
	write(t, filepath.Join(w.ws, ".git", w.store.newIndex(w.store.Units[0])+".lock"), "") // a git of its own too
	if reports, err := Recover(t.Context(), w.repo, w.opts); err != nil || len(reports) != 0 {
		t.Fatalf("a living session: %+v, %v", reports, err)
	}
	w.store.shut() // what the kernel does for a killed process
	other := *w.repo
	other.Workspace += "x"
	if reports, err := Recover(t.Context(), &other, w.opts); err != nil || len(reports) != 0 {
		t.Fatalf("another repository: %+v, %v", reports, err)
	}
	reports, err := Recover(t.Context(), w.repo, w.opts)
	if err != nil || len(reports) != 1 || !reports[0].Quiet() {
		t.Fatalf("%+v, %v", reports, err)
	}
	if got := w.host("log", "-1", "--format=%s"); got != "not published" {
		t.Errorf("main is at %q", got)
	}
	if got := w.host("status", "--porcelain"); got != "" {
		t.Errorf("status: %s", got)
	}
	w.gone()
}

// A git on the host's directory is not killed where a session ends: it would leave its
// locks there.
func TestEndLetsGitFinish(t *testing.T) {
	w := newWorld(t, newHost(t))
	ctx, cancel := context.WithCancel(t.Context())
	in, feed := io.Pipe()
	lock := filepath.Join(w.ws, ".git/refs/heads/new.lock")
	done := make(chan error, 1)
	u := w.store.Units[0]
	go func() {
		_, err := w.store.git.run(ctx, u, call{args: []string{"update-ref", "--stdin"}, in: in})
		done <- err
	}()
	if _, err := io.WriteString(feed, "start\ncreate refs/heads/new "+w.host("rev-parse", "HEAD")+"\nprepare\n"); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "git has its lock", func() bool { return present(lock) })
	cancel()
	_, _ = io.WriteString(feed, "commit\n") // it errs where git is gone
	feed.Close()
	if err := <-done; err != nil {
		t.Errorf("git: %v", err)
	}
	if present(lock) {
		t.Error("the lock is still there")
	}
	if _, err := w.store.git.run(ctx, u, call{args: []string{"update-ref", "-d", "refs/heads/new"}}); err == nil {
		t.Error("git was started after the end")
	}
	w.host("rev-parse", "refs/heads/new")
}

// What looks for ended sessions has every lock for a moment: nobody else fails for it.
func TestLockTakenForAMoment(t *testing.T) {
	dir := t.TempDir()
	held, err := take(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := take(dir); !errors.Is(err, errAlive) {
		t.Fatalf("taken twice: %v", err)
	}
	time.AfterFunc(5*retryAfter, func() { held.Close() })
	f, err := takeSoon(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// The human's hooks run inside, for the guest's commits.
func TestHooks(t *testing.T) {
	ws := newHost(t)
	write(t, filepath.Join(ws, ".git/hooks/pre-commit"), "#!/bin/sh\nexit 1\n")
	if err := os.Chmod(filepath.Join(ws, ".git/hooks/pre-commit"), 0o755); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, ws)
	if out, err := tryRun(w.ws, w.guestEnv(), "git", "commit", "-q", "--allow-empty", "-m", "x"); err == nil {
		t.Errorf("committed: %s", out)
	}
	w.guest("commit", "-q", "--no-verify", "--allow-empty", "-m", "y") // and the host's do not run for what is published
	w.quiet()
	w.agree()
}

// The project's own hooks run inside too, as far as they are in the workspace.
func TestHooksOfTheProject(t *testing.T) {
	for at, want := range map[string]string{"dev": "dev", "/elsewhere": "", "../elsewhere": ""} {
		ws := newHost(t)
		run(t, ws, human(), "git", "config", "core.hooksPath", at)
		w := newWorld(t, ws)
		if got, _ := tryRun(w.ws, w.guestEnv(), "git", "config", "--local", "core.hooksPath"); got != want {
			t.Errorf("hooks at %q: the guest has %q, want %q", at, got, want)
		}
	}
}

// A lock of another git's is no lock of ours.
func TestRecoverLeavesLocks(t *testing.T) {
	w := newWorld(t, newHost(t))
	lock := filepath.Join(w.ws, ".git/index.lock")
	write(t, lock, "")
	w.store.shut()
	_, _ = Recover(t.Context(), w.repo, w.opts)
	if !present(lock) {
		t.Error("the lock is gone")
	}
}

// What the guest takes back is taken back, though the sync that published it was
// broken off.
func TestTakenBackAfterAnError(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.edit("f", "changed by the guest\n")
	w.edit("mine", "staged by the human\n")
	w.host("add", "mine")
	w.guest("add", "f")
	w.guest("stash", "store", "-m", "s", w.guest("stash", "create"))
	lock := filepath.Join(w.ws, ".git/refs/stash.lock")
	write(t, lock, "")
	if _, err := w.store.Sync(t.Context()); err == nil {
		t.Fatal("the stash is published")
	}
	if got := w.host("diff", "--cached", "--name-only"); got != "f\nmine" {
		t.Fatalf("the human has staged %q", got)
	}
	w.guest("reset", "-q")
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	w.sync()
	if got := w.host("diff", "--cached", "--name-only"); got != "mine" {
		t.Errorf("the human has staged %q", got)
	}
	if got := w.guest("diff", "--cached", "--name-only"); got != "mine" {
		t.Errorf("the guest has staged %q", got)
	}
}

// What the human has staged reaches the guest, though the sync that should have
// brought it was broken off and nothing has changed since.
func TestGivenAfterAnError(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.edit("mine", "staged by the human\n")
	w.host("add", "mine")
	w.edit("f", "changed by the guest\n")
	w.guest("stash", "store", "-m", "s", w.guest("stash", "create"))
	lock := filepath.Join(w.ws, ".git/refs/stash.lock")
	write(t, lock, "")
	if _, err := w.store.Sync(t.Context()); err == nil {
		t.Fatal("the stash is published")
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	w.sync()
	if got := w.guest("diff", "--cached", "--name-only"); got != "mine" {
		t.Errorf("the guest has staged %q", got)
	}
}

// A reader that fails for a while, as on a machine that is busy: nothing is given up.
type failing struct {
	direct
	busy *atomic.Bool
}

func (f failing) Git(ctx context.Context, dir string, in io.Reader, out io.Writer, args ...string) error {
	if args[0] == "pack-objects" && f.busy.Load() {
		return errors.New("the machine is busy")
	}
	return f.direct.Git(ctx, dir, in, out, args...)
}

func TestReaderFailsForAWhile(t *testing.T) {
	for _, forever := range []bool{false, true} {
		w := newWorld(t, newHost(t))
		var busy atomic.Bool
		busy.Store(true)
		w.store.untrusted = func() (Untrusted, error) { return failing{direct{w.store.View()}, &busy}, nil }
		w.edit("f", "x\n")
		w.guest("commit", "-qam", "one")
		w.guest("branch", "other", "HEAD~1")
		if r := w.sync(); len(r.Problems) == 0 {
			t.Fatalf("control: %+v", r)
		}
		busy.Store(forever)
		r := w.close()
		if forever == r.Quiet() || forever != (r.Private != "") {
			t.Errorf("it fails forever, %v: %+v", forever, r)
		}
		if !forever && w.host("log", "-1", "--format=%s") != "one" {
			t.Error("the commit is not published")
		}
	}
}
