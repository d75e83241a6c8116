package sandboxtest

import "slices"

// workPieces returns every piece of ordinary work.
func workPieces() []workPiece {
	return slices.Concat(gitPieces(), toolPieces(), shellPieces(), filePieces(), processPieces(), guestPieces())
}

// gitPieces: version control as an agent uses it. fsck is not asked for what is
// dangling: it sees the commit by which Bawn keeps objects from the host's gc.
func gitPieces() []workPiece {
	const repository = `git init -q .
for i in 1 2 3; do echo "line $i" >>file; echo $i >f$i; git add .; git commit -qm "commit $i"; done
`
	pieces := []workPiece{
		{name: "status, add, commit", script: `echo new >new; mkdir d; echo x >d/x; echo more >>file; git status --short
git add -A && git status --short && git commit -m "all of it" && git log --format='%h %s %an' && git status; git show --stat; git diff HEAD~1`},
		{name: "nothing to commit", script: `git commit -m none; echo $?; git commit --allow-empty -qm empty && git log --oneline`},
		{name: "amend, reset, restore", script: `echo x >>file; git commit -qa --amend --no-edit; git reset -q --hard HEAD~1; echo y >>file; git restore file
git rm -q f2; git mv f1 g1; git commit -qm moved; git revert --no-edit HEAD; git log --format='%h %s'; git status --short; git fsck --no-dangling 2>&1; git config x.y z; git config x.y; git reflog | head -3`},
		{name: "branch, checkout, merge", script: `git branch one; git checkout -b two; echo two >two; git add .; git commit -qm two; git checkout -q one
echo one >one; git add .; git commit -qm one; git merge -m merged two; git log --graph --format='%h %s'; git branch -a`},
		{name: "branch names with slashes", script: `git checkout -qb feat/hooks/config; git branch feat/hooks/x; git branch hooks; git branch config; git for-each-ref; git checkout -q main; git update-ref -d refs/heads/hooks; git pack-refs --all; git branch`},
		{name: "merge with a conflict", script: `git checkout -qb a; echo a >file; git commit -qam a; git checkout -qb b main; echo b >file; git commit -qam b
git merge a; echo $?; git status --short; cat file; echo both >file; git add file; git commit -qm solved; git log --format='%h %s'`},
		{name: "rebase", script: `git checkout -qb a HEAD~2; echo a >a; git add a; git commit -qm a; echo b >b; git add b; git commit -qm b
git rebase main 2>&1 | tr '\r' '\n' | tail -1; git log --format='%h %s'; GIT_SEQUENCE_EDITOR="sed -i '1!s/^pick/fixup/'" git rebase -qi HEAD~2; git log --format='%h %s'`},
		{name: "rebase with a conflict", script: `git checkout -qb a HEAD~1; echo a >file; git commit -qam a; git rebase main >/dev/null 2>&1; echo $?; git status --short
echo solved >file; git add file; GIT_EDITOR=true git rebase --continue 2>&1 | tr '\r' '\n' | tail -1; git log --format='%h %s'; git reflog | head -4`},
		{name: "cherry-pick", script: `git checkout -qb a HEAD~1; echo a >a; git add a; git commit -qm a; git checkout -q main; git cherry-pick a; git cherry-pick -n HEAD~1 >/dev/null 2>&1; git cherry-pick --abort 2>/dev/null; git reset -q --hard; git log --oneline; git status --short`},
		{name: "cherry-pick with a conflict, and am", inside: "a cherry-pick is open at the end", script: `git format-patch -q -1 --stdout >p.mbox; git reset -q --hard HEAD~1; git am -q p.mbox; git log --oneline
git checkout -qb a HEAD~2; git cherry-pick main; git log --oneline; git apply --stat p.mbox`},
		{name: "stash", script: `echo x >>file; echo u >untracked; git stash -u; git status --short; git stash list; git stash pop; git stash; git stash apply -q; git stash drop; git status --short`},
		{name: "tag", script: `git tag light; git tag -a heavy -m 'with words'; git tag -n; git tag -d light; git describe`},
		{name: "gc", script: `git gc -q; git repack -adq; git prune; git fsck --no-dangling; git log --oneline; echo x >x; git add x; git commit -qm x; git gc -q; git log --oneline`},
		{name: "objects that a repository has", script: `git gc -q; ls .git/objects/pack | sort; git count-objects -v`},
		{name: "clean, grep, blame, archive", script: `touch junk; mkdir jd; touch jd/x; git clean -fd; git grep -n line; git blame -s file; git archive HEAD | tar t; git ls-files -s; git bisect start -q HEAD HEAD~2; git bisect good; git bisect reset`},
		{name: "worktree", script: `git worktree add -q wt -b work; cd wt; echo w >w; git add w; git commit -qm w; git status; git log --format='%h %s'; git stash list; cd ..
git worktree list; git worktree remove wt; git worktree list; git branch; git merge -q work; git log --oneline; git worktree add -q --detach w2; rm -rf w2; git worktree prune -v`},
		{name: "worktree moved", script: `git worktree add -q a/wt -b work; git worktree move a/wt b; git -C b status --short -b; git worktree lock b; git worktree remove b; git worktree unlock b; git worktree remove b`},
		{name: "submodule status of none", script: `git submodule status; git submodule foreach true; git notes add -m note; git notes show; git sparse-checkout list 2>&1; git update-index --refresh; git check-ignore -v x`},
		{name: "ignore and attributes", script: `echo '*.o' >.gitignore; echo '*.txt text eol=lf' >.gitattributes; touch a.o; printf 'a\r\n' >a.txt; git add . 2>/dev/null; git commit -qm i; git status --short --ignored; git show HEAD:a.txt | od -c`},
	}
	for i := range pieces {
		pieces[i].setup = repository
	}
	pieces = append(pieces, clonePieces()...)
	for i := range pieces {
		p := &pieces[i]
		p.name, p.needs = "git: "+p.name, []string{"git"}
		p.opaque = []string{"*/index", "*/*/index", "*/*/*/index"} // holds times and inode numbers
	}
	return pieces
}

