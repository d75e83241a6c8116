package gitstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/sealed"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// seal shuts the seal again, which a world has open for its gits.
func (w *world) seal() {
	w.t.Helper()
	testenv.Need(w.t, "userns")
	dir := filepath.Join(w.store.dir, guestName)
	if err := os.Chmod(dir, 0); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { // which no t.TempDir can
		if err := sealed.Remove(dir); err != nil {
			w.t.Error(err)
		}
	})
	if _, err := os.Stat(sealed.Inside(dir)); os.Geteuid() != 0 && !errors.Is(err, fs.ErrPermission) {
		w.t.Errorf("behind the seal: %v, want it refused", err)
	}
}

// A session's directories are sealed from the start.
func TestPrepareSeals(t *testing.T) {
	ws := newHost(t)
	repo, err := Find(ws)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, ws: ws, state: t.TempDir(), repo: repo}
	w.opts = Options{State: w.state, Session: "s1234567890", Path: os.Getenv("PATH"), Untrusted: startDirect}
	if w.store, err = Prepare(repo, w.opts); err != nil {
		t.Fatal(err)
	}
	seal := filepath.Join(Place(w.state, w.opts.Session), guestName)
	if fi, err := os.Lstat(seal); err != nil || fi.Mode().Perm() != 0 {
		t.Errorf("the seal: %v, %v", fi, err)
	}
	for _, p := range []string{w.store.Dirs()[0].Private, w.store.MadePool(), w.store.View().Private} {
		if !strings.HasPrefix(p, sealed.Inside(seal)+"/") {
			t.Errorf("%q lies before the seal", p)
		}
		if _, err := os.Stat(p); os.Geteuid() != 0 && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("stat %q: %v, want it refused", p, err)
		}
	}
	w.quiet()
	w.close()
	w.gone()
}

// Everything that comes after a killed bawn, and after a session that has left
// something, passes the seal.
func TestSealedIsReached(t *testing.T) {
	w := newConfined(t, newHost(t))
	w.edit("f", "last\n")
	w.guest("commit", "-qam", "not published")
	at := filepath.Join(w.ws, "made/.git")
	run(t, filepath.Dir(w.make(at)), human(), "git", "init", "-q", "--bare", "git")
	w.store.shut()
	w.seal()
	reports, err := Recover(t.Context(), w.repo, w.opts)
	if err != nil || len(reports) != 1 || len(reports[0].Made) != 1 {
		t.Fatalf("%+v, %v", reports, err)
	}
	if got := w.host("log", "-1", "--format=%s"); got != "not published" {
		t.Errorf("main is at %q", got)
	}
	if got := Again(w.state, w.ws); len(got) != 1 || got[0].Path != at {
		t.Errorf("the next session sees %+v", got)
	}
	list, err := List(w.state)
	if err != nil || len(list) != 1 || len(list[0].Made) != 1 || list[0].Made[0].Path != at {
		t.Errorf("listed: %+v, %v", list, err)
	}
	if err := Discard(w.state, w.opts.Session, at); err != nil {
		t.Error(err)
	}
	w.gone()
}

// A bawn that was killed while it removed what it had published: nothing is taken
// for deleted by the guest.
func TestInterruptedRemoval(t *testing.T) {
	for _, inOneStep := range []bool{true, false} {
		w := newWorld(t, newHost(t))
		w.guest("branch", "work")
		w.quiet()
		private := w.private(".")
		if inOneStep {
			if err := os.Rename(private, w.store.guest.real(endedName)); err != nil {
				t.Fatal(err)
			}
			private = w.store.guest.real(endedName)
		}
		if err := os.Remove(filepath.Join(private, "refs/heads/work")); err != nil {
			t.Fatal(err)
		}
		w.store.shut()
		if _, err := Recover(t.Context(), w.repo, w.opts); err != nil {
			t.Fatal(err)
		}
		if _, err := tryRun(w.ws, human(), "git", "rev-parse", "-q", "--verify", "work"); (err == nil) != inOneStep {
			t.Errorf("in one step %v: the branch: %v", inOneStep, err)
		}
		if present(w.store.dir) {
			t.Errorf("in one step %v: the place is left", inOneStep)
		}
	}
}

// A submodule's directory that the guest has replaced by a link leads Recover to no
// other repository.
func TestRecoverFollowsNoLink(t *testing.T) {
	from, ws := newHost(t), newHost(t)
	other := newHost(t)
	run(t, ws, human(), "git", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "sub")
	run(t, ws, human(), "git", "commit", "-qm", "with a submodule")
	w := newWorld(t, ws)
	module := w.private("modules/sub")
	if err := errors.Join(os.RemoveAll(module), os.Symlink(filepath.Join(other, ".git"), module)); err != nil {
		t.Fatal(err)
	}
	run(t, filepath.Join(ws, "sub"), human(), "git", "branch", "news") // for the guest
	before := tree(t, filepath.Join(other, ".git"))
	w.store.shut()
	_, _ = Recover(t.Context(), w.repo, w.opts)
	if got := tree(t, filepath.Join(other, ".git")); got != before {
		t.Errorf("the other repository has\n%s\nwant\n%s", got, before)
	}
}
