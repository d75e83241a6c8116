package native

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestFastPath makes, moves, links and removes names where the supervisor has just
// done so: what is protected stays so, and errors are the kernel's.
func TestFastPath(t *testing.T) {
	testenv.Need(t, "userns", "notify", "python3")
	ws := workspace(t)
	host(t, ws, `mkdir deep deep/.vscode; echo mine >deep/.envrc; mkdir -p bare/objects bare/refs; echo 'ref: refs/heads/main' >bare/HEAD; echo x >mine; ln mine other`)
	out, code, _ := script(t, ws, `cat >f.py <<'E'
import errno, os
def no(f, *a):
    try: f(*a)
    except OSError as e: return errno.errorcode[e.errno]
    return "done"
def make(n): os.close(os.open(n, os.O_CREAT|os.O_EXCL|os.O_WRONLY, 0o666))
d = os.open("deep", os.O_RDONLY)
os.chdir("deep")
for i in range(20): make("f%d" % i); os.mkdir("d%d" % i); os.rename("f%d" % i, "g%d" % i); os.link("g%d" % i, "h%d" % i); os.unlink("h%d" % i)
print(*[no(make, n) for n in (".mcp.json", ".VSCODE", ".vscode/tasks.json", ".git/config", "../bare/config", "g1", "d1", "no/such", "/proc/self/cwd/.mcp.json")])
print(*[no(os.mkdir, n) for n in (".idea", "g1", "d1", "no/such", "d1/.vscode", "../bare/x")])
print(*[no(os.rename, "g1", n) for n in (".mcp.json", ".envrc", "d1", ".vscode/x", "../bare/config", "no/such")])
print(*[no(os.rename, n, "away") for n in (".envrc", "../bare/HEAD", "none")])
print(*[no(os.link, "g1", n) for n in (".mcp.json", ".envrc", "g2", "../bare/config")], *[no(os.link, n, "alias") for n in (".envrc", "../bare/HEAD")])
print(*[no(os.unlink, n) for n in (".envrc", "../bare/HEAD", "d1", "none", "g3")], *[no(os.rmdir, n) for n in (".vscode", "../bare/refs", "g1", "d2")])
os.rename("g4", "g5"); make("x"); os.rename("x", "y"); os.rename("y", "z", src_dir_fd=d, dst_dir_fd=d); make(os.getcwd() + "/full")
os.symlink("g6", "s"); print(no(make, "s"), no(os.rename, "s", "s2"), os.path.islink("s2"), sorted(os.listdir("."))[:4], os.stat("full").st_mode & 0o777)
E
umask 022; python3 f.py; stat -c %h:%n mine`)
	want := `EACCES EACCES EACCES EACCES EACCES EEXIST EEXIST ENOENT EACCES
EACCES EEXIST EEXIST ENOENT EACCES EACCES
EACCES EACCES EISDIR EACCES EACCES ENOENT
EACCES EACCES ENOENT
EACCES EEXIST EEXIST EACCES EACCES EACCES
EACCES EACCES EISDIR ENOENT done EACCES EACCES ENOTDIR done
EEXIST done True ['.envrc', '.vscode', 'd0', 'd1'] 420
2:mine
`
	if out != want || code != 0 {
		t.Errorf("got %d:\n%s\nwant:\n%s", code, out, want)
	}
	if got := host(t, ws, `cat deep/.envrc bare/HEAD; ls -A bare deep/.vscode; find . -name tasks.json -o -name .mcp.json -o -name config`); got != "mine\nref: refs/heads/main\nbare:\nHEAD\nobjects\nrefs\n\ndeep/.vscode:\n" {
		t.Errorf("the host has %q", got)
	}
}

// TestFastPathRaces has threads change what a call is about while it is held: the text
// of the path, the directory under it, and where that lies. The control is how often
// they got through with a plain name.
func TestFastPathRaces(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify", "python3")
	for _, race := range pathRaces {
		ws := workspace(t)
		host(t, ws, `mkdir -p d/sub e/.vscode git/objects git/refs; echo 'ref: refs/heads/main' >git/HEAD`)
		if err := os.WriteFile(filepath.Join(ws, "race.py"), []byte(race), 0o600); err != nil {
			t.Fatal(err)
		}
		out, code, _ := script(t, ws, `python3 race.py`)
		if t.Log(out); code != 0 || slices.Contains(strings.Fields(out), "0") {
			t.Errorf("control: nothing was raced: %d: %s", code, out)
		}
		if got := host(t, ws, `find . -name .envrc -o -name .mcp.json -o -path '*/.vscode/*' -o -path './git/*' | sort`); got != "./git/HEAD\n./git/objects\n./git/refs\n" {
			t.Errorf("the host has %q", got)
		}
	}
}

// raced begins a program whose path lies in memory that a child changes all the time.
const raced = `import ctypes, mmap, os, signal, time
libc = ctypes.CDLL(None); shared = mmap.mmap(-1, 4096); text = (ctypes.c_char * 100).from_buffer(shared); n = [0] * 5; children = []
def beside(f):
    child = os.fork()
    if child: return children.append(child)
    while True: f()
def flips(first, *others):
    def flip():
        for o in others: text.value = o; text.value = first
    text.value = first; beside(flip)
def ends(*f):
    began = time.time()
    while time.time() < began + 1.5 or 0 in n and time.time() < began + 20:
        for i, g in enumerate(f): n[i] += bool(g())
    for c in children: os.kill(c, signal.SIGKILL)
    print(*n)
def make(t):
    fd = libc.open(t, os.O_CREAT|os.O_WRONLY|os.O_EXCL, 0o644)
    if fd >= 0: os.close(fd)
    return fd >= 0
`

