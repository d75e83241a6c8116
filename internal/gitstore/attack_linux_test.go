package gitstore

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// newConfined is newWorld with the sandbox in which the private directory is read
// in earnest.
func newConfined(t *testing.T, ws string) *world {
	t.Helper()
	testenv.Need(t, "userns", "notify", "git")
	w := &world{t: t, ws: ws, state: t.TempDir()}
	w.opts = Options{State: w.state, Session: "s1234567890", Path: os.Getenv("PATH"), Untrusted: Confined(native.New(""))}
	w.begin()
	t.Cleanup(func() {
		if w.store.confined != nil {
			w.store.confined.Close()
		}
	})
	return w
}

func TestConfined(t *testing.T) {
	w := newConfined(t, newHost(t))
	w.edit("f", "a\n")
	w.guest("commit", "-qam", "one")
	w.guest("checkout", "-qb", "work")
	w.edit("new", "n\n")
	w.guest("add", "new")
	w.quiet()
	w.agree()
	if r := w.close(); !r.Quiet() {
		t.Errorf("%+v", r)
	}
	w.gone()
}

// A confined git can't be made to run, read or write anything: each try succeeds
// where the same git is not confined.
func TestConfinement(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	mark := filepath.Join(t.TempDir(), "mark")
	write(t, secret, "canary")
	attacks := map[string]struct {
		plant func(w *world)
		args  []string
		hit   func(out string) bool
	}{
		"a configured pager's program writes a file": {
			func(w *world) {
				w.plant("config", "[core]\n\trepositoryformatversion = 0\n[filter \"x\"]\n\tclean = \"echo >"+mark+"\"\n[alias]\n\tx = \"!echo owned >"+mark+"\"\n")
			},
			[]string{"x"}, func(string) bool { return present(mark) },
		},
		"an included file is read": {
			func(w *world) {
				w.plant("config", "[core]\n\trepositoryformatversion = 0\n[alias]\n\tx = \"!cat "+secret+"\"\n")
			},
			[]string{"x"}, func(out string) bool { return strings.Contains(out, "canary") },
		},
		"the private directory is written": {
			func(w *world) {
				w.plant("config", "[core]\n\trepositoryformatversion = 0\n[alias]\n\tx = \"!echo >$GIT_DIR/mark\"\n")
			},
			[]string{"x"}, func(string) bool { return false },
		},
		"the network": {
			func(w *world) {
				w.plant("config", "[core]\n\trepositoryformatversion = 0\n[alias]\n\tx = \"!cat /proc/net/dev\"\n")
			},
			[]string{"x"}, func(out string) bool { return strings.Count(out, ":") > 1 },
		},
	}
	for name, a := range attacks {
		t.Run(name, func(t *testing.T) {
			for _, confined := range []bool{false, true} {
				os.Remove(mark)
				w := newWorld(t, newHost(t))
				if confined {
					w = newConfined(t, w.ws)
				}
				a.plant(w)
				u, err := w.store.untrusted()
				if err != nil {
					t.Fatal(err)
				}
				defer u.Close()
				var out bytes.Buffer
				err = u.Git(t.Context(), ".", nil, &out, a.args...)
				hit := a.hit(out.String()) || present(w.private("mark"))
				if hit == confined {
					t.Errorf("confined %v: hit %v: %q, %v", confined, hit, &out, err)
				}
			}
		})
	}
}

// An alternates file that names another repository of the human's gets nothing out
// of it.
func TestHostileAlternates(t *testing.T) {
	other := newHost(t)
	write(t, filepath.Join(other, "secret"), "canary\n")
	run(t, other, human(), "git", "add", "secret")
	run(t, other, human(), "git", "commit", "-qm", "secret")
	id := run(t, other, human(), "git", "rev-parse", "HEAD")
	for _, confined := range []bool{false, true} {
		w := newWorld(t, newHost(t))
		if confined {
			w = newConfined(t, w.ws)
		}
		w.plant("objects/info/alternates", "/run/bawn/git/0/objects\n"+filepath.Join(other, ".git/objects")+"\n")
		w.plant("refs/heads/stolen", id+"\n")
		r, err := w.store.Sync(t.Context())
		_, stolen := tryRun(w.ws, human(), "git", "cat-file", "-e", id)
		if got := stolen == nil; got == confined {
			t.Errorf("confined %v: the other's commit is here: %v (%+v, %v)", confined, got, r, err)
		}
	}
}

