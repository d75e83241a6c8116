package gitstore

import (
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestSharedRepository: what is published and restored in a repository of several
// users has the modes that git gives it.
func TestSharedRepository(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	for _, shared := range []string{"group", "0664", "false"} {
		ws := newHost(t, "--shared="+shared)
		w := newWorld(t, ws)
		before := w.snapshot()
		w.edit("new", "n\n")
		w.guest("add", "new")
		w.quiet()
		w.guest("commit", "-qm", "c")
		w.guest("branch", "deep/er")
		w.quiet()
		w.edit("staged", "n\n")
		w.guest("add", "staged")
		w.edit("f", "stash\n")
		w.guest("stash")
		w.quiet()
		w.modes(shared)
		w.apply(w.plan(before, nil))
		w.modes(shared)
	}
}

// modes compares the modes of a git directory with those that git gives.
func (w *world) modes(shared string) {
	w.t.Helper()
	want := map[string]fs.FileMode{"group": 0o060, "0664": 0o064, "false": 0}[shared]
	err := filepath.WalkDir(w.repo.Common, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(w.repo.Common, p)
		top, _, _ := strings.Cut(rel, "/")
		if top != "objects" && top != "refs" && top != "index" && top != "HEAD" && top != "logs" && top != "packed-refs" {
			return nil
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		mask := fs.FileMode(0o077)
		if top == "objects" && !d.IsDir() || d.IsDir() {
			mask = 0o044 // objects are read-only, and directories can be entered
		}
		if got := fi.Mode().Perm() & mask; got != want&mask {
			w.t.Errorf("--shared=%s: %s has mode %v", shared, rel, fi.Mode())
		}
		return nil
	})
	if err != nil {
		w.t.Error(err)
	}
}

// TestHostsGC: whatever the human's gc, repack and prune remove during a session,
// neither side loses an object that it uses.
func TestHostsGC(t *testing.T) {
	for _, gc := range [][]string{{"gc", "-q", "--prune=now"}, {"repack", "-qad"}, {"prune", "--expire=now"}, {"gc", "-q", "--aggressive", "--prune=now"}} {
		t.Run(gc[0], func(t *testing.T) {
			w := newWorld(t, newHost(t))
			w.host("checkout", "-q", "-b", "doomed")
			w.edit("d/doomed", "only there\n")
			w.host("add", "d/doomed")
			w.host("commit", "-qm", "doomed")
			w.edit("staged", "by the human\n")
			w.host("add", "staged")
			w.quiet()
			if err := w.store.Pin(t.Context()); err != nil {
				t.Fatal(err)
			}
			// The human throws away what the session has.
			w.host("reset", "-q")
			w.host("checkout", "-q", "main")
			w.host("branch", "-D", "doomed")
			w.host("reflog", "expire", "--expire=now", "--all")
			w.host(gc...)
			w.guest("fsck", "--strict", "--no-dangling", "--no-progress")
			w.edit("g", "g\n")
			w.guest("add", "g")
			w.guest("commit", "-qm", "guest's")
			if r, err := w.store.Sync(t.Context()); err != nil {
				t.Fatalf("%v, %+v", err, r)
			}
			w.host("reflog", "expire", "--expire=now", "--all")
			w.host(gc...)
			w.guest("commit", "-q", "--amend", "-m", "again")
			w.guest("gc", "-q", "--prune=now")
			w.host(gc...)
			w.edit("g", "h\n")
			w.guest("commit", "-qam", "more")
			if r, err := w.store.Sync(t.Context()); err != nil {
				t.Fatalf("%v, %+v", err, r)
			}
			for _, fsck := range []string{w.host("fsck", "--strict", "--no-dangling", "--no-progress"), w.guest("fsck", "--strict", "--no-dangling", "--no-progress")} {
				if fsck != "" {
					t.Errorf("fsck: %s", fsck)
				}
			}
			w.close()
			w.host(gc...)
			if out, err := tryRun(w.ws, human(), "git", "fsck", "--strict", "--no-dangling", "--no-progress"); err != nil || out != "" {
				t.Errorf("fsck in the end: %s, %v", out, err)
			}
		})
	}
}

// TestNoLitter: a session that has done nothing leaves no object.
func TestNoLitter(t *testing.T) {
	w := newWorld(t, newHost(t))
	objects := w.host("count-objects")
	if err := w.store.Pin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.host("count-objects") == objects {
		t.Fatal("control: no pin")
	}
	w.host("commit", "-q", "--allow-empty", "-m", "the human's") // which the session pins too
	w.quiet()
	w.close()
	if out := w.host("fsck", "--no-progress"); out != "" {
		t.Errorf("fsck: %s", out)
	}
}
