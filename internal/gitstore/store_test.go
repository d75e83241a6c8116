package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// A world is a repository of the host's and a session that works on it. The guest
// is a git on the private directory.
type world struct {
	t     testing.TB
	ws    string
	state string
	store *Store
	repo  *Repository
	opts  Options
}

// direct reads the private directory without a sandbox: for what a test does not
// attack.
type direct struct{ view View }

func (d direct) Git(ctx context.Context, dir string, in io.Reader, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, d.view.Program, append(readArgs(filepath.Join(d.view.Private, dir)), args...)...)
	var said bytes.Buffer
	cmd.Dir = "/"
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append(environ(), d.borrows()), in, out, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, &said)
	}
	return nil
}

// borrows stands for the mounts of object directories.
func (d direct) borrows() string {
	var dirs []string
	for _, o := range d.view.Objects {
		dirs = append(dirs, o.Source)
	}
	return "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + strings.Join(dirs, ":")
}

func (direct) Close() error { return nil }

func startDirect(v View) (Untrusted, error) { return direct{v}, nil }

// human is the environment of a git of the human's.
func human() []string {
	return append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=h", "GIT_AUTHOR_EMAIL=h@h", "GIT_COMMITTER_NAME=h", "GIT_COMMITTER_EMAIL=h@h", "GIT_EDITOR=true", "LC_ALL=C")
}

func run(t testing.TB, dir string, env []string, args ...string) string {
	t.Helper()
	out, err := tryRun(dir, env, args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

func tryRun(dir string, env []string, args ...string) (string, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	var text strings.Builder
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "unable to normalize alternate object path: /run/bawn") { // there is no mount here
			text.WriteString(line)
		}
	}
	return strings.TrimSpace(text.String()), err
}

// newHost makes a repository with a few commits.
func newHost(t testing.TB, init ...string) string {
	t.Helper()
	testenv.Need(t, "git")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(dir, "ws")
	if len(init) > 0 {
		makeHost(t, ws, init...)
		return ws
	}
	template.Do(func() {
		if template.dir, err = os.MkdirTemp("", "gitstore-"); err == nil {
			makeHost(t, filepath.Join(template.dir, "ws"))
		}
	})
	run(t, dir, human(), "cp", "-a", filepath.Join(template.dir, "ws"), ws)
	return ws
}

// template is a repository that is copied: to make one takes ten gits.
var template struct {
	sync.Once
	dir string
}

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(template.dir)
	os.Exit(code)
}