// badIndex is an index with one entry.
func badIndex(mode uint32, id, path string) []byte {
	raw, _ := hex.DecodeString(id)
	var e bytes.Buffer
	for range 6 {
		e.Write(make([]byte, 4))
	}
	binary.Write(&e, binary.BigEndian, []uint32{mode, 0, 0, 0})
	e.Write(raw)
	binary.Write(&e, binary.BigEndian, uint16(len(path)))
	e.WriteString(path)
	e.Write(make([]byte, 8-e.Len()%8))
	var b bytes.Buffer
	b.WriteString("DIRC")
	binary.Write(&b, binary.BigEndian, []uint32{2, 1})
	b.Write(e.Bytes())
	sum := sha1.Sum(b.Bytes())
	b.Write(sum[:])
	return b.Bytes()
}

// An index that would write outside of the work tree does not reach the host.
func TestHostileIndex(t *testing.T) {
	for _, p := range []string{".git/hooks/post-checkout", "../out", "a/../../out", ".GIT/x", "sub/.git/config", "git~1/x", ".g\u200cit/x", "/abs"} {
		w := newWorld(t, newHost(t))
		before := w.host("ls-files", "-s")
		id := w.host("rev-parse", "HEAD:f")
		if err := os.WriteFile(w.private("index"), badIndex(0o100755, id, p), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := w.store.Sync(t.Context())
		if got := w.host("ls-files", "-s"); got != before {
			t.Errorf("%q: the index is %s", p, got)
		}
		if err == nil && r.Quiet() && p != "/abs" {
			t.Errorf("%q: nobody is told: %+v", p, r)
		}
		// The control: git itself reads such an index.
		if err := os.WriteFile(filepath.Join(w.ws, ".git/index"), badIndex(0o100755, id, p), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := tryRun(w.ws, human(), "git", "ls-files"); err != nil || out == "" {
			t.Logf("control: %q: %s, %v", p, out, err)
		}
	}
}

// What hides edits from the human's git status stays inside.
func TestAssumeUnchanged(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.guest("update-index", "--assume-unchanged", "f")
	w.guest("update-index", "--skip-worktree", "d/g0")
	w.edit("f", "hidden\n")
	w.edit("d/g0", "hidden\n")
	if out := w.guest("status", "--porcelain"); out != "" {
		t.Fatalf("control: %s", out)
	}
	w.sync()
	if out := w.host("status", "--porcelain"); !strings.Contains(out, "f") || !strings.Contains(out, "d/g0") {
		t.Errorf("status: %q", out)
	}
}

// Objects that are not what they are called, and trees that git must not write.
func TestHostileObjects(t *testing.T) {
	tree := func(w *world, name, kind, mode string) string {
		id := w.pipe("x\n", "hash-object", "-w", "--stdin")
		if kind == "tree" {
			id = w.pipe("100644 blob "+id+"\tx\n", "mktree")
		}
		raw, _ := hex.DecodeString(id)
		return w.pipe(mode+" "+name+"\x00"+string(raw), "hash-object", "-w", "-t", "tree", "--literally", "--stdin")
	}
	for name, plant := range map[string]func(w *world) string{
		"a .git directory": func(w *world) string { return tree(w, ".git", "tree", "40000") },
		"a .GIT file":      func(w *world) string { return tree(w, ".GIT", "blob", "100644") },
		"dots":             func(w *world) string { return tree(w, "..", "tree", "40000") },
		"a slash":          func(w *world) string { return tree(w, "a/b", "blob", "100644") },
		"a .gitmodules that runs a program": func(w *world) string {
			id := w.pipe("[submodule \"x\"]\n\tpath = x\n\turl = --upload-pack=touch\n", "hash-object", "-w", "--stdin")
			return w.pipe("100644 blob "+id+"\t.gitmodules\n", "mktree")
		},
		"a .gitmodules that is a link": func(w *world) string {
			id := w.pipe("../x", "hash-object", "-w", "--stdin")
			return w.pipe("120000 blob "+id+"\t.gitmodules\n", "mktree")
		},
		"a blob by another's name": func(w *world) string {
			good, evil := w.pipe("good new\n", "hash-object", "-w", "--stdin"), w.pipe("evil\n", "hash-object", "-w", "--stdin")
			text, err := os.ReadFile(w.private("objects/" + evil[:2] + "/" + evil[2:]))
			if err != nil {
				w.t.Fatal(err)
			}
			os.Remove(w.private("objects/" + good[:2] + "/" + good[2:]))
			w.plant("objects/"+good[:2]+"/"+good[2:], string(text))
			id, err := w.tryPipe("100644 blob "+good+"\tf\n", "mktree", "--missing")
			if err != nil {
				w.t.Fatal(err)
			}
			return id
		},
		"a blob that is missing": func(w *world) string {
			id, err := w.tryPipe("100644 blob "+strings.Repeat("ab", 20)+"\tf\n", "mktree", "--missing")
			if err != nil {
				w.t.Fatal(err)
			}
			return id
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newHost(t))
			main := w.host("rev-parse", "main")
			commit := w.guest("commit-tree", "-p", "HEAD", "-m", "evil", plant(w))
			w.plant("refs/heads/evil", commit+"\n")
			w.guest("update-ref", "refs/heads/fine", w.guest("commit-tree", "-p", "HEAD", "-m", "fine", "HEAD^{tree}"))
			r, err := w.store.Sync(t.Context())
			if out := w.host("for-each-ref", "--contains", main, "--format=%(refname)", "refs/heads", "refs/bawn/*/heads"); strings.Contains(out, "evil") {
				t.Errorf("it is on the host: %s", out)
			}
			if len(r.Problems) == 0 || err != nil {
				t.Errorf("nobody is told: %+v, %v", r, err)
			}
			if _, err := tryRun(w.ws, human(), "git", "rev-parse", "-q", "--verify", "refs/heads/fine"); err != nil {
				t.Errorf("what is well is not published: %+v", r)
			}
			w.host("prune", "--expire=now") // git unpacks blobs before it has seen what leads to them
			if out := w.host("fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
				t.Errorf("fsck: %s", out)
			}
		})
	}
}

