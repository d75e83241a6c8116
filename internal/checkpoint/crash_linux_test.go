package checkpoint

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// childVariable names what this program does instead of its tests.
const childVariable = "BAWN_CHECKPOINT_CHILD"

// asChild are the things that a child process does with the world of a test.
var asChild = map[string]func(w *world){"take": takeForever, "undo": undoForever, "full": fullDisk, "full-workspace": fullWorkspace, "apply": applyForever}

func TestMain(m *testing.M) {
	if do := asChild[os.Getenv(childVariable)]; do != nil {
		do(&world{t: &child{}, dir: os.Args[1], root: os.Args[2]})
		os.Exit(0)
	}
	// On a file system in memory no ctime is trusted, which would leave little to test.
	if dir, err := os.Open(os.TempDir()); err == nil {
		if inMemory(int(dir.Fd())) {
			_ = os.Setenv("TMPDIR", "/var/tmp")
		}
		dir.Close()
	}
	if testenv.Short() { // each takes four checkpoints and two undos
		_ = flag.Set("rapid.checks", "30")
	}
	os.Exit(m.Run())
}

// A child reports what fails to its parent.
type child struct{ testing.TB }

func (*child) Helper()        {}
func (*child) Cleanup(func()) {}
func (*child) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(1)
}
func (c *child) Error(args ...any)            { c.Fatal(args...) }
func (c *child) Errorf(f string, args ...any) { c.Fatal(fmt.Sprintf(f, args...)) }
func (c *child) Fatalf(f string, args ...any) { c.Fatal(fmt.Sprintf(f, args...)) }

