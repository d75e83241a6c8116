package gitstore

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// A .git file in a worktree or submodule that the guest has added goes with what it
// leads to; git on the host would refuse an empty one.
func TestDropLinks(t *testing.T) {
	for target, gone := range map[string]bool{"../.git/modules/sub": true, "../other/.git/modules/sub": false, "": false} {
		w := newWorld(t, newHost(t))
		at := filepath.Join(w.ws, "sub/.git")
		write(t, at, "")
		private := w.note(at)
		if target != "" {
			target = "gitdir: " + target + "\n"
		}
		write(t, private, target)
		r := w.close()
		if present(at) == gone || len(r.Questions) > 0 != gone || len(r.Made) > 0 == gone {
			t.Errorf("%q: there: %v, want %v; %+v", target, present(at), !gone, r)
		}
		if gone {
			w.gone()
		}
	}
}

// make does what a provider does when a guest makes a .git.
func (w *world) make(at string) (private string) {
	w.t.Helper()
	if err := os.MkdirAll(at, 0o755); err != nil {
		w.t.Fatal(err)
	}
	private = w.note(at)
	if err := os.Mkdir(private, 0o755); err != nil {
		w.t.Fatal(err)
	}
	return private
}

// note makes a pool's entry of what the guest has made.
func (w *world) note(at string) (private string) {
	w.t.Helper()
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, at, 0, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		w.t.Fatal(err)
	}
	note, err := json.Marshal(sandbox.PoolEntry{Path: at, Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino, BornSec: st.Btime.Sec, BornNsec: int64(st.Btime.Nsec)})
	if err != nil {
		w.t.Fatal(err)
	}
	list, err := os.ReadDir(w.store.MadePool())
	if err != nil {
		w.t.Fatal(err)
	}
	entry := filepath.Join(w.store.MadePool(), fmt.Sprint("E", len(list)))
	write(w.t, filepath.Join(entry, sandbox.PoolNote), string(note))
	return filepath.Join(entry, sandbox.PoolGit)
}

// A repository that a guest has made becomes the human's with what is in it, and
// without what would run.
func TestKeep(t *testing.T) {
	w := newWorld(t, newHost(t))
	at := filepath.Join(w.ws, "made/.git")
	private := w.make(at)
	guest := func(args ...string) string {
		return run(t, filepath.Dir(at), append(human(), "GIT_DIR="+private, "GIT_WORK_TREE="+filepath.Dir(at)), append([]string{"git"}, args...)...)
	}
	guest("init", "-q", "-b", "trunk")
	write(t, filepath.Join(filepath.Dir(at), "x"), "x\n")
	guest("add", ".")
	guest("commit", "-qm", "made inside")
	guest("tag", "v1")
	guest("remote", "add", "origin", "https://u:secret@example.org/x")
	guest("config", "core.fsmonitor", "touch "+w.ws+"/owned")
	guest("config", "remote.origin.uploadpack", "evil")
	write(t, filepath.Join(private, "hooks/post-commit"), "#!/bin/sh\n")
	r := w.close()
	if len(r.Made) != 1 || r.Made[0] != at {
		t.Fatalf("%+v", r)
	}
	if got := Again(w.state, w.ws); len(got) != 1 || got[0].Path != at {
		t.Errorf("the next session sees %+v", got)
	}
	if r, err := Keep(t.Context(), w.opts, filepath.Dir(at)); err != nil || !r.Quiet() {
		t.Fatalf("%+v, %v", r, err)
	}
	host := func(args ...string) string {
		return run(t, filepath.Dir(at), human(), append([]string{"git"}, args...)...)
	}
	if got := host("log", "--format=%s %D") + host("status", "--porcelain"); got != "made inside HEAD -> trunk, tag: v1" {
		t.Errorf("log and status: %q", got)
	}
	text, _ := os.ReadFile(filepath.Join(at, "config"))
	if s := string(text); strings.Contains(s, "secret") || strings.Contains(s, "fsmonitor") || strings.Contains(s, "evil") || !strings.Contains(s, "https://example.org/x") {
		t.Errorf("config: %s", s)
	}
	if present(filepath.Join(at, "hooks")) || present(filepath.Join(w.ws, "owned")) {
		t.Error("hooks, or what ran")
	}
	if present(w.store.dir) {
		t.Error("the place is left")
	}
}
