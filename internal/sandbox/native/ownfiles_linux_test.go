package native

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// onCopy asks for a session on a copy of a workspace, and returns where its changes go.
func onCopy(t *testing.T, ws string) (req sandbox.Request, upper string) {
	t.Helper()
	layer := workspace(t)
	host(t, layer, `mkdir upper lower`)
	req = request(ws)
	req.Copy, req.NoFiles = layer, true
	req.Hidden = append(req.Hidden, layer)
	return req, filepath.Join(layer, "upper")
}

// runOwn runs a program in a session whose names of files are the kernel's.
func runOwn(t *testing.T, req sandbox.Request, stdin *os.File, argv ...string) string {
	t.Helper()
	p := New("")
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	if !plan.(*layout.Plan).OwnFiles {
		t.Fatal("the session's calls are held")
	}
	g, err := p.Start(plan, func(sandbox.Denial) {})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Exec(sandbox.Command{Argv: argv, Stdio: [3]*os.File{stdin, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(r)
	return string(out)
}

// runBare runs it without a sandbox.
func runBare(t *testing.T, ws string, stdin *os.File, argv ...string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin = ws, stdin
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// reach tries to change what the host has: by descriptors that are for reading, and by
// FIFOs. It also makes set-user-ID files.
const reach = `import ctypes, errno, os, stat, sys
out = sys.argv[1]; R, W, C, T = os.O_RDONLY, os.O_WRONLY, os.O_CREAT, os.O_TRUNC
def put(fd):
    try: os.write(fd, b"evil")
    finally: os.close(fd)
def attempt(what, f):
    try: f(); print(what, "done")
    except OSError as e: print(what, errno.errorcode[e.errno])
if stat.S_ISREG(os.fstat(3).st_mode):
    attempt("reopen", lambda: put(os.open("/proc/self/fd/3", W)))
    attempt("dev", lambda: put(os.open("/dev/fd/3", os.O_RDWR)))
    attempt("open empty", lambda: os.close(os.open("/proc/self/fd/3", R|T)))
    attempt("truncate", lambda: os.truncate("/proc/self/fd/3", 1))
    attempt("fifo", lambda: put(os.open(out + "/fifo", W|os.O_NONBLOCK)))
    attempt("own fifo", lambda: put(os.open("fifo", os.O_RDWR|os.O_NONBLOCK)))
else:
    attempt("create", lambda: put(os.open("new", W|C, 0o644, dir_fd=3)))
    attempt("write", lambda: put(os.open("kept", W, dir_fd=3)))
    attempt("mkdir", lambda: os.mkdir("dir", dir_fd=3))
    attempt("link", lambda: os.link("kept", "link", src_dir_fd=3, dst_dir_fd=3))
    attempt("symlink", lambda: os.symlink("kept", "sym", dir_fd=3))
    attempt("rename", lambda: os.rename("kept", "moved", src_dir_fd=3, dst_dir_fd=3))
    attempt("unlink", lambda: os.unlink("gone", dir_fd=3))
os.umask(0)
attempt("setuid", lambda: os.close(os.open("setuid", W|C, 0o6755)))
attempt("nodes", lambda: os.mknod("node", stat.S_IFREG|0o4755))
def nameless():
    fd = os.open(".", os.O_TMPFILE|W, 0o4755)
    if ctypes.CDLL(None).linkat(-100, b"/proc/self/fd/%d" % fd, -100, b"nameless", 0x400): raise OSError(errno.EXDEV, "linkat")
attempt("nameless", nameless)
print(any(os.stat(n).st_mode & 0o6000 for n in ("setuid", "node", "nameless")))
`

// TestOwnFiles: where the kernel decides about names, a guest reaches no file of the
// host by a descriptor that is for reading, not even one that it should not have got, and
// no FIFO of the host. It makes no set-user-ID files. The control is the same program
// without a sandbox.
func TestOwnFiles(t *testing.T) {
	testenv.Need(t, "userns", "notify", "python3", "landlock")
	const inside = `reopen EACCES
dev EACCES
open empty EACCES
truncate EACCES
fifo EACCES
own fifo done
setuid done
nodes done
nameless done
False
` + `create EACCES
write EACCES
mkdir EACCES
link EACCES
symlink EACCES
rename EACCES
unlink EACCES
setuid done
nodes done
nameless done
False
`
	for _, sandboxed := range []bool{true, false} {
		var got string
		ws, out := workspace(t), workspace(t)
		host(t, out, `echo kept >kept; touch gone`)
		host(t, ws, `cat >reach.py <<'E'`+"\n"+reach+"E")
		heard := []*os.File{fifo(t, out), fifo(t, ws)}
		for i, name := range []string{"kept", "."} {
			stdin, err := os.Open(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			argv := []string{"sh", "-c", `exec 3<&0 </dev/null; exec python3 reach.py "$1"`, "sh", out}
			if sandboxed {
				req, upper := onCopy(t, ws)
				got += runOwn(t, req, stdin, argv...)
				if set := host(t, upper, `find . -perm /6000`); set != "" {
					t.Errorf("the layer has %q", set)
				}
				continue
			}
			got += runBare(t, ws, stdin, argv...)
			host(t, ws, `rm setuid node nameless`)
			if i == 0 {
				host(t, out, `echo kept >kept`)
			}
		}
		want, kept := inside, "fifo\ngone\nkept\nkept\n"
		if !sandboxed {
			want, kept = strings.NewReplacer("EACCES", "done", "False", "True").Replace(inside), "dir\nfifo\nlink\nmoved\nnew\nsym\nevilevil\n"
		}
		if got != want {
			t.Errorf("sandboxed %v: got\n%s\nwant\n%s", sandboxed, got, want)
		}
		if is := host(t, out, `ls; cat kept new 2>/dev/null; cat link 2>/dev/null; true`); is != kept {
			t.Errorf("sandboxed %v: the host has %q", sandboxed, is)
		}
		for i, f := range heard {
			if n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCINQ); err != nil || (n > 0) == sandboxed {
				t.Errorf("sandboxed %v: FIFO %d of the host got %d bytes, %v", sandboxed, i, n, err)
			}
		}
	}
}

// fifo makes one in a directory of the host, and reads it.
func fifo(t *testing.T, dir string) *os.File {
	t.Helper()
	name := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(name, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestOwnFilesStayHidden: what is hidden in a copied workspace stays so though no
// rename or removal is held. The control is the same without a sandbox.
func TestOwnFilesStayHidden(t *testing.T) {
	testenv.Need(t, "userns", "notify", "landlock")
	const attack = `cat key d/key; mv key k2; rm -f key; cat key k2; ln key k3; cat k3; mv d e; cat e/key; rm -rf d; mkdir -p d; cat d/key; mv d/key key; cat key; mkdir -p n; echo plain >n/f; cat n/f`
	for _, sandboxed := range []bool{true, false} {
		ws := workspace(t)
		host(t, ws, `mkdir d; echo SECRET >key; echo SECRET >d/key`)
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		got := ""
		if sandboxed {
			req, _ := onCopy(t, ws)
			for _, p := range []string{"key", "d/key"} {
				req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: filepath.Join(ws, p), Access: bawn.Hidden, Why: "deny"})
			}
			got = runOwn(t, req, null, "sh", "-c", attack)
		} else {
			got = runBare(t, ws, null, "sh", "-c", attack)
		}
		if strings.Contains(got, "SECRET") == sandboxed || !strings.Contains(got, "plain") {
			t.Errorf("sandboxed %v: got %q", sandboxed, got)
		}
	}
}

// TestOwnFilesRaces: paths and directories that change while calls run lead to nothing of
// the host. The control is the same without a sandbox.
func TestOwnFilesRaces(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify", "python3", "landlock")
	for _, sandboxed := range []bool{true, false} {
		ws, out := workspace(t), workspace(t)
		host(t, out, `echo kept >kept; mkdir d`)
		race := raced + `
import sys
out = sys.argv[1].encode()
flips(b"d/plain", out + b"/plain", out + b"/kept", b"../x")
def swap():
    if libc.rename(b"d", b"f") == 0: libc.symlink(out, b"d"); libc.unlink(b"d"); libc.rename(b"f", b"d")
os.mkdir("d"); beside(swap)
ends(lambda: make(text), lambda: make(b"d/sub") + libc.unlink(b"d/sub") == 1, lambda: libc.mkdir(text, 0o755) == 0, lambda: (make(b"y"), libc.rename(b"y", text))[1] == 0, lambda: libc.unlink(text) == 0 or libc.rmdir(text) == 0)
`
		if err := os.WriteFile(filepath.Join(ws, "race.py"), []byte(race), 0o600); err != nil {
			t.Fatal(err)
		}
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		argv, said := []string{"python3", "race.py", out}, ""
		if sandboxed {
			req, _ := onCopy(t, ws)
			said = runOwn(t, req, null, argv...)
		} else {
			said = runBare(t, ws, null, argv...)
		}
		if t.Log(said); slices.Contains(strings.Fields(said), "0") {
			t.Errorf("sandboxed %v, control: nothing was raced: %s", sandboxed, said)
		}
		list := host(t, out, `find . | sort; cat kept; true`)
		if (list == ".\n./d\n./kept\nkept\n") != sandboxed {
			t.Errorf("sandboxed %v: the host has %q", sandboxed, list)
		}
	}
}

// TestOwnFilesSockets: a guest connects to sockets that it has made in its copy, and to
// none of the host's.
func TestOwnFilesSockets(t *testing.T) {
	testenv.Need(t, "userns", "notify", "python3", "landlock")
	ws := workspace(t)
	host(t, ws, `cat >s.py <<'E'
import socket, sys
def connect(p):
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(p); return "connected"
    except OSError as e: return e.strerror
if len(sys.argv) == 1:
    l = socket.socket(socket.AF_UNIX); l.bind("own"); l.listen()
    print(connect("own"))
print(connect("host"))
E`)
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	dir, err := os.Open(ws)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := unix.Bind(l, &unix.SockaddrUnix{Name: filepath.Join(ws, "host")}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(l, 8); err != nil {
		t.Fatal(err)
	}
	if got := runBare(t, ws, nil, "python3", "s.py", "control"); got != "connected\n" {
		t.Errorf("control: got %q", got)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	req, _ := onCopy(t, ws)
	if got := runOwn(t, req, null, "python3", "s.py"); got != "connected\nPermission denied\n" {
		t.Errorf("got %q", got)
	}
}