// pathRaces change the text of a path, and the directories that it leads through.
var pathRaces = []string{raced + `
flips(b"d/sub/plain", b"d/sub/.envrc", b"git/config", b"e/.vscode/tasks.json", b".mcp.json")
make(b"d/y")
ends(lambda: make(text), lambda: libc.mkdir(text, 0o755) == 0, lambda: (make(b"d/x"), libc.rename(b"d/x", text))[1] == 0, lambda: libc.link(b"d/y", text) == 0, lambda: libc.unlink(text) == 0 or libc.rmdir(text) == 0)
`, raced + `
def swap():
    time.sleep(0.001); libc.renameat2(-100, b"d", -100, b"e", 2)
    if libc.rename(b"d", b"f") == 0: libc.symlink(b"git", b"d"); libc.symlink(b"e/.vscode", b"d"); libc.unlink(b"d"); libc.rename(b"f", b"d")
def turn():
    for a, b in (("d/sub", "e/sub"), ("e/sub", "d/sub"), ("d/sub", "e/.vscode/sub"), ("d/sub", "git/objects/sub"), ("d/sub", "d/.idea")): time.sleep(0.001); libc.rename(a.encode(), b.encode())
beside(swap); beside(turn)
ends(lambda: make(b"d/sub/config"), lambda: make(b"d/tasks.json"), lambda: libc.mkdir(b"d/sub/m", 0o755) == 0, lambda: libc.rename(b"d/tasks.json", b"d/sub/t") == 0,
    lambda: [f(p) for f in (libc.unlink, libc.rmdir) for p in (b"d/sub/config", b"d/tasks.json", b"d/sub/m", b"d/sub/t", b"e/sub/config", b"e/tasks.json", b"e/sub/m", b"e/sub/t")])
`}

// TestFastPathAfterTheHost: a directory in which a guest works is protected from the
// moment in which a program of the host moves it to where it is obeyed.
func TestFastPathAfterTheHost(t *testing.T) {
	testenv.Need(t, "userns", "notify", "python3")
	ws := workspace(t)
	host(t, ws, `mkdir d .vscode`)
	done := make(chan string)
	go func() {
		out, _, _ := script(t, ws, `cd d; cat >../m.py <<'E'
import os, time
n = refused = 0; end = time.time() + 20
while refused < 50 and time.time() < end:
    try: os.close(os.open("f%d" % n, os.O_CREAT|os.O_EXCL|os.O_WRONLY)); n += 1
    except PermissionError: refused += 1
print(n > 0, refused)
E
python3 ../m.py`)
		done <- out
	}()
	there := func(dir string) int {
		list, _ := os.ReadDir(filepath.Join(ws, dir))
		return len(list)
	}
	testenv.Until(t, "files of the guest", func() bool { return there("d") > 20 })
	if err := os.Rename(filepath.Join(ws, "d"), filepath.Join(ws, ".vscode/d")); err != nil {
		t.Fatal(err)
	}
	moved := time.Now()
	if out := testenv.Receive(t, "the end of the session", done); out != "True 50\n" {
		t.Errorf("got %q", out)
	}
	late := 0
	list, _ := os.ReadDir(filepath.Join(ws, ".vscode/d"))
	for _, e := range list {
		if info, err := e.Info(); err == nil && info.ModTime().After(moved.Add(50*time.Millisecond)) {
			late++
		}
	}
	if late > 0 {
		t.Errorf("%d files were made after the move", late)
	}
}

// TestRemovalsLeaveCommits: no checkpoint holds a repository of the host's that lies
// below the workspace, so a guest removes nothing of one, wherever it lies, and not
// by a path that changes while the call is held either. The control is the same on a
// copy without a sandbox.
func TestRemovalsLeaveCommits(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify", "git", "python3")
	ws, bare := workspace(t), workspace(t)
	for _, dir := range []string{ws, bare} {
		host(t, dir, `git init -q a/b/c/d/e/repo && git -C a/b/c/d/e/repo commit -q --allow-empty -m one && git clone -q --bare a/b/c/d/e/repo store && touch a/b/plain`)
		if err := os.WriteFile(filepath.Join(dir, "race.py"), []byte(removeRace), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const attack = `python3 race.py; rm -rf a/b/c/d/e/repo/.git/* store/* 2>/dev/null; rm -rf a store 2>/dev/null; true`
	const commits = `git -C a/b/c/d/e/repo log --format=%s && git -C a/b/c/d/e/repo fsck && git -C store log --format=%s`
	host(t, bare, attack+"; test ! -e a && test ! -e store")
	out, _, _ := script(t, ws, attack)
	if slices.Contains(strings.Fields(out), "0") {
		t.Errorf("control: nothing was raced: %s", out)
	}
	if got := host(t, ws, commits); got != "one\none\n" {
		t.Errorf("the host has %q", got)
	}
}

const removeRace = raced + `
flips(b"a/b/plain", b"a/b/c/d/e/repo/.git/HEAD", b"store/HEAD", b"a/b/c/d/e/repo/.git/config")
ends(lambda: make(b"a/b/plain"), lambda: libc.unlink(text) == 0, lambda: True, lambda: True, lambda: True)
`
