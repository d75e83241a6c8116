// Package undo_test lets a guest destroy a project and then undoes that. Every file that a
// checkpoint covers comes back, and every commit, branch, tag and stash.
package undo_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/engine"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

const patience = 60 * time.Second

func TestMain(m *testing.M) {
	code := testhome.Main("undo", m.Run)
	if err := engine.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// project is what the human has: all kinds of files, and a repository with history.
const project = `
set -e
git init -q -b main .
printf '.env\nbuild/\n*.db\n' >.gitignore
for i in 1 2 3; do echo $i >f$i; mkdir -p src/deep; echo $i >src/deep/s$i; git add .; git commit -qm "commit $i"; done
git branch fix HEAD~2
git tag light HEAD~1
git tag -am annotated heavy
echo mine >>f1
git stash -q
echo staged >staged
git add staged
echo changed >>f2
echo SECRET=1 >.env
mkdir -p build empty/dir src/locked
head -c 100000 /dev/urandom >data.db
head -c 3000000 /dev/zero >build/out
echo run >tool; chmod 755 tool
echo ro >src/locked/file; chmod 444 src/locked/file
chmod 500 src/locked
ln -s f1 link
ln -s /etc/passwd outside
ln f3 src/hard
mkfifo pipe
touch -d '2001-02-03 04:05:06' f1 empty/dir
`

type account struct{ *testhome.Account }

func newAccount(t *testing.T, features ...string) *account {
	t.Helper()
	r := &account{testhome.NewAccount(t, patience, append(features, "git")...)}
	r.Put(t, ".gitconfig", "[user]\n\tname = Human\n\temail = human@example.org\n[gc]\n\tauto = 0\n", 0o644)
	r.Env = []string{"HOME=" + r.Home, "PATH=" + r.Bin + ":/usr/bin:/bin", "TERM=dumb", "LANG=C.UTF-8", "XDG_RUNTIME_DIR=" + r.Home + "/run"}
	testhome.Check(t, os.Mkdir(r.Home+"/run", 0o700))
	r.must(t, "bash", "-c", project)
	return r
}

// must runs a command that has to succeed, and returns what it writes.
func (r *account) must(t *testing.T, argv ...string) string {
	t.Helper()
	got := r.Run(t, argv...)
	if got.Code != 0 {
		t.Fatalf("%.200q: %+v", argv, got)
	}
	return got.Out
}

// files describes everything in a directory but its git directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	inodes := map[uint64]string{}
	testhome.Check(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		if d.Name() == ".git" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		line := fmt.Sprintf("%s %o", rel, st.Mode)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %q", b[:min(len(b), 50)]) + fmt.Sprint(len(b))
			if st.Nlink > 1 {
				if inodes[st.Ino] == "" {
					inodes[st.Ino] = rel
				}
				line += " like " + inodes[st.Ino]
			}
		case unix.S_IFLNK:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			line += " to " + to
		}
		list = append(list, line)
		return nil
	}))
	return list
}

// state is what the human sees.
func (r *account) state(t *testing.T) string {
	t.Helper()
	list := files(t, r.Work)
	for _, args := range [][]string{
		{"for-each-ref", "--format=%(refname) %(objectname)"}, {"symbolic-ref", "-q", "HEAD"}, {"stash", "list", "--format=%H %gs"},
		{"ls-files", "-s"}, {"status", "--porcelain=v2"}, {"log", "--format=%H", "--branches", "--tags"},
	} {
		got := r.Run(t, append([]string{"git"}, args...)...)
		if got.Code > 1 { // 1 says that there is nothing, as of a detached HEAD
			list = append(list, got.Err)
		}
		for line := range strings.Lines(got.Out) {
			if !strings.HasPrefix(line, "refs/bawn/") {
				list = append(list, args[0]+" "+strings.TrimSuffix(line, "\n"))
			}
		}
	}
	return strings.Join(list, "\n")
}

// intact takes back the last session and compares.
func (r *account) intact(t *testing.T, before string, args ...string) {
	t.Helper()
	got := r.Run(t, append([]string{"bawn", "undo", "--yes"}, args...)...)
	if got.Code != 0 {
		t.Errorf("undo: %+v", got)
	}
	if after := r.state(t); after != before {
		t.Errorf("what came back differs: %s\nundo said: %+v", difference(before, after), got)
	}
	if got := r.Run(t, "git", "fsck", "--strict", "--no-dangling", "--no-progress"); got.Code != 0 || got.Out+got.Err != "" {
		t.Errorf("fsck: %+v", got)
	}
}