// clonePieces make repositories.
func clonePieces() []workPiece {
	return []workPiece{
		{name: "init", script: `git init sub; cd sub; git status; touch x; git add x; git commit -m one; git log --oneline; git config --get core.bare; git init -q; ls .git`},
		{name: "init in place", script: `git init; echo a >a; git add a; git commit -qm a; git branch b; git switch -q b; git log --oneline --all`},
		{name: "init bare and push to it", script: `d=$(mktemp -d /tmp/work-XXXXXX); git init -q --bare "$d/hub.git"; git init -q w; cd w; touch a; git add a; git commit -qm a; git push -q "$d/hub.git" main:main; git -C "$d/hub.git" log --oneline; git ls-remote "$d/hub.git"; rm -rf "$d"`},
		{name: "init bare in the workspace", script: `git init -q --bare hub.git; echo $?; git init -q w; cd w; touch a; git add a; git commit -qm a; git push -q ../hub.git main:main; git -C ../hub.git log --oneline`},
		{name: "clone into the workspace", script: `git clone --no-hardlinks "$SHELF/upstream" c 2>&1; cd c; git log --oneline; git status; git branch -a; git tag; git remote -v; git fetch -q; git pull -q --ff-only; git describe; echo x >x; git add x; git commit -qm x; git status -sb`},
		{name: "clone within the workspace", setup: `git clone -q "$SHELF/upstream" a`, script: `git clone -q a b; git clone -q a e; cd b; echo x >x; git add x; git commit -qm x; git push -q ../e HEAD:refs/heads/pushed; git -C ../e branch; git clone -q --depth 1 "file://$PWD/../a" ../d; git -C ../d log --oneline; cd ../a; git log --oneline; git status`},
		{name: "write to a repository below the workspace", setup: `git clone -q "$SHELF/upstream" a`, script: `git clone -q a b; cd b; git push -q origin HEAD:refs/heads/pushed; cd ../a; git branch new; git fetch -q; echo x >x; git add x; git commit -qm x; git branch`},
		{name: "clone into /tmp", setup: `git clone -q "$SHELF/upstream" a`, script: `d=$(mktemp -d /tmp/work-XXXXXX); git clone -q a "$d/c"; git clone -q a "$d/e"; cd "$d/c"; echo x >x; git add x; git commit -qm x; git log --oneline; git push -q ../e HEAD:refs/heads/pushed; git config user.name; git config x.y z; git config x.y; git -C ../e log --oneline pushed; rm -rf "$d"`},
		{name: "clone bare and mirror", setup: `mkdir x`, script: `w=$PWD; d=$(mktemp -d /tmp/work-XXXXXX); cd "$d"; git clone -q "$SHELF/upstream" a; git clone -q --bare a b.git; git clone -q --mirror a m.git; git -C a branch new; git -C m.git remote update 2>/dev/null; git -C m.git branch; git -C b.git fetch -q origin; git -C b.git gc -q; git -C b.git config user.name Ada; git -C b.git config user.name; git -C b.git symbolic-ref HEAD refs/heads/side; git -C b.git log --oneline; mv b.git c.git; git -C c.git fsck; git clone -q c.git "$w/x/n" -b main; rm -rf c.git m.git; ls -A; rm -rf "$d"`},
		{name: "init bare in place", script: `git init -q --bare; echo $?; git config --get core.bare; git init -q w; cd w; touch a; git add a; git commit -qm a; git push -q .. main; git -C .. log --oneline`},
		{name: "worktrees of a bare repository", setup: `git clone -q --bare "$SHELF/upstream" .bare; echo 'gitdir: ./.bare' >.git; git worktree add -q main main`, script: `cd main; echo x >x; git add x; git commit -qm x; git worktree add -q ../w -b work; cd ../w; echo y >y; git add y; git commit -qm y; git rebase -q side; git status -sb; cd ..; git worktree list; git worktree remove w; git worktree list; git -C main merge -q work; git -C main log --oneline; git branch`},
		{name: "git directory elsewhere in the workspace", setup: `git init -q --separate-git-dir store .; touch a; git add a; git commit -qm a`, script: `echo b >b; git add b; git commit -qm b; git checkout -qb x; git rebase -q main; git stash list; git gc -q; git worktree add -q wt; cd wt; git log --oneline; git status -sb; cd ..; git worktree remove wt; git tag t; git fsck; git log --oneline`},
		{name: "commit in a submodule", setup: `git clone -q "$SHELF/upstream" a; git init -q .; git -c protocol.file.allow=always submodule add -q ./a sub 2>&1; git commit -qm s`, script: `git submodule status; cd sub; echo x >x; git add x; git commit -qm x; git checkout -q -b y; git rebase -q main; git log --oneline; cd ..; git status --short; git add sub; git commit -qm moved; git submodule foreach -q 'git log -1 --format=%s'; git submodule summary HEAD~1; git fsck --no-dangling`},
		{name: "submodule add and update", inside: "a submodule that the guest adds has no remote on the host where that is not near", setup: `git clone -q "$SHELF/upstream" a; git init -q .`, script: `git -c protocol.file.allow=always submodule add -q ./a sub; git submodule update -q; git status --short; git -C sub log --oneline`},
		{name: "hooks of the project", setup: `git init -q .; mkdir dev; printf '#!/bin/sh\necho hook "$(basename $0)"; date >/dev/null\n' >dev/pre-commit; chmod +x dev/pre-commit; cp dev/pre-commit dev/post-checkout; git config core.hooksPath dev; git add .; git commit -qm a`, script: `echo x >x; git add x; git commit -qm x; git checkout -qb y; git rebase -q main; echo more >>x; git commit -qam more; git commit -q --no-verify --allow-empty -m none; git log --oneline; ls dev`},
		{name: "branches with git's own names", script: `d=$(mktemp -d /tmp/work-XXXXXX); git clone -q "$SHELF/upstream" a; for b in config hooks/x info/attributes modules/a worktrees/b; do git -C a branch $b; done; git clone -q --bare a "$d/h.git"; git clone -q a b; cd b; git branch -r; git -C ../a commit -q --allow-empty -m more; for b in config hooks/x; do git -C ../a branch -f $b; done; git fetch -q; git branch -r; git checkout -q config; git branch hooks/y; a=$PWD/../a; cd "$d/h.git"; git fetch -q "$a" '+refs/heads/*:refs/remotes/origin/*' ; git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main; git update-ref refs/remotes/origin/config HEAD; git update-ref refs/remotes/origin/hooks/z HEAD; git update-ref -d refs/remotes/origin/hooks/x; git branch -a; git fsck --no-dangling; rm -rf "$d"`},
		{name: "clone of no repository", script: `git clone -q nowhere c; echo $?; git clone -q "$SHELF" d; echo $?; git log 2>/dev/null; echo $?; ls -A`},
	}
}

