package sealed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// ordinary runs the test in a process of an ordinary user, whom modes stop, and
// reports whether this is that process.
func ordinary(t *testing.T) (dir string, here bool) {
	t.Helper()
	testenv.Need(t, "userns")
	if os.Geteuid() != 0 {
		dir := t.TempDir()
		t.Cleanup(func() { // which t.TempDir can't
			seals, _ := filepath.Glob(filepath.Join(dir, "*"))
			more, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
			for _, seal := range append(more, seals...) {
				if err := Remove(seal); err != nil {
					t.Error(err)
				}
			}
		})
		return dir, true
	}
	testenv.Need(t, "user")
	const user = 65534
	dir, err := os.MkdirTemp("/tmp", "sealed-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, user, user); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), "TMPDIR="+dir)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("as user %d: %v\n%s", user, err, out)
	}
	return "", false
}

// TestSealed: the user's own programs do not pass a sealed directory, by its path
// or a link, and Open does.
func TestSealed(t *testing.T) {
	base, here := ordinary(t)
	if !here {
		return
	}
	dir := filepath.Join(base, "a", "seal")
	inside, err := Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(Path(f, "planted"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(inside, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{inside, link, filepath.Join(inside, "planted"), filepath.Join(link, "planted"), filepath.Join(dir, "..", "seal", "inside")} {
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("stat %q: %v, want it refused", p, err)
		}
	}
	if again, err := Make(dir); again != inside || err != nil {
		t.Errorf("the second Make: %q, %v", again, err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { // control: the mode is what stops them
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(link, "planted")); err != nil {
		t.Errorf("without the seal: %v", err)
	}
	if _, err := Make(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(link, "planted")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("sealed again: %v", err)
	}
}

// TestMoveIn: what a directory held before it was sealed is there afterwards.
func TestMoveIn(t *testing.T) {
	base, here := ordinary(t)
	if !here {
		return
	}
	dir := filepath.Join(base, "old")
	if err := os.MkdirAll(filepath.Join(dir, "kept"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(dir); err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := os.Stat(Path(f, "kept")); err != nil {
		t.Error(err)
	}
}

// TestMakeAtOnce: of several that make one at a time, all succeed.
func TestMakeAtOnce(t *testing.T) {
	base, here := ordinary(t)
	if !here {
		return
	}
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			if _, err := Make(filepath.Join(base, "seal")); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	left, err := os.ReadDir(base)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestRemove: a guest keeps nothing from being removed, and a link of the guest's
// leads the removal nowhere.
func TestRemove(t *testing.T) {
	base, here := ordinary(t)
	if !here {
		return
	}
	dir := filepath.Join(base, "seal")
	if _, err := Make(dir); err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kept := filepath.Join(base, "kept")
	for _, d := range []string{Path(f, "closed/deep"), kept} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(kept, Path(f, "closed/link")), os.Chmod(kept, 0o500), os.Chmod(Path(f, "closed"), 0)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Remove(dir), Remove(dir)); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Remove: %v", err)
	}
	if fi, err := os.Stat(kept); err != nil || fi.Mode().Perm() != 0o500 {
		t.Errorf("what the guest's link leads to: %v, %v", fi, err)
	}
}

// TestNotADirectory: what is no directory is not sealed.
func TestNotADirectory(t *testing.T) {
	base := t.TempDir()
	for name, make := range map[string]func(string) error{
		"file": func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"link": func(p string) error { return os.Symlink(base, p) },
	} {
		p := filepath.Join(base, name)
		if err := make(p); err != nil {
			t.Fatal(err)
		}
		if _, err := Make(p); err == nil {
			t.Errorf("a %s was sealed", name)
		}
	}
}

// TestCreate: what Create opens stays usable behind the seal, which holds for paths.
func TestCreate(t *testing.T) {
	base, here := ordinary(t)
	if !here {
		return
	}
	dir := filepath.Join(base, "seal")
	f, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.MkdirAll(Path(f, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(Inside(dir), "a", "b")
	if _, err := os.Stat(deep); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("stat %q: %v, want it refused", deep, err)
	}
	if _, err := Create(dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the second Create: %v", err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := os.Stat(Path(again, "a", "b")); err != nil {
		t.Error(err)
	}
}

// TestReach: a path below a seal is opened past it, and the guest's links there lead
// nowhere.
func TestReach(t *testing.T) {
	base, here := ordinary(t)
	if !here {
		return
	}
	dir := filepath.Join(base, "seal")
	f, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := filepath.Join(base, "out")
	if err := errors.Join(os.MkdirAll(Path(f, "a", "b"), 0o700), os.Mkdir(out, 0o700), os.Symlink(out, Path(f, "led")), os.Symlink("a", Path(f, "near"))); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(out)
	for p, want := range map[string]error{
		Inside(dir): nil, Inside(dir) + "/a/b": nil, Inside(dir) + "/none": fs.ErrNotExist, Inside(dir) + "/led": syscall.ELOOP,
		Inside(dir) + "/near/b": syscall.ELOOP, Inside(dir) + "/a/../../../out": fs.ErrPermission, dir + "/none": fs.ErrPermission,
	} {
		g, err := Reach(p)
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", p, err, want)
		}
		if err == nil {
			g.Close()
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil { // control
		t.Fatal(err)
	}
	if g, err := Reach(Inside(dir) + "/near/b"); err != nil {
		t.Errorf("without the seal: %v", err)
	} else {
		g.Close()
	}
}

// TestReachAsRoot: no mode stops root, and the guest's links lead nowhere all the same.
func TestReachAsRoot(t *testing.T) {
	testenv.Need(t, "root")
	base := t.TempDir()
	dir, out := filepath.Join(base, "seal"), filepath.Join(base, "out")
	f, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := errors.Join(os.MkdirAll(filepath.Join(out, "x"), 0o700), os.Symlink(out, Path(f, "led"))); err != nil {
		t.Fatal(err)
	}
	led := Inside(dir) + "/led/x"
	if _, err := os.Stat(led); err != nil {
		t.Errorf("control: %v", err)
	}
	if g, err := Reach(led); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("%v, %v", g, err)
	}
	if g, err := Reach(Inside(dir)); err != nil {
		t.Error(err)
	} else {
		g.Close()
	}
}

func TestSplit(t *testing.T) {
	for p, want := range map[string][2]string{
		"/s/inside": {"/s", ""}, "/s/inside/a/b": {"/s", "a/b"}, "/inside/s/inside/a": {"/inside/s", "a"}, "/s/insider/a": {}, "/inside": {}, "/s/x": {}, "/s/inside/../x": {},
	} {
		seal, rest, ok := Split(p)
		if seal != want[0] || rest != want[1] || ok != (want[0] != "") {
			t.Errorf("%q: %q, %q, %v", p, seal, rest, ok)
		}
	}
}

// TestCreated: while the file from Create is open, Open gives the same directory without
// looking for it again.
func TestCreated(t *testing.T) {
	base, here := ordinary(t)
	if !here {
		return
	}
	dir, away := filepath.Join(base, "seal"), filepath.Join(base, "away")
	f, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatalf("open what was created: %v", err)
	}
	defer again.Close()
	one, err := f.Stat()
	two, err2 := again.Stat()
	if err := errors.Join(err, err2, f.Close()); err != nil || !os.SameFile(one, two) {
		t.Errorf("%v, the same directory: %t", err, os.SameFile(one, two))
	}
	if _, err := Open(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open after the file was closed: %v; want %v", err, fs.ErrNotExist)
	}
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	if err := Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, kept := made.Load(dir); kept {
		t.Error("a removed directory is still known")
	}
}

// TestAhead: Ahead opens more directories than one process hands over, until it is done,
// and no path that is not sealed. What Ahead holds is the directory behind the seal.
func TestAhead(t *testing.T) {
	base, here := ordinary(t)
	if !here {
		return
	}
	plain := filepath.Join(base, "plain/inside")
	if err := os.MkdirAll(plain, 0o700); err != nil {
		t.Fatal(err)
	}
	paths := []string{plain, filepath.Join(base, "missing/inside"), base, ""}
	var seals []string
	for i := range together + 2 {
		seal := filepath.Join(base, fmt.Sprint("seal", i))
		if _, err := Make(seal); err != nil {
			t.Fatal(err)
		}
		seals = append(seals, seal)
		paths = append(paths, Inside(seal), Inside(seal)+"/below")
	}
	kept := func() (list []string) {
		made.Range(func(dir, _ any) bool { list = append(list, dir.(string)); return true })
		slices.Sort(list)
		return list
	}
	slices.Sort(seals)
	before := kept()
	done := Ahead(paths)
	if got := kept(); !slices.Equal(got, seals) {
		t.Errorf("open ahead: %q; want %q", got, seals)
	}
	for _, seal := range seals {
		f, err := Reach(Inside(seal))
		if err != nil {
			t.Fatal(err)
		}
		if at, err := os.Readlink(Path(f)); err != nil || at != Inside(seal) {
			t.Errorf("%q is %q, %v", seal, at, err)
		}
		f.Close()
	}
	done()
	if got := kept(); len(before) > 0 || len(got) > 0 {
		t.Errorf("open before: %q; and after the end: %q", before, got)
	}
}