func difference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	var out []string
	for _, l := range x {
		if !slices.Contains(y, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range y {
		if !slices.Contains(x, l) {
			out = append(out, "+ "+l)
		}
	}
	return "\n" + strings.Join(out, "\n")
}

// attacks are what guests do. Without Bawn each of them leaves something else behind
// (TestControl).
var attacks = map[string]string{
	"remove all":        `chmod -R u+w . 2>/dev/null; rm -rf * .git .env .gitignore`,
	"remove commits":    `git config user.name g; git config user.email g@g; git stash drop -q; git branch -qD fix; git tag -d light heavy; git reset -q --hard HEAD~2; git reflog expire --expire=now --all; git gc -q --prune=now`,
	"overwrite objects": `find .git -type f -exec chmod u+w {} +; find .git/objects -type f | while read f; do echo x >"$f"; done; echo x >f1`,
	"truncate index":    `: >.git/index; rm -f f2`,
	"replace .git":      `rm -rf .git/* .git; mv .git old; git init -q -b evil .; rm f1`,
	"other kinds":       `rm -rf src f1 empty; echo x >src; mkdir f1; ln -s /nowhere empty; rm -f pipe link; echo y >link; : >data.db`,
	"modes":             `chmod 000 f1 src/deep tool; chmod 777 .env; chmod -R 000 build`,
	"overwrite":         `for f in f1 f2 f3 .env data.db staged tool; do printf other >$f; done`,
	"ignore files":      `printf '*\n' >.gitignore; mkdir -p node_modules; mv src node_modules; rm -rf node_modules; rm .env`,
	"race":              `(while :; do mv src sr2; mv sr2 src; ln -sfn /etc src/deep/l; done) 2>/dev/null & sleep 0.3; echo x >f1; rm -rf data.db`,
}

// providers have what each of them needs of the machine. The engines' own are tried by
// root, who can start them.
var providers = map[string][]string{"native": nil, "bwrap": {"bwrap"}, "landlock": nil, "docker": {"docker", "root"}, "gvisor": {"runsc", "root"}}

// on has sessions run on a provider, and returns the flags for that.
func (r *account) on(t *testing.T, provider string) []string {
	t.Helper()
	r.configure(t, provider, engine.Busybox)
	return []string{"bawn", "run", "-q", "--net", "none", "--provider", provider, "--", "sh", "-c"}
}

// configure tells Bawn what a provider needs, which may be an image.
func (r *account) configure(t *testing.T, provider, image string) {
	t.Helper()
	var config string
	switch provider {
	case "docker":
		e := engine.Shared(t)
		config = fmt.Sprintf("[isolation.docker_options]\nimage = %q\n", e.Image(t, image))
		r.Env = append(r.Env, "DOCKER_HOST="+e.Host())
	case "gvisor":
		path, err := testenv.Runsc()
		testhome.Check(t, err)
		config = fmt.Sprintf("[isolation]\nrunsc = %q\ngvisor_accept_unprotected = true\n", path)
	}
	if config != "" {
		r.Put(t, ".config/bawn/config.toml", config, 0o600)
	}
}

func TestUndo(t *testing.T) {
	for provider, needs := range providers {
		t.Run(provider, func(t *testing.T) {
			testenv.Need(t, needs...)
			if !slices.Contains(needs, "root") {
				testenv.ByUser(t)
			}
			if provider == "gvisor" {
				testenv.Whole(t)
			}
			for name, line := range attacks {
				if provider != "native" && name != "remove all" && name != "other kinds" {
					continue // it is the same code
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					r := newAccount(t)
					before := r.state(t)
					r.Run(t, append(r.on(t, provider), line)...)
					r.intact(t, before)
				})
			}
		})
	}
}

// TestControl: each attack destroys something where nothing holds it.
func TestControl(t *testing.T) {
	testenv.ByUser(t)
	for name, line := range attacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newAccount(t)
			before := r.state(t)
			r.Run(t, "sh", "-c", line+"; kill %1 2>/dev/null; kill 0")
			_ = filepath.WalkDir(r.Work, func(p string, d fs.DirEntry, _ error) error {
				if d != nil && d.IsDir() {
					_ = os.Chmod(p, 0o700)
				}
				return nil
			})
			if name == "modes" {
				return // they have just been opened again
			}
			if r.state(t) == before {
				t.Error("it destroys nothing")
			}
			if got := r.Run(t, "bawn", "undo", "--yes"); got.Code != 2 || !strings.Contains(got.Err, "no session has changed anything here") {
				t.Errorf("undo without a checkpoint: %+v", got)
			}
		})
	}
}