// toolPieces: compilers, interpreters and what they start.
func toolPieces() []workPiece {
	seconds := []string{`\d+\.\d+s`}
	return []workPiece{
		{name: "go build and test", needs: []string{"go"}, setup: goModule, mask: seconds,
			script: `export GOFLAGS=-count=1 GOPROXY=off; go build ./... && go vet ./... && go test ./... && go run ./cmd/hello you; go build -trimpath -buildvcs=false -o bin/hello ./cmd/hello; bin/hello me; rm -r bin; gofmt -l .; go list ./...; go env GOMOD`},
		{name: "go test fails", needs: []string{"go"}, setup: goModule + `sed -i 's/hello, /hallo, /' greet/greet.go`, mask: seconds, script: `export GOFLAGS=-count=1 GOPROXY=off; go test ./...; echo $?; echo 'package greet; var x int = ""' >greet/bad.go; go build ./...; echo $?`},
		{name: "node", needs: []string{"node"}, setup: `cat >w.js <<'EOT'
const fs = require('fs'), cp = require('child_process'), os = require('os'), path = require('path'), net = require('net');
fs.mkdirSync('a/b/c', {recursive: true}); fs.writeFileSync('a/b/c/f', 'x'.repeat(100000)); fs.appendFileSync('a/b/c/f', 'end');
fs.copyFileSync('a/b/c/f', 'copy'); fs.renameSync('copy', 'moved'); fs.symlinkSync('moved', 'link'); fs.chmodSync('moved', 0o640);
console.log(fs.statSync('link').size, fs.readdirSync('.').sort().join());
const d = fs.mkdtempSync(path.join(os.tmpdir(), 'work-')); fs.writeFileSync(path.join(d, 'f'), 'y'); fs.rmSync(d, {recursive: true});
console.log(cp.execFileSync('sh', ['-c', 'echo child; exit 0']).toString(), cp.spawnSync('sh', ['-c', 'exit 3']).status);
try { fs.writeFileSync('no/such', '') } catch (e) { console.log(e.code, e.message) }
const c = cp.fork(process.argv[1] + '', ['child'], {execArgv: ['-e', 'process.send({pid: typeof process.pid})']});
c.on('message', m => console.log('message', m.pid)); c.on('exit', (code) => { console.log('exit', code); serve() });
function serve() { const s = net.createServer(x => x.end('served')).listen(0, '127.0.0.1', () => net.connect(s.address().port, '127.0.0.1').on('data', b => { console.log(b.toString()); s.close() })); }
EOT`, script: `node w.js`},
		{name: "node -e", needs: []string{"node"}, argv: []string{"node", "-e", `require('fs').promises.writeFile('f', 'x').then(() => require('child_process').exec('cat f; echo err >&2', (e, o, s) => { console.log(o, s); process.exit(7) }))`}},
		{name: "python3", needs: []string{"python3"}, setup: pythonWork, script: `python3 w.py; echo $?; python3 -c 'import sys; sys.exit(9)'; echo $?; python3 -m compileall -q m.py; python3 -c 'import m'; python3 -c 'raise KeyboardInterrupt' 2>/dev/null; echo $?`, opaque: []string{"__pycache__/*"}},
		{name: "python3 -m venv", needs: []string{"python3"}, script: `python3 -m venv --without-pip --copies v && v/bin/python -c 'import sys; print(sys.prefix)'; rm -rf v`},
		{name: "make", needs: []string{"make"}, setup: "printf 'all: a b c\\n%%: %%.in\\n\\t@sleep 0.05; tr a-z A-Z <$< >$@\\nclean:\\n\\trm -f a b c\\nbad:\\n\\t@exit 3\\n' >Makefile; for i in a b c; do echo $i >$i.in; done",
			script: `make -j4; make; cat a b c; make -n clean; make clean; make bad; echo $?; make none; echo $?; make -s -j2 all; make -q all; echo $?`},
		{name: "sqlite-like commit", needs: []string{"python3"}, script: `python3 - <<'EOT'
import sqlite3
for mode in "delete", "wal":
    db = sqlite3.connect(mode + ".db"); print(db.execute("pragma journal_mode=" + mode).fetchone())
    db.execute("create table t(x)"); db.executemany("insert into t values (?)", [(i,) for i in range(1000)]); db.commit()
    other = sqlite3.connect(mode + ".db"); print(other.execute("select sum(x) from t").fetchone()); other.close(); db.close()
EOT`, opaque: []string{"*.db"}},
	}
}

