// Package plant leaves in a git directory what git on the host would execute or
// obey, and looks whether it does.
package plant

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// A Workspace holds a repository for each plant.
type Workspace struct {
	Dir   string // what a session may write
	State string // private git directories and a pool, to be hidden from it
	out   string // canaries, a directory for each plant
	kinds map[string]string
	was   map[string]string // what the git directories of the host held
}

// Sample are the plants in a git directory that is there and those that make one:
// one of every so many where testenv.Short says so, else all.
func Sample(every int) map[string]string {
	all := maps.Clone(Live)
	maps.Copy(all, Made)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if testenv.Short() && i%every != 0 {
			delete(all, name)
		}
	}
	return all
}

// New makes a workspace below base, which is not there in any session but for the
// workspace itself, with a repository for each plant of kinds.
func New(t testing.TB, base string, kinds map[string]string) *Workspace {
	t.Helper()
	w := &Workspace{Dir: filepath.Join(base, "ws"), State: filepath.Join(base, "state"), out: filepath.Join(base, "out"), kinds: kinds, was: map[string]string{}}
	for _, dir := range []string{w.Dir, w.State, w.out, w.Pool()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range w.names() {
		for _, dir := range []string{w.repository(name), filepath.Join(w.out, name)} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	names := w.names()
	if out, err := w.host(names[0], setup); err != nil {
		t.Fatalf("set up: %v: %s", err, out)
	}
	for _, name := range names[1:] {
		if out, err := w.host(name, `cp -a ../../`+names[0]+`/r/. . && sed -i "s|/`+names[0]+`/r/|/`+name+`/r/|" .git/worktrees/wt/gitdir wt/.git`); err != nil {
			t.Fatalf("%s: copy %s: %v: %s", name, names[0], err, out)
		}
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(w.out, name, "victim"), []byte("keep\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// Pool is for Request.GitPool.
func (w *Workspace) Pool() string { return filepath.Join(w.State, "pool") }

func (w *Workspace) repository(name string) string { return filepath.Join(w.Dir, name, "r") }

func (w *Workspace) names() []string {
	return slices.Sorted(maps.Keys(w.kinds))
}

// Private makes a private git directory for each repository, by hand: what the
// host's holds, but for its objects, which it borrows.
func (w *Workspace) Private(t testing.TB) []bawn.GitDir {
	t.Helper()
	var list []bawn.GitDir
	for _, name := range w.names() {
		git, own := filepath.Join(w.repository(name), ".git"), filepath.Join(w.State, name)
		at := "/run/bawn/git/" + name
		text := fmt.Sprintf(`cp -a %q %q; cd %[2]q; rm -r objects; mkdir -p objects/info objects/pack; echo %s >objects/info/alternates`, git, own, at)
		if out, err := exec.Command("sh", "-c", text).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		list = append(list, bawn.GitDir{Path: git, Private: own, Objects: []bawn.GitObjects{{Source: filepath.Join(git, "objects"), Target: at}}})
	}
	return list
}

// Plants is the script by which a guest plants everything. dir is its workspace.
func (w *Workspace) Plants(dir string) string {
	var b strings.Builder
	for _, name := range w.names() {
		fmt.Fprintf(&b, "(cd %s/%s/r && OUT=%s\n%s\n) 2>&1 | sed 's/^/%[2]s: /'\n", dir, name, filepath.Join(w.out, name), w.kinds[name])
	}
	return b.String()
}

// Plant does so outside of any session, which is the control.
func (w *Workspace) Plant(t testing.TB) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", w.Plants(w.Dir)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// Note remembers what the git directories of the host hold.
func (w *Workspace) Note() {
	for _, name := range w.names() {
		w.was[name] = w.list(name)
	}
}

// Changed lists the repositories whose git directory is not what Note has seen.
func (w *Workspace) Changed() (list []string) {
	for _, name := range w.names() {
		if now := w.list(name); now != w.was[name] {
			list = append(list, name)
		}
	}
	return list
}

func (w *Workspace) list(name string) string {
	out, _ := exec.Command("sh", "-c", `cd "$0" && find .git -type f | sort | xargs sha256sum; find .git | sort`, w.repository(name)).CombinedOutput()
	return string(out)
}

// Struck works in every repository as a human does, and lists the plants that
// were executed or obeyed.
func (w *Workspace) Struck(t testing.TB) (list []string) {
	t.Helper()
	var wait sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, name := range w.names() {
		wait.Go(func() {
			free <- struct{}{}
			out, _ := w.host(name, human)
			<-free
			t.Logf("%s: %s", name, out)
		})
	}
	wait.Wait()
	for _, name := range w.names() {
		if _, err := os.Stat(filepath.Join(w.out, name, "pwned")); err == nil {
			list = append(list, name)
		}
	}
	return list
}

// atOnce is how many humans work at a time.
const atOnce = 4

func (w *Workspace) host(name, text string) ([]byte, error) {
	cmd := exec.Command("bash", "-c", text)
	cmd.Dir = w.repository(name)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.out, "OUT=" + filepath.Join(w.out, name), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_EDITOR=true",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_CEILING_DIRECTORIES=" + w.Dir,
	}
	return cmd.CombinedOutput()
}