// TestKilled: bawn is killed in the middle.
func TestKilled(t *testing.T) {
	for provider, needs := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			testenv.Need(t, needs...)
			if !slices.Contains(needs, "root") {
				testenv.ByUser(t)
			}
			if provider == "gvisor" || provider == "landlock" {
				testenv.Whole(t)
			}
			r := newAccount(t)
			before := r.state(t)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := r.Command(ctx, append(r.on(t, provider), attacks["remove all"]+"; touch done; sleep 1000")...)
			testhome.Check(t, cmd.Start())
			testenv.Until(t, "the destruction", func() bool { _, err := os.Stat(filepath.Join(r.Work, "done")); return err == nil })
			if got := r.Run(t, "bawn", "undo", "--yes"); got.Code != 2 || !strings.Contains(got.Err, "still runs") || !strings.Contains(got.Err, "bawn kill") {
				t.Errorf("undo while it runs: %+v", got)
			}
			testhome.Check(t, cmd.Process.Kill())
			_ = cmd.Wait() // as it was told
			r.intact(t, before)
		})
	}
}

// TestNextSession: what one session has planted does not shrink the checkpoint of the
// next.
func TestNextSession(t *testing.T) {
	testenv.ByUser(t)
	t.Parallel()
	r := newAccount(t)
	r.must(t, "bawn", "run", "-q", "--net", "none", "--", "sh", "-c", `printf '*\n' >.gitignore; echo /src >.git/info/exclude; echo 'Signature: 8a477f597d28d172789f06886806bc55' >build/CACHEDIR.TAG; touch src/Cargo.toml package.json Cargo.toml`)
	before := r.state(t)
	r.Run(t, "bawn", "run", "-q", "--net", "none", "--", "sh", "-c", `chmod -R u+w src; rm -rf src .env build`)
	r.intact(t, before)
}

// TestHumansWork: what the human has changed since stays.
func TestHumansWork(t *testing.T) {
	testenv.ByUser(t)
	t.Parallel()
	r := newAccount(t)
	r.must(t, "bawn", "run", "-q", "--net", "none", "--", "sh", "-c", `echo guest >f1; echo guest >f2; rm f3; echo new >guests`)
	r.must(t, "sh", "-c", "echo mine >f1; echo mine >humans")
	got := r.Run(t, "bawn", "undo", "--yes")
	if got.Code != 0 || !strings.Contains(got.Out, "keep      f1: you have changed it since the session") {
		t.Errorf("%+v", got)
	}
	if out := r.must(t, "sh", "-c", "cat f1 f2 f3 humans; ls guests 2>/dev/null || echo gone"); out != "mine\n2\nchanged\n3\nmine\ngone\n" && out != "mine\n2\n3\nmine\ngone\n" {
		t.Errorf("%q", out)
	}
	before := strings.Fields(got.Err[strings.Index(got.Err, "bawn undo ")+len("bawn undo "):])[0]
	r.must(t, "bawn", "undo", "--yes", strings.Trim(before, `"`))
	if out := r.must(t, "sh", "-c", "cat f1 f2 guests; ls f3 2>/dev/null || echo gone"); out != "mine\nguest\nnew\ngone\n" {
		t.Errorf("undo of the undo: %q", out)
	}
}

// TestFullDisk: a session without a checkpoint runs, and its human is told.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	r := newAccount(t, "root")
	state := filepath.Join(r.Home, ".local/state")
	testhome.Check(t, os.MkdirAll(state, 0o700))
	testhome.Check(t, unix.Mount("tmpfs", state, "tmpfs", 0, "size=4m"))
	t.Cleanup(func() { _ = unix.Unmount(state, unix.MNT_DETACH) })
	r.must(t, "sh", "-c", "head -c 8000000 /dev/urandom >random")
	got := r.Run(t, "bawn", "run", "--net", "none", "--", "sh", "-c", "echo ran; rm f1")
	if got.Out != "ran\n" || !strings.Contains(got.Err, "no checkpoint") {
		t.Errorf("%+v", got)
	}
	if out := r.must(t, "bawn", "audit", "query", "--json"); !strings.Contains(out, "builtin:not-covered") {
		t.Errorf("it is not recorded: %s", out)
	}
	if got := r.Run(t, "bawn", "undo", "--yes"); got.Code != 2 {
		t.Errorf("undo: %+v", got)
	}
	r.must(t, "rm", "random")
	r.must(t, "bawn", "run", "-q", "--net", "none", "--", "rm", "f2")
	r.must(t, "bawn", "undo", "--yes")
	r.must(t, "cat", "f2")
}