const goModule = `mkdir -p greet cmd/hello
printf 'module example.com/work\n\ngo 1.21\n' >go.mod
printf 'package greet\n\n// To greets.\nfunc To(who string) string { return "hello, " + who }\n' >greet/greet.go
cat >greet/greet_test.go <<'EOT'
package greet

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTo(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(name, []byte(To("you")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "hello, you" {
		t.Fatalf("got %q, %v", got, err)
	}
}
EOT
printf 'package main\n\nimport (\n\t"fmt"\n\t"os"\n\n\t"example.com/work/greet"\n)\n\nfunc main() { fmt.Println(greet.To(os.Args[1])) }\n' >cmd/hello/main.go
`

const pythonWork = `echo 'x = 1' >m.py; cat >w.py <<'EOT'
import fcntl, glob, multiprocessing, os, shutil, subprocess, tempfile, threading
def square(n):
    return n * n
if __name__ == "__main__":
    os.makedirs("a/b"); open("a/b/f", "w").write("text"); os.replace("a/b/f", "a/g"); shutil.copytree("a", "c")
    with tempfile.TemporaryDirectory() as d:
        open(d + "/x", "w").write("x"); print(sorted(os.listdir(d)))
    with tempfile.NamedTemporaryFile("w+") as f:
        f.write("t"); f.flush(); print(os.stat(f.name).st_mode & 0o777)
    with tempfile.TemporaryFile(dir=".") as f:
        f.write(b"unnamed"); f.seek(0); print(f.read())
    print(subprocess.run(["sh", "-c", "cat; exit 4"], input=b"in", capture_output=True))
    with multiprocessing.Pool(3) as p:
        print(p.map(square, range(10)))
    q = multiprocessing.Queue(); w = multiprocessing.Process(target=q.put, args=("from a child",)); w.start(); print(q.get()); w.join(); print(w.exitcode)
    s = multiprocessing.Semaphore(2); print(s.acquire(), s.acquire(), s.acquire(block=False))
    r = []; t = [threading.Thread(target=lambda i=i: r.append(i)) for i in range(20)]
    [x.start() for x in t]; [x.join() for x in t]; print(sorted(r) == list(range(20)))
    with open("lock", "w") as f:
        fcntl.lockf(f, fcntl.LOCK_EX); print(subprocess.call(["python3", "-c", "import fcntl; fcntl.lockf(open('lock','w'), fcntl.LOCK_EX|fcntl.LOCK_NB)"], stderr=subprocess.DEVNULL))
    print(sorted(glob.glob("**", recursive=True)), os.getcwd() == os.path.realpath("."))
    for bad in (lambda: open("no/such", "w"), lambda: os.mkdir("a"), lambda: os.rmdir("a"), lambda: open("a", "w"), lambda: os.listdir("m.py")):
        try: bad()
        except OSError as e: print(type(e).__name__, e)
EOT
`