func (w *world) pipe(in string, args ...string) string {
	w.t.Helper()
	out, err := w.tryPipe(in, args...)
	if err != nil {
		w.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return out
}

// tryPipe runs git as the guest on some input.
func (w *world) tryPipe(in string, args ...string) (string, error) {
	f := filepath.Join(w.t.TempDir(), "in")
	write(w.t, f, in)
	return tryRun(w.ws, w.guestEnv(), append([]string{"sh", "-c", `f=$1; shift; git "$@" <"$f"`, "x", f}, args...)...)
}

// Links, FIFOs and huge files in the place of git's own: no sync follows, waits or
// fills the memory, and the host stays as it is.
func TestSpecialFiles(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "victim"), "victim\n")
	for i, name := range []string{"HEAD", "index", "packed-refs", "refs/heads", "refs/heads/x", "refs", "logs/HEAD", "logs/refs/stash", "objects", "objects/info/alternates", "config", "shallow", "index.lock", "refs/heads/main"} {
		kinds := map[string]func(p string) error{
			"link":       func(p string) error { return os.Symlink(filepath.Join(outside, "victim"), p) },
			"directory":  func(p string) error { return os.Symlink(outside, p) },
			"fifo":       func(p string) error { return unix.Mkfifo(p, 0o666) },
			"huge":       func(p string) error { return errOf(os.WriteFile(p, nil, 0o644), os.Truncate(p, 1<<40)) },
			"unreadable": func(p string) error { return os.WriteFile(p, []byte("x"), 0) },
			"loop":       func(p string) error { return os.Symlink(filepath.Base(p), p) },
		}
		for j, kind := range slices.Sorted(maps.Keys(kinds)) {
			if testenv.Short() && kind != "link" && (i+j)%3 != 0 {
				continue // each kind at some names, a link at all
			}
			w := newWorld(t, newHost(t))
			w.store.idle = 200 * time.Millisecond // FIFOs
			refs, index, head := w.host("for-each-ref"), w.host("ls-files", "-s"), w.host("symbolic-ref", "HEAD")
			p := w.private(name)
			os.RemoveAll(p)
			os.MkdirAll(filepath.Dir(p), 0o755)
			if err := kinds[kind](p); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := contextFor(t)
			_, _ = w.store.Sync(ctx)
			w.edit("h", "h\n")
			w.host("add", "h")
			w.host("branch", "new") // to be pulled
			_, _ = w.store.Sync(ctx)
			w.host("branch", "-D", "new")
			w.host("rm", "-q", "--cached", "h")
			if ctx.Err() != nil {
				t.Errorf("%s as a %s: it waits", name, kind)
			}
			cancel()
			if got := w.host("for-each-ref", "refs/heads", "refs/tags") + w.host("ls-files", "-s") + w.host("symbolic-ref", "HEAD"); got != refs+index+head {
				t.Errorf("%s as a %s: the host has %s", name, kind, got)
			}
			list, _ := os.ReadDir(outside)
			if text, _ := os.ReadFile(filepath.Join(outside, "victim")); string(text) != "victim\n" || len(list) != 1 {
				t.Errorf("%s as a %s: outside there is %v: %s", name, kind, list, text)
			}
			w.store.shut()
		}
	}
}