// TestSingleFile: a file that --rw names comes back, and nothing else of its directory
// is looked at.
func TestSingleFile(t *testing.T) {
	testenv.ByUser(t)
	t.Parallel()
	r := newAccount(t)
	r.Put(t, "etc/app.conf", "the human's\n", 0o640)
	r.Put(t, "etc/other", "the human's\n", 0o640)
	file := filepath.Join(r.Home, "etc/app.conf")
	r.must(t, "bawn", "run", "-q", "--net", "none", "--rw", file, "--", "sh", "-c", "echo guest >"+file+"; chmod 600 "+file+"; rm f1")
	r.Put(t, "etc/other", "changed since\n", 0o640)
	if out := r.must(t, "bawn", "diff", "--name-only"); !strings.Contains(out, "etc/app.conf") || strings.Contains(out, "other") {
		t.Errorf("diff: %q", out)
	}
	if out := r.must(t, "bawn", "undo", "--yes"); !strings.Contains(out, "restore   "+file) {
		t.Errorf("undo: %q", out)
	}
	if out := r.must(t, "sh", "-c", "cd "+filepath.Dir(file)+"; cat app.conf other; stat -c %a app.conf; ls"); !strings.Contains(out, "the human's\nchanged since\n640\n") || !strings.HasSuffix(out, "app.conf\nother\n") {
		t.Errorf("%q", out)
	}
	// Below it, a path of the command line names it alone.
	r.must(t, "bawn", "run", "-q", "--net", "none", "--rw", file, "--", "sh", "-c", "echo guest >"+file+"; rm f2")
	r.must(t, "bawn", "undo", "--yes", "--", file)
	if got := r.Run(t, "sh", "-c", "cat "+file+"; test -e f2"); got.Out != "the human's\n" || got.Code != 1 {
		t.Errorf("undo of the file alone: %+v", got)
	}
}

// TestNoGit: of a repository whose state can't be kept the human is told once, and the
// files come back.
func TestNoGit(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.must(t, "sh", "-c", "echo . >.git/commondir")
	for i := range 2 {
		got := r.Run(t, "bawn", "run", "--net", "none", "--", "rm", fmt.Sprint("f", i+1))
		if told := strings.Count(got.Err, "neither a repository's git directory"); got.Code != 0 || told != 1-i {
			t.Errorf("run %d: it is told %d times: %+v", i, told, got)
		}
	}
	if got := r.Run(t, "bawn", "run", "--net", "none", "--covered", "--", "rm", "f3"); got.Code != 126 {
		t.Errorf("--covered: %+v", got)
	}
	r.must(t, "bawn", "undo", "--yes")
	if got := r.Run(t, "sh", "-c", "cat f2; test -e f1"); got.Out != "2\nchanged\n" || got.Code != 1 {
		t.Errorf("%+v", got)
	}
}

// TestTooLarge: what no checkpoint holds is read-only until the human allows it.
func TestTooLarge(t *testing.T) {
	testenv.ByUser(t)
	t.Parallel()
	r := newAccount(t)
	r.must(t, "sh", "-c", "truncate -s 70M src/large")
	line := []string{"bawn", "run", "--net", "none", "--", "sh", "-c", "echo x >>src/large; rm -f src/large; mv src away; chmod 777 src/large; echo y >>f1; stat -c %s src/large"}
	for i := range 2 {
		got := r.Run(t, line...)
		if got.Out != "73400320\n" || strings.Contains(got.Err, "src/large (70.0 MiB, larger than 64 MiB)") != (i == 0) {
			t.Errorf("run %d: %+v", i, got)
		}
	}
	r.must(t, "bawn", "checkpoints", "allow", "src/large")
	if got := r.Run(t, line...); !strings.Contains(got.Err, "No such file") {
		t.Errorf("it is allowed: %+v", got)
	}
}

// TestInside: a guest has no part in it.
func TestInside(t *testing.T) {
	testenv.ByUser(t)
	t.Parallel()
	r := newAccount(t)
	for _, words := range []string{"undo --yes", "diff", "checkpoints", "checkpoints prune", "checkpoints allow ."} {
		got := r.Run(t, append([]string{"bawn", "run", "-q", "--net", "none", "--", filepath.Join(r.Bin, "bawn")}, strings.Fields(words)...)...)
		if got.Code != 126 {
			t.Errorf("%s: %+v", words, got)
		}
	}
	if got := r.Run(t, "bawn", "run", "-q", "--net", "none", "--", "find", r.Home+"/.local/state/bawn"); strings.Contains(got.Out, "checkpoints") {
		t.Errorf("a guest sees the store: %+v", got)
	}
}