func makeHost(t testing.TB, ws string, init ...string) {
	run(t, "/", human(), append([]string{"git", "init", "-q", "-b", "main", ws}, init...)...)
	for i := range 3 {
		write(t, filepath.Join(ws, "f"), fmt.Sprintf("line %d\n", i))
		write(t, filepath.Join(ws, fmt.Sprintf("d/g%d", i)), "x\n")
		run(t, ws, human(), "git", "add", ".")
		run(t, ws, human(), "git", "commit", "-qm", fmt.Sprintf("c%d", i))
	}
	run(t, ws, human(), "git", "branch", "side", "HEAD~1")
	run(t, ws, human(), "git", "tag", "v0")
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// newWorld starts a session on a repository.
func newWorld(t testing.TB, ws string) *world {
	t.Helper()
	w := &world{t: t, ws: ws, state: t.TempDir()}
	w.opts = Options{State: w.state, Session: "s1234567890", Path: os.Getenv("PATH"), Untrusted: startDirect}
	w.begin()
	return w
}

func (w *world) begin() {
	w.t.Helper()
	var err error
	if w.repo, err = Find(w.ws); err != nil || w.repo == nil {
		w.t.Fatalf("find: %v, %v", w.repo, err)
	}
	if w.store, err = Prepare(w.repo, w.opts); err != nil {
		w.t.Fatal(err)
	}
	w.store.idle = time.Second
	w.t.Cleanup(func() { w.store.shut() })
	// The gits of these tests go by paths. TestSealed and others look at the seal.
	if err := os.Chmod(filepath.Join(w.store.dir, guestName), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

// private is a file of the session's git directory.
func (w *world) private(name string) string {
	return w.store.guest.real(privateName, w.repo.rel(), name)
}

func (w *world) guestEnv() []string {
	v := w.store.View()
	return append(human(), "GIT_DIR="+w.private("."), "GIT_WORK_TREE="+w.ws, direct{v}.borrows(), "GIT_AUTHOR_NAME=guest", "GIT_COMMITTER_NAME=guest")
}

// guest runs git as the guest.
func (w *world) guest(args ...string) string {
	w.t.Helper()
	return run(w.t, w.ws, w.guestEnv(), append([]string{"git"}, args...)...)
}

// host runs git as the human.
func (w *world) host(args ...string) string {
	w.t.Helper()
	return run(w.t, w.ws, human(), append([]string{"git"}, args...)...)
}

func (w *world) edit(name, text string) { w.t.Helper(); write(w.t, filepath.Join(w.ws, name), text) }

// sync carries over, and fails the test where that is not possible.
func (w *world) sync() Report {
	w.t.Helper()
	r, err := w.store.Sync(w.t.Context())
	if err != nil {
		w.t.Fatalf("sync: %v (%+v)", err, r)
	}
	return r
}

// quiet is sync where nobody has to do anything.
func (w *world) quiet() {
	w.t.Helper()
	if r := w.sync(); !r.Quiet() {
		w.t.Fatalf("a report: %+v", r)
	}
}

// same fails where both sides differ in the output of a git.
func (w *world) same(args ...string) {
	w.t.Helper()
	if h, g := w.host(args...), w.guest(args...); h != g {
		w.t.Errorf("git %v: the host has\n%s\nthe guest\n%s", args, h, g)
	}
}

// agree fails where the sides differ in what a human looks at.
func (w *world) agree() {
	w.t.Helper()
	w.same("rev-parse", "HEAD")
	w.same("rev-parse", "--symbolic-full-name", "HEAD")
	w.same("ls-files", "-s")
	w.same("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
	w.same("status", "--porcelain")
	if out := w.host("fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
		w.t.Errorf("fsck: %s", out)
	}
}

func (w *world) close() Report {
	w.t.Helper()
	r, err := w.store.Close(w.t.Context())
	if err != nil {
		w.t.Fatalf("close: %v (%+v)", err, r)
	}
	return r
}

// gone fails where something of the session is left.
func (w *world) gone() {
	w.t.Helper()
	if out := w.host("for-each-ref", "refs/bawn"); out != "" {
		w.t.Errorf("refs are left: %s", out)
	}
	if _, err := os.Lstat(w.store.dir); !errors.Is(err, os.ErrNotExist) {
		w.t.Errorf("the place is left: %v", err)
	}
	if list, _ := filepath.Glob(filepath.Join(w.repo.Common, "*bawn*")); len(list) > 0 {
		w.t.Errorf("files are left: %v", list)
	}
}

func TestEverydayWork(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			w := newWorld(t, newHost(t, "--object-format="+format))
			for _, step := range []struct {
				name string
				do   func()
			}{
				{"commit", func() { w.edit("f", "a\n"); w.guest("commit", "-qam", "one") }},
				{"stage", func() { w.edit("new", "n\n"); w.guest("add", "new") }},
				{"unstage", func() { w.guest("rm", "-q", "--cached", "new"); w.edit("new", "m\n") }},
				{"branch", func() { w.guest("checkout", "-qb", "work") }},
				{"commit on it", func() { w.guest("add", "new"); w.guest("commit", "-qm", "two") }},
				{"amend", func() { w.guest("commit", "-q", "--amend", "-m", "two again") }},
				{"tag", func() { w.guest("tag", "-am", "a tag", "v1") }},
				{"merge", func() { w.guest("checkout", "-q", "main"); w.guest("merge", "-q", "--no-ff", "-m", "merged", "work") }},
				{"delete its branch", func() { w.guest("branch", "-D", "work") }},
				{"rebase", func() {
					w.guest("checkout", "-q", "side")
					w.edit("side", "s\n")
					w.guest("add", "side")
					w.guest("commit", "-qm", "on the side")
					w.guest("rebase", "-q", "main")
				}},
				{"detach", func() { w.guest("checkout", "-q", "--detach", "HEAD~1") }},
				{"come back", func() { w.guest("checkout", "-q", "main") }},
				{"stash", func() { w.edit("f", "stashed\n"); w.guest("stash") }},
				{"reset", func() { w.guest("reset", "-q", "--hard", "HEAD~1") }},
				{"rename", func() { w.guest("mv", "f", "d/f2"); w.guest("commit", "-qm", "renamed") }},
				{"file to directory", func() {
					w.guest("rm", "-q", "d/g0")
					w.edit("d/g0/deep", "x\n")
					w.guest("add", "d")
					w.guest("commit", "-qm", "deep")
				}},
				{"pack", func() { w.guest("gc", "-q", "--prune=now") }},
				{"commit packed", func() { w.edit("z", "z\n"); w.guest("add", "z"); w.guest("commit", "-qm", "z") }},
			} {
				step.do()
				r := w.sync()
				if !r.Quiet() {
					t.Fatalf("%s: %+v", step.name, r)
				}
				t.Log(step.name)
				w.agree()
				w.same("stash", "list")
				if t.Failed() {
					t.FailNow()
				}
			}
			if r := w.close(); !r.Quiet() {
				t.Errorf("%+v", r)
			}
			w.gone()
		})
	}
}

// run starts Run. stop ends it, and done is closed then.
func (w *world) run() (done chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done = make(chan struct{})
	go func() { w.store.Run(ctx); close(done) }()
	w.t.Cleanup(func() { cancel(); <-done })
	return done, cancel
}

// plant writes a file of the private directory as a guest would.
func (w *world) plant(name, text string) { w.t.Helper(); write(w.t, w.private(name), text) }