func (w *world) child(do string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", w.dir, w.root)
	cmd.Env = append(os.Environ(), childVariable+"="+do)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// killed starts a child, kills it at a random moment after its first line, and
// returns the lines that it has written.
func (w *world) killed(do string) (lines []string) {
	w.t.Helper()
	cmd := w.child(do)
	out, err := cmd.StdoutPipe()
	w.must(err)
	w.must(cmd.Start())
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		w.must(err)
		if lines = append(lines, strings.TrimSpace(line)); len(lines) == 1 {
			time.AfterFunc(time.Duration(rand.IntN(150_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		w.t.Fatalf("the child ended by itself: %v", err)
	}
	return lines
}

// takeForever changes files, takes checkpoints and prunes. The session's name is the
// digest of what is to be in the checkpoint.
func takeForever(w *world) {
	for i := 0; ; i++ {
		n := rand.IntN(1000)
		w.file(fmt.Sprintf("d%d/f%d", n%5, n%11), noise(n, 100+n*50))
		w.file("sub/large", strings.Repeat(noise(n, 1000), 5000))
		c := w.take(w.digest(), AtTime)
		fmt.Println("kept", c.ID)
		if i%3 == 2 {
			fmt.Println("prune")
			s := w.store()
			_, err := s.Prune(Limits{Bytes: 2 << 20, Age: time.Hour, Fine: time.Hour}, time.Now())
			w.must(err)
			w.must(s.Close())
		}
	}
}

// digest stands for names, modes and contents of the workspace.
func (w *world) digest() string {
	h := sha256.New()
	for _, name := range sorted(w.state()) {
		if info, err := os.Lstat(w.path(name)); err == nil && info.Mode().IsRegular() {
			b, err := os.ReadFile(w.path(name))
			w.must(err)
			fmt.Fprintf(h, "%s %o %x\n", name, info.Mode().Perm(), sha256.Sum256(b))
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// kept stands for the same of a checkpoint.
func (w *world) kept(s *Store, c *Checkpoint) string {
	w.t.Helper()
	a := &undoer{s: s}
	lines := map[string]string{}
	var walk func(at string, d Digest)
	walk = func(at string, d Digest) {
		list, err := s.tree(d)
		w.must(err)
		for i := range list {
			e := &list[i]
			name := filepath.Join(at, e.Name)
			if e.Kind == Directory {
				walk(name, e.Object)
				continue
			}
			f, err := unix.MemfdCreate("content", unix.MFD_CLOEXEC)
			w.must(err)
			w.must(a.fill(f, e))
			b := make([]byte, e.Size)
			_, err = readFull(f, b, 0)
			w.must(errors.Join(err, unix.Close(f)))
			lines[name] = fmt.Sprintf("%s %o %x\n", name, e.Mode, sha256.Sum256(b))
		}
	}
	walk("", c.Roots[0].Tree)
	h := sha256.New()
	for _, name := range sorted(lines) {
		_, _ = io.WriteString(h, lines[name])
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// TestKilledWhileTaking kills what takes checkpoints and prunes. What it said it had
// kept is there, each checkpoint that is listed is whole, and nothing else is left.
func TestKilledWhileTaking(t *testing.T) {
	w := newWorld(t)
	for range testenv.Some(20, 3) {
		lines := w.killed("take")
		s := w.store()
		list, err := List(w.dir)
		w.must(err)
		there := map[string]bool{}
		for i := range list {
			c := &list[i]
			there[c.ID] = true
			if got := w.kept(s, c); got != c.Session {
				t.Errorf("checkpoint %s holds %.12s; want %.12s", c.ID, got, c.Session)
			}
		}
		for i := len(lines) - 1; i >= 0 && lines[i] != "prune"; i-- { // what came after the last prune
			if id, ok := strings.CutPrefix(lines[i], "kept "); ok && !there[id] {
				t.Errorf("checkpoint %s is gone", id)
			}
		}
		w.must(s.Close())
		last := w.take(w.digest(), AtEnd) // which cleans up
		s = w.store()
		if got := w.kept(s, last); got != last.Session {
			t.Errorf("the checkpoint after the kill holds %.12s; want %.12s", got, last.Session)
		}
		w.must(s.Close())
		w.noLitter()
	}
}

// noLitter wants no file that is half written.
func (w *world) noLitter() {
	w.t.Helper()
	for _, pattern := range []string{"new-*", "*/new-*", "*/damaged-*"} {
		if list, _ := filepath.Glob(filepath.Join(w.dir, pattern)); len(list) > 0 {
			w.t.Errorf("left: %q", list)
		}
	}
}

// undoForever goes back and forth between two states.
func undoForever(w *world) {
	list, err := List(w.dir)
	w.must(err)
	fmt.Println("begun")
	for i := 0; ; i++ {
		w.undo(&list[i%2], nil)
	}
}

// TestKilledWhileUndoing kills an undo. Both states come back afterwards.
func TestKilledWhileUndoing(t *testing.T) {
	w := newWorld(t)
	w.fill()
	for i := range 40 {
		w.file(fmt.Sprintf("many/d%d/f%d", i%4, i), noise(i, 10_000))
	}
	var states []map[string]string
	var list []*Checkpoint
	for i := range 2 {
		if i > 0 {
			w.must(os.RemoveAll(w.path("many/d1")))
			w.must(os.RemoveAll(w.path("sub")))
			w.file("many/d2/f2", "changed")
			w.file("sub", "a file now")
			w.file("new/file", "new")
		}
		list = append(list, w.take("s", AtStart))
		states = append(states, w.state())
	}
	for range testenv.Some(40, 4) {
		w.killed("undo")
		for k := range list {
			w.undo(list[k], nil)
			compare(t, w.state(), states[k])
		}
		if t.Failed() {
			return
		}
	}
	w.noLitter()
}

// onSmallDisk runs a child in namespaces of its own, where it may mount.
func (w *world) onSmallDisk(do string) {
	w.t.Helper()
	testenv.Need(w.t, "userns")
	cmd := w.child(do)
	ids := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = ids(os.Getuid()), ids(os.Getgid())
	if out, err := cmd.Output(); err != nil {
		w.t.Errorf("%v: %s", err, out)
	}
}

func (w *world) smallDisk(dir, size string) {
	w.must(unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	w.must(unix.Mount("small", dir, "tmpfs", 0, "size="+size))
}

// fillDisk writes a file until the disk is full.
func (w *world) fillDisk(path string) {
	err := os.WriteFile(path, []byte(noise(1, 16<<20)), 0o600)
	if !errors.Is(err, unix.ENOSPC) {
		w.t.Fatal("control: the disk is not full:", err)
	}
}

// TestFullDisk takes checkpoints where the store has no room, and undoes where the
// workspace has none.
func TestFullDisk(t *testing.T) {
	for _, do := range []string{"full", "full-workspace"} {
		w := newWorld(t)
		w.must(os.Mkdir(w.dir, 0o700))
		w.onSmallDisk(do)
	}
}

func fullDisk(w *world) {
	w.smallDisk(w.dir, "8m")
	w.file("f", noise(1, 2<<20))
	first := w.take("s", AtStart)
	before, err := Size(w.dir)
	w.must(err)
	fails := func(what string) {
		s := w.store()
		defer s.Close()
		t, err := s.Scan(Options{Roots: []string{w.root}})
		w.must(err)
		defer t.Close()
		if _, err = t.Keep(nil); !errors.Is(err, unix.ENOSPC) {
			w.t.Fatal(what, "want ENOSPC, got", err)
		}
	}
	w.file("large", noise(2, 20<<20))
	fails("no room for a pack:")
	w.must(os.Remove(w.path("large")))
	w.fillDisk(filepath.Join(w.dir, "junk"))
	w.file("g", "small")
	fails("no room at all:")
	w.must(os.Remove(filepath.Join(w.dir, "junk")))
	w.noLitter()
	if after, err := Size(w.dir); err != nil || after != before {
		w.t.Fatal("the store had", before, "bytes and has", after, err)
	}
	w.must(os.Remove(w.path("f")))
	w.undo(first, nil)
	if w.read("f") != noise(1, 2<<20) {
		w.t.Fatal("the former checkpoint is damaged")
	}
}

func fullWorkspace(w *world) {
	w.smallDisk(w.root, "8m")
	w.file("f", noise(1, 3<<20))
	w.file("g", "one")
	first := w.take("s", AtStart)
	w.file("f", "two")
	w.file("g", "two")
	w.fillDisk(w.path("junk"))
	s := w.store()
	defer s.Close()
	t, err := s.Scan(Options{Why: BeforeUndo, Roots: []string{w.root}})
	w.must(err)
	defer t.Close()
	_, err = t.Keep(nil)
	w.must(err)
	u := &Undo{To: first, Paths: []string{w.path("f")}}
	w.must(t.Plan(u))
	if _, err := u.Apply(); !errors.Is(err, unix.ENOSPC) {
		w.t.Fatal("want ENOSPC, got", err)
	}
	if list, _ := os.ReadDir(w.root); len(list) != 3 || w.read("f") != "two" {
		w.t.Fatal(list, "and f is", w.read("f"))
	}
}

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
