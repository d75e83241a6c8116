package supervise

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn/internal/linux/notify"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// fastCall is a call of a guest whose root is the host's, with one writable place.
func fastCall(t *testing.T, ws string) *call {
	t.Helper()
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(root) })
	s := &supervisor{root: root, names: layout.NewProtector([]string{ws}, nil, nil), git: &gitMounts{ids: map[uint64]bool{}}, knownDirs: map[dirID]knownDir{}, umasks: newUmasks()}
	return &call{Call: &notify.Call{TID: uint32(unix.Gettid())}, s: s, buf: new(buffers)}
}

// fastNames are names that rules know, parts of them, and others.
var fastNames = []string{"a", "b", ".git", ".GIT", "git~1", "HEAD", "objects", "refs", "commondir", "hooks", "config", "info", "worktrees", ".vscode", "tasks.json", ".envrc", ".ENVRC", ".koda", "agents", "x y ", "hidden", `c\HEAD`, ".claude", "settings.json", "ta"}

// TestFastPathAllowsNoMore: what the fast path lets happen, the slow path does too, in
// whatever tree of directories; and it lets plain names pass.
func TestFastPathAllowsNoMore(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fast := 0
	rapid.Check(t, func(r *rapid.T) {
		ws, err := os.MkdirTemp(base, "ws")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(ws)
		c := fastCall(t, ws)
		name := rapid.SampledFrom(fastNames)
		c.s.names.Absent, c.s.names.Targets = []string{ws + "/a/hidden"}, []string{ws + "/b/ta/x"}
		dirs := []string{ws}
		for range rapid.IntRange(1, 8).Draw(r, "entries") {
			at := filepath.Join(rapid.SampledFrom(dirs).Draw(r, "in"), name.Draw(r, "name"))
			if rapid.Bool().Draw(r, "file") {
				_ = os.WriteFile(at, nil, 0o600) // a directory may be there
			} else if os.Mkdir(at, 0o700) == nil {
				dirs = append(dirs, at)
			}
		}
		dir := rapid.SampledFrom(dirs).Draw(r, "dir")
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		d := c.remembered(fd)
		op := rapid.SampledFrom([]layout.Operation{layout.OpOpen, layout.OpMkdir, layout.OpRenameFrom, layout.OpRenameTo, layout.OpLinkFrom, layout.OpLinkTo, layout.OpRemove}).Draw(r, "op")
		isDir := op == layout.OpMkdir || op == layout.OpRemove && rapid.Bool().Draw(r, "a directory")
		n := name.Draw(r, "of")
		p := fastPlace{place{dir: fd, name: n, abs: dir + "/" + n}, d}
		v := c.ruleAt(op, p.place, isDir)
		if d.plain && c.allows(op, &p, isDir) {
			fast++
			if v.ruling != layout.RulingAllow || v.part {
				r.Fatalf("%s: the fast path allows operation %d, which is ruled %+v", p.abs, op, v)
			}
		} else if v.ruling == layout.RulingAllow && !v.part && d.path != "" && d.plain {
			r.Fatalf("%s: operation %d takes the slow path", p.abs, op)
		}
	})
	if fast == 0 {
		t.Error("control: nothing took the fast path")
	}
}

// TestFastPathForgets: what is known of a directory holds for that directory, and not for
// long.
func TestFastPathForgets(t *testing.T) {
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := fastCall(t, ws)
	see := func(dir string) knownDir {
		t.Helper()
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		return c.remembered(fd)
	}
	for _, d := range []string{"a", ".vscode", "bare", "bare/objects", "bare/refs"} {
		if err := os.Mkdir(filepath.Join(ws, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if d := see(ws + "/a"); !d.plain || d.path != ws+"/a" {
		t.Fatalf("%+v; want a plain directory", d)
	}
	if see(ws+"/.vscode").plain || !see(ws+"/bare").plain {
		t.Error("a protected directory is plain, or one that is none is not")
	}
	if err := os.Rename(ws+"/a", ws+"/.vscode/a"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ws+"/bare/HEAD", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for id, d := range c.s.knownDirs {
		d.until = d.until.Add(-knownTime)
		c.s.knownDirs[id] = d
	}
	if d := see(ws + "/.vscode/a"); d.plain {
		t.Errorf("%+v; want one that is protected by now", d)
	}
	if d := see(ws + "/bare"); d.plain {
		t.Errorf("%+v; want one for git", d)
	}
	for range 3 * maxKnown {
		dir, err := os.MkdirTemp(ws, "d")
		if err != nil {
			t.Fatal(err)
		}
		see(dir)
	}
	if n := len(c.s.knownDirs); n > maxKnown {
		t.Errorf("%d directories are remembered", n)
	}
}