func errOf(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// Names that can be taken for something else are refused, and the values are kept.
func TestRefNames(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.host("update-ref", "refs/remotes/origin/topic", "HEAD")
	w.quiet()
	id := w.guest("commit-tree", "-p", "HEAD", "-m", "x", "HEAD^{tree}")
	bad := []string{"refs/heads/-x", "refs/heads/a/-x", "refs/heads/" + strings.Repeat("a", 40), "refs/heads/HEAD", "refs/tags/main", "refs/tags/HEAD", "refs/heads/origin/topic", "refs/heads/refs/heads/x", "refs/tags/\u202egnp"}
	for _, name := range bad {
		w.plant(name, id+"\n")
	}
	for _, name := range []string{"refs/heads/..", "refs/heads/x.lock", "refs/heads/a~b", "refs/heads/\x01", "refs/replace/" + id, "refs/remotes/origin/evil", "refs/bawn/x"} {
		_ = os.MkdirAll(filepath.Dir(w.private(name)), 0o755)
		_ = os.WriteFile(w.private(name), []byte(id+"\n"), 0o644)
	}
	before := w.host("for-each-ref", "refs/heads", "refs/tags", "refs/remotes", "refs/replace")
	r := w.sync()
	if got := w.host("for-each-ref", "refs/heads", "refs/tags", "refs/remotes", "refs/replace"); got != before {
		t.Errorf("refs are\n%s\nwant\n%s", got, before)
	}
	if len(r.Kept) != len(bad) {
		t.Errorf("kept %d of %d: %+v", len(r.Kept), len(bad), r)
	}
	if out := w.host("for-each-ref", "refs/bawn/x"); out != "" {
		t.Errorf("a ref of bawn's: %s", out)
	}
}

// What lies in a private directory beside refs, HEAD and index is never the host's.
func TestNothingElse(t *testing.T) {
	w := newWorld(t, newHost(t))
	before := tree(t, w.repo.Common)
	for _, name := range []string{"hooks/post-commit", "config", "info/attributes", "info/grafts", "shallow", "commondir", "config.worktree", "COMMIT_EDITMSG", "worktrees/x/gitdir", "modules/x/HEAD", "sharedindex.x", "description"} {
		w.plant(name, "evil\n")
	}
	_, _ = w.store.Sync(t.Context())
	_, _ = w.store.Close(t.Context())
	if got := tree(t, w.repo.Common); got != before {
		t.Errorf("the host has\n%s\nwant\n%s", got, before)
	}
}

// tree lists files and their contents, but objects.
func tree(t *testing.T, dir string) string {
	return run(t, dir, human(), "sh", "-c", `find . -type f -not -path './objects/*' | LC_ALL=C sort | xargs sha1sum; find . -not -type f -not -type d`)
}

func contextFor(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 20*time.Second)
}
