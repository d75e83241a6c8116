// Package human_test lets a guest plant files in a project. Then a person works there as
// usual: commits, looks at the status, fetches, rebases, enters directories. Nothing that
// the guest planted may execute, and nothing in the person's home may change. In the
// control, without a sandbox, each plant succeeds.
package human_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == testhome.GuestWord {
		os.Exit(guest(os.Args[2:]))
	}
	os.Exit(testhome.Main("human", m.Run))
}

// An account is a user's home with a project in it. What executes for the guest
// outside of its sandbox leaves a file in marks.
type account struct {
	*testhome.Account
	marks, canary string
}

const canaryText = "# the human's own\n"

// project is what the human has: a repository with a branch, a remote, a nested
// repository, and a rebase's worth of history.
const project = `
set -e
git init -q -b main .
for i in 1 2 3 4; do echo $i >f$i; mkdir -p src; echo $i >src/s$i; git add .; git commit -qm "commit $i"; done
git branch fix HEAD~2
git clone -q --bare . ../remote.git
git -C ../remote.git remote remove origin
git remote add origin ../remote.git
git fetch -q origin
git init -q vendor/lib
echo lib >vendor/lib/lib.c
git -C vendor/lib add .
git -C vendor/lib commit -qm lib
echo /vendor/ >.git/info/exclude
`

func newAccount(t *testing.T) *account {
	t.Helper()
	r := &account{Account: testhome.NewAccount(t, patience, "git")}
	r.marks, r.canary = filepath.Join(r.Home, "marks"), filepath.Join(r.Home, ".bashrc")
	testhome.Check(t, os.Mkdir(r.marks, 0o777))
	r.Put(t, r.canary, canaryText, 0o644)
	r.Put(t, ".gitconfig", "[user]\n\tname = Human\n\temail = human@example.org\n[filter \"mine\"]\n\tsmudge = \"touch "+r.marks+"/filter; cat\"\n[gc]\n\tauto = 0\n", 0o644)
	r.Env = []string{"HOME=" + r.Home, "PATH=" + r.Bin + ":/usr/bin:/bin", "TERM=dumb", "LANG=C.UTF-8", "MARK=" + r.marks + "/executed",
		"GIT_EDITOR=true", "EVIL=" + strings.ReplaceAll(evilConfig, "MARK", r.marks+"/executed"), "XDG_RUNTIME_DIR=" + r.Home + "/run"}
	testhome.Check(t, os.Mkdir(r.Home+"/run", 0o700))
	made.Do(func() {
		if got := r.Run(t, "bash", "-c", project); got.Code != 0 {
			t.Fatalf("the project: %+v", got)
		}
		testhome.Check(t, os.Rename(r.Home+"/src", template()))
		testhome.Check(t, os.MkdirAll(r.Work, 0o755))
	})
	if got := r.Run(t, "sh", "-ec", copied, "copied", template()); got.Code != 0 {
		t.Fatalf("the copy of the project: %+v", got)
	}
	return r
}

// copied copies the project; the index knows files by their inodes.
const copied = `cp -aT "$1" ~/src; cd ~/src/project; git update-index -q --refresh; git -C vendor/lib update-index -q --refresh`

// made is done once the project has been made in [template], of which each account
// gets a copy. No path in it is absolute.
var made sync.Once

func template() string { return filepath.Join(testhome.Bin(), "..", "project") }

// evilConfig is a configuration by which each git command executes something.
const evilConfig = `[core]
	repositoryformatversion = 0
	bare = false
	fsmonitor = "touch MARK; false"
`

// fence makes all but the home and /tmp read-only for what runs in it: what a guest
// without a sandbox has planted may have a git write wherever a link leads.
const fence = `set -e
mount --bind "$HOME" "$HOME"
mount -t tmpfs tmpfs /tmp
mount -o remount,bind,ro /
around=$(findmnt -no TARGET -T "$HOME/..") # the user's home may be in memory
[ "$around" = / ] || mount -o remount,bind,ro "$around"
cd "$PWD"
exec "$@"`

func (r *account) fenced(argv ...string) []string {
	flags := "-m"
	if os.Geteuid() != 0 {
		flags = "-rm"
	}
	return append([]string{"unshare", flags, "bash", "-c", fence, "fence"}, argv...)
}

// bare executes a script of the guest's without a sandbox.
func (r *account) bare(t *testing.T, script string) { r.Run(t, r.fenced("bash", "-c", script)...) }

// session runs it as a guest, which must have come to run it.
func (r *account) session(t *testing.T, script string) {
	t.Helper()
	argv := []string{"bawn", "run", "-q", "--net", "none", "--env", "MARK", "--env", "EVIL", "--", "bash", "-c", "echo here; " + script}
	if got := r.Run(t, argv...); !strings.HasPrefix(got.Out, "here\n") {
		t.Fatalf("no session: %+v", got)
	}
}

// effects says what the guest has reached: what executed, and whether the
// human's file is another.
func (r *account) effects(t *testing.T) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(r.marks)
	testhome.Check(t, err)
	for _, e := range entries {
		list = append(list, "executed: "+e.Name())
	}
	if text, err := os.ReadFile(r.canary); err != nil || string(text) != canaryText {
		list = append(list, "the human's .bashrc changed")
	}
	return list
}

// works is the human's day; each command may fail. It returns those that hang.
// Without a sandbox git meets repositories on which it would take all memory.
func (r *account) works(t *testing.T, commands ...string) (hang []string) {
	t.Helper()
	for _, c := range commands {
		got := r.Run(t, r.fenced("timeout", "-k", "1", "20", "bash", "-c", "ulimit -v 4000000; "+c)...)
		if got.Code == 124 {
			hang = append(hang, c)
		}
	}
	return hang
}

// TestFence: nothing is written around the home, and the home can be written.
func TestFence(t *testing.T) {
	r := newAccount(t)
	out := filepath.Join(filepath.Dir(r.Home), "out")
	r.Run(t, "touch", out) // the control
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	r.bare(t, "touch ~/in; touch "+out+"; touch ../../../../out /tmp/fence-out")
	if _, err := os.Stat(filepath.Join(r.Home, "in")); err != nil {
		t.Error(err)
	}
	for _, p := range []string{out, "/tmp/fence-out"} {
		if _, err := os.Lstat(p); err == nil {
			t.Errorf("%q is there", p)
		}
	}
}
